"""The README of each library and docs/libraries.md: their code is run as it stands, in the project of its library."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Final

from tests.frozen.libraries import SDKS
from tests.patience import PATIENCE
from tests.sdks.conftest import DemoServer
from tests.sdks.packages import NODE_MODULES, Installed

PAGE: Final = SDKS.parent / "docs" / "libraries.md"
FENCE: Final = {"python": "python", "typescript": "ts", "php": "php"}
FILE: Final = {"python": "{}.py", "typescript": "{}.ts", "php": "{}.php"}
#: What the shop of the page is asked to do; each language prints the same.
ENDING: Final = {
    "python": """
print(pay(os.environ["ORDER"], "2290197000000"), pay("refused-" + os.environ["ORDER"], "2290197000001"))
print(guichet.payments.retrieve(os.environ["ORDER"])["status"], receive(b"{}", {}))
catch_up(os.environ["LAST_EVENT"])
print(os.environ["ORDER"] in delivered, refund(os.environ["ORDER"]))
""",
    "typescript": """
const order = process.env["ORDER"]!;
console.log(await pay(order, "2290197000000"), await pay(`refused-${order}`, "2290197000001"));
console.log((await guichet.payments.retrieve(order)).status, receive(new TextEncoder().encode("{}"), {}));
await catchUp(process.env["LAST_EVENT"]!);
console.log(delivered.has(order) ? "True" : "False", await refund(order));
""",
    "php": """
$order = getenv('ORDER');
echo pay($guichet, $order, '2290197000000'), ' ', pay($guichet, "refused-$order", '2290197000001'), "\\n";
echo $guichet->payments->retrieve($order)['status'], ' ', receive($delivered, '{}', []), "\\n";
catchUp($guichet, $delivered, getenv('LAST_EVENT'));
echo isset($delivered[$order]) ? 'True' : 'False', ' ', refund($guichet, $order), "\\n";
""",
}
#: The package by `require` and by `import` are the same classes; both are typed.
FORMATS: Final = """
import sdk = require("guichet-sdk");
import testing = require("guichet-sdk/testing");
(async () => {
  const imported: object = await import("guichet-sdk");
  const fakes: object = await import("guichet-sdk/testing");
  for (const [required, other] of [[sdk, imported], [testing, fakes]] as const) {
    const lacking = Object.entries(required).filter(([name, value]) => Reflect.get(other, name) !== value);
    console.log(Object.keys(required).length > 1, lacking);
  }
  const fake = new testing.FakeGuichet();
  fake.failNext("payment_failed");
  const body: sdk.PaymentBody = { amount: 5000, operator: "mtn", phone_number: "2290197000001" };
  await fake.client().payments.create(body).catch((error) => console.log(error instanceof sdk.PaymentFailed));
})();
"""


def blocks(file: Path, language: str) -> list[str]:
    return re.findall(rf"^```{FENCE[language]}\n(.*?)^```$", file.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def run(language: str, project: Installed, sources: dict[str, str], **names: str) -> list[str]:
    """What each of these programs prints. TypeScript is compiled first, as strictly as it can be."""
    files = [project.folder / FILE[language].format(name) for name in sources]
    for file, source in zip(files, sources.values(), strict=True):
        file.write_text(f"<?php\n{source}" if language == "php" else source, encoding="utf-8")
    environment = {**os.environ, **project.environment, **names}
    if language == "typescript":
        (project.folder / "package.json").write_text(json.dumps({"type": "module", "private": True}))
        options = ["--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck", "--types", "node"]
        roots = ["--typeRoots", str(NODE_MODULES / "@types")]
        required = project.folder / "formats.cts"
        required.write_text(FORMATS, encoding="utf-8")
        compiler = [str(NODE_MODULES / ".bin" / "tsc"), *options, *roots]
        _finished([*compiler, *map(str, [*files, required])], project, environment)
        # Without the way in which newer versions of Node load an ES module by `require`.
        node = ["node", "--no-experimental-require-module", str(required.with_suffix(".cjs"))]
        assert _finished(node, project, environment) == "true []\ntrue []\ntrue\n"
        files = [file.with_suffix(".js") for file in files]
    return [_finished([*project.run, str(file)], project, environment) for file in files]


def _finished(command: list[str], project: Installed, environment: dict[str, str]) -> str:
    ended = subprocess.run(
        command, cwd=project.folder, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def check_documents(language: str, project: Installed, server: DemoServer) -> None:
    """The first payment takes ten lines; the shop does in each language what it does in the others."""
    [first] = blocks(SDKS / language / "README.md", language)
    assert len([line for line in first.splitlines() if line.strip()]) <= 10
    order = f"commande-1042-{language}"
    for sample, real in (
        ("sk_test_remplacez_par_votre_cle", server.keys["test"]),
        ("http://127.0.0.1:8000/v1", server.url),
        ("commande-1042", order),
    ):
        assert sample in first
        first = first.replace(sample, real)
    *shop, fake = blocks(PAGE, language)
    last_event = server.call("GET", "/events", source="127.0.2.1")["data"][-1]["id"]
    names = {"API_KEY": server.keys["test"], "API_URL": server.url, "WEBHOOK_SECRET": server.secret}
    names |= {"ORDER": f"order-{language}", "LAST_EVENT": last_event}
    programs = {"first": first, "shop": "".join(shop) + ENDING[language] + fake}
    paid, sold = run(language, project, programs, **names)
    assert paid == "succeeded 5088\n"
    assert sold.splitlines() == [
        "pending refusé : other",
        "succeeded 400",
        "True succeeded",
        "refusé : other",
        "payment.succeeded",
    ]
