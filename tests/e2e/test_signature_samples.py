"""The receivers that merchants copy from the guide accept what Guichet signs, and nothing else."""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from guichet.clock import SECOND, SystemClock
from guichet.domain.events import SIGNATURE_AGE
from guichet.webhooks.sender import sign
from tests.patience import PATIENCE

SAMPLES = Path(__file__).parents[2] / "docs" / "samples"
SECRET = "whsec_" + "Ab3" * 13 + "x"
BODY = json.dumps(
    {"event": "payment.succeeded", "data": {"amount": 5000, "description": "Café à Thiès ☕"}}, ensure_ascii=False
).encode()


#: Each calls the function of the sample with the arguments that stand in a line of JSON, as often as there is a line,
#: and prints what it returned, or `error` and the message of what was thrown. An argument without a key is null.
CALLERS = {
    "python": """
import base64, json, os, runpy, sys
verify = runpy.run_path(os.environ["SAMPLE"])["verify_signature"]
for line in sys.stdin:
    given = json.loads(line)
    try:
        body = base64.b64decode(given["body"])
        print(json.dumps(verify(given.get("secret"), given.get("header"), body)), flush=True)
    except Exception as error:
        print("error", error, flush=True)
""",
    "php": """
require getenv('SAMPLE');
while (($line = fgets(STDIN)) !== false) {
    $given = json_decode($line, true);
    try {
        $body = base64_decode($given['body']);
        echo json_encode(verify_signature($given['secret'] ?? null, $given['header'] ?? null, $body)), "\\n";
    } catch (Throwable $error) {
        echo 'error ', $error->getMessage(), "\\n";
    }
}
""",
    "node": """
import { createInterface } from "node:readline";
const { verifySignature } = await import(`file://${process.env.SAMPLE}`);
for await (const line of createInterface({ input: process.stdin })) {
  const given = JSON.parse(line);
  try {
    const body = Buffer.from(given.body, "base64");
    console.log(JSON.stringify(verifySignature(given.secret, given.header, body)));
  } catch (error) {
    console.log("error", error.message);
  }
}
""",
}
OPTIONS = {"python": ["-c"], "php": ["-r"], "node": ["--input-type=module", "-e"]}


@dataclass(frozen=True)
class Sample:
    """A receiver: its command line, and a process that calls its function."""

    command: list[str]
    caller: subprocess.Popen[str]

    def called(self, body: bytes = BODY, **arguments: object) -> str:
        """What a merchant's own code gets from the function."""
        assert self.caller.stdin is not None
        assert self.caller.stdout is not None
        self.caller.stdin.write(json.dumps({"body": base64.b64encode(body).decode(), **arguments}) + "\n")
        self.caller.stdin.flush()
        return self.caller.stdout.readline().strip()

    def accepts(self, header: str, body: bytes = BODY, secret: str = SECRET) -> bool:
        said = self.called(body, secret=secret, header=header)
        assert said in ("true", "false"), said
        return said == "true"

    def ran(self, header: str, body: bytes = BODY) -> subprocess.CompletedProcess[bytes]:
        """The sample's own command."""
        environ = {**os.environ, "WEBHOOK_SECRET": SECRET}
        return subprocess.run(
            [*self.command, header], input=body, env=environ, capture_output=True, timeout=PATIENCE, check=False
        )


@pytest.fixture(params=["python", "php", "node"], scope="module")
def sample(request: pytest.FixtureRequest) -> Iterator[Sample]:
    language: str = request.param
    suffix = {"python": "py", "php": "php", "node": "mjs"}[language]
    program = sys.executable if language == "python" else shutil.which(language)
    if program is None:
        pytest.skip(f"{language} is not installed: the guide's {language} receiver was NOT checked against our signer")
    file = str(SAMPLES / f"verify_signature.{suffix}")
    with subprocess.Popen(
        [program, *OPTIONS[language], CALLERS[language]],
        env={**os.environ, "SAMPLE": file},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as caller:
        yield Sample([program, file], caller)
        assert caller.communicate(timeout=20) == ("", "")


def now() -> int:
    return SystemClock().now() // SECOND


def test_what_guichet_signs_is_accepted(sample: Sample) -> None:
    header = sign(SECRET, now(), BODY)
    done = sample.ran(header)

    assert sample.accepts(header)
    assert not sample.accepts(header.replace("v1=", "v1=0"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    "body",
    [b"", b"{}\n", '{"nom":"N\'Guessan Éloïse – Côte d\'Ivoire 💸"}'.encode(), b'{"a":"\\u00e9"}\r\n', b"\xff\x00\n"],
)
def test_any_body_is_taken_byte_for_byte(sample: Sample, body: bytes) -> None:
    header = sign(SECRET, now(), body)

    assert sample.accepts(header, body)
    assert not sample.accepts(header, body + b" ")


def test_an_altered_body_is_refused(sample: Sample) -> None:
    header, altered = sign(SECRET, now(), BODY), BODY.replace(b"5000", b"9000")
    done = sample.ran(header, altered)

    assert not sample.accepts(header, altered)
    # A crash also exits with 1 in all three languages; only a 1 without output is a refused signature.
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


def test_another_secret_is_refused(sample: Sample) -> None:
    header = sign(SECRET, now(), BODY)

    assert not sample.accepts(header, secret=SECRET[:-1] + "y")
    assert not sample.accepts(header, secret=SECRET.removeprefix("whsec_"))


def test_an_old_signature_is_refused_and_a_slow_one_is_not(sample: Sample) -> None:
    assert not sample.accepts(sign(SECRET, now() - SIGNATURE_AGE - 5, BODY))
    assert sample.accepts(sign(SECRET, now() - SIGNATURE_AGE + 30, BODY))
    assert not sample.accepts(sign(SECRET, now() + SIGNATURE_AGE + 30, BODY))
    assert not sample.accepts(sign(SECRET, now() + 365 * 86400, BODY))


def test_an_old_signature_is_not_made_young_by_another_time(sample: Sample) -> None:
    old = sign(SECRET, now() - 2 * SIGNATURE_AGE, BODY)
    signature = old.partition(",")[2]

    assert not sample.accepts(f"t={now()},{signature}")
    assert not sample.accepts(f"t={now()},{old}")
    assert not sample.accepts(f"{old},t={now()}")


def test_two_times_are_refused(sample: Sample) -> None:
    header = sign(SECRET, now(), BODY)

    assert not sample.accepts(f"{header},t={now() - 1}")


def test_one_good_signature_among_several_is_enough(sample: Sample) -> None:
    header = sign(SECRET, now(), BODY)
    time, _, good = header.partition(",")

    assert sample.accepts(f"{time},v1={'0' * 64},{good}")
    assert sample.accepts(f"{time}, {good}, v1=, v2=something")
    assert not sample.accepts(f"{time},v1={'0' * 64},v1=,v2={good.removeprefix('v1=')}")


@pytest.mark.parametrize(
    "header", ["", ",", "=", "t", "t=,v1=", "v1=abc", "t=abc,v1=abc", "t=²,v1=abc", "t=-1,v1=é", "t=" + "9" * 400]
)
def test_a_header_that_says_nothing_is_refused(sample: Sample, header: str) -> None:
    assert not sample.accepts(header)


def test_a_signature_cut_short_or_without_its_time_is_refused(sample: Sample) -> None:
    header = sign(SECRET, now(), BODY)

    assert not sample.accepts(header[:-1])
    assert not sample.accepts(header.partition(",")[0])
    assert not sample.accepts(header.partition(",")[2])
    assert not sample.accepts(header.replace("v1=", "v0="))


@pytest.mark.parametrize("secret", ["", " ", "\n", "\t "])
def test_an_empty_secret_is_refused_loudly(sample: Sample, secret: str) -> None:
    """Anybody can sign with an empty key: a forgery must not pass because a variable was not set."""
    forged = sign(secret, now(), BODY)

    assert sample.called(secret=secret, header=forged).startswith("error Le secret du webhook est vide")
    assert sample.called(secret=secret).startswith("error Le secret du webhook est vide")


def test_no_secret_at_all_is_refused_loudly(sample: Sample) -> None:
    assert sample.called(header=sign("", now(), BODY)).startswith("error ")


@pytest.mark.parametrize("secret", [None, ""])
def test_the_command_line_does_not_verify_without_a_secret(sample: Sample, secret: str | None) -> None:
    environ = {name: value for name, value in os.environ.items() if name != "WEBHOOK_SECRET"}
    done = subprocess.run(
        [*sample.command, sign("", now(), BODY)],
        input=BODY,
        env=environ if secret is None else {**environ, "WEBHOOK_SECRET": secret},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode != 0
    assert "Le secret du webhook est vide" in (done.stdout + done.stderr).decode()


@pytest.mark.parametrize("header", [None, [], ["t=1,v1=2"], {}, 5, True])
def test_a_header_that_is_missing_or_no_text_is_refused(sample: Sample, header: object) -> None:
    """Frameworks give null for a missing header, and some give lists of values."""
    assert sample.called(secret=SECRET, header=header) == "false"


def test_the_php_sample_works_inside_a_function(tmp_path: Path) -> None:
    """A plugin includes it where it is needed, perhaps twice, and some paste it into a function."""
    program = shutil.which("php")
    if program is None:
        pytest.skip("php is not installed: the guide's PHP receiver was NOT included by a function")
    header = sign(SECRET, now(), BODY)
    shop = tmp_path / "shop.php"
    shop.write_text(
        """<?php
        function handle(string $header, string $body): bool {
            require_once getenv('SAMPLE');
            return verify_signature(getenv('WEBHOOK_SECRET'), $header, $body);
        }
        $body = file_get_contents('php://stdin');
        echo json_encode([handle($argv[1], $body), handle($argv[1], $body), handle('t=1,v1=x', $body)]);
        """,
        encoding="utf-8",
    )
    environ = {**os.environ, "WEBHOOK_SECRET": SECRET, "SAMPLE": str(SAMPLES / "verify_signature.php")}
    done = subprocess.run([program, str(shop), header], input=BODY, env=environ, capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (b"[true,true,false]", b"")
