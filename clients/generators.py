"""How the clients are generated from the document, compiled, and run.

Each has a folder of its own in `clients/build`, with the document and the sample; the generated code goes into
`generated`. A command that fails ends the run with its output.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final
from uuid import uuid4

from clients.demo import Demo

FOLDER: Final = Path(__file__).parent
BUILD: Final = FOLDER / "build"
_NODE_PROGRAMS: Final = FOLDER / "node_modules" / ".bin"
#: For a Java that runs for some seconds only: compiling less costs half of the time.
_SHORT_LIVED: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_TSC: Final = (
    str(_NODE_PROGRAMS / "tsc"), "--strict", "--skipLibCheck", "--esModuleInterop",
    "--target", "es2022", "--module", "commonjs", "--moduleResolution", "node10", "--types", "node", "--outDir", "js",
)  # fmt: skip
#: From Debian's packages, since no registry of PHP or of Java may be within reach.
_GUZZLE: Final = "/usr/share/php/GuzzleHttp/autoload.php"
_JARS: Final = ("/usr/share/java/geronimo-annotation-1.3-spec.jar", "/usr/share/java/jsr305.jar")


class StepFailed(Exception):
    """A command failed; says which one and what it printed."""


@dataclass(frozen=True)
class Client:
    """`generator` is the name that openapi-generator knows, None for openapi-typescript. `needs` are programs on the
    path, `files` what Debian puts elsewhere; `node` tells whether `clients/node_modules` is needed. `compile` gives
    commands, once the code is generated; `environment` is added to that of every command."""

    name: str
    sample: str
    needs: tuple[str, ...]
    compile: Callable[[Path], list[list[str]]]
    run: tuple[str, ...]
    generator: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    node: bool = False
    files: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return BUILD / self.name

    def missing(self) -> list[str]:
        """What is not installed here and this client needs."""
        found = [program for program in self.needs if shutil.which(program) is None]
        found += [file for file in self.files if not Path(file).exists()]
        if self.generator and shutil.which("java") is None:
            found.append("java")
        if self.generator and _jar() is None:
            found.append("openapi-generator-cli (make .venv/clients)")
        if self.node and not _NODE_PROGRAMS.is_dir():
            found.append("clients/node_modules (make clients/node_modules)")
        return found


def _typescript(_: Path) -> list[list[str]]:
    return [[*_TSC, "sample.ts"]]


def _php(folder: Path) -> list[list[str]]:
    vendor = folder / "vendor"
    vendor.mkdir()
    shutil.copy(FOLDER / "samples" / "autoload.php", vendor)
    return [["php", "-d", "error_reporting=E_ALL", "vendor/autoload.php"]]


def _go(folder: Path) -> list[list[str]]:
    module = (
        "module sample\n\ngo 1.19\n\nrequire example.com/guichet v0.0.0\n\nreplace example.com/guichet => ./generated\n"
    )
    (folder / "go.mod").write_text(module)
    return [["go", "vet", "./..."], ["go", "build", "-o", "sample", "."], ["go", "vet", "example.com/guichet"]]


def _java(folder: Path) -> list[list[str]]:
    sources = [str(path.relative_to(folder)) for path in sorted(folder.glob("generated/src/main/java/**/*.java"))]
    return [["javac", "-Xlint:-options", "-d", "classes", "-cp", _java_class_path(), *sources, "Sample.java"]]


def _java_class_path() -> str:
    """Jackson comes with openapi-generator's own jar; the annotations are Debian's."""
    return ":".join(["classes", str(_jar()), *_JARS])


def _jar() -> Path | None:
    """openapi-generator, out of its wheel; None where that is not installed."""
    found = importlib.util.find_spec("openapi_generator_cli")
    return Path(found.origin).parent / "openapi-generator.jar" if found and found.origin else None


def _python(folder: Path) -> list[list[str]]:
    shutil.copy(folder / "sample.py", folder / "generated")
    return [[sys.executable, "-m", "compileall", "-q", "generated"]]


CLIENTS: Final = (
    Client("openapi-typescript", "openapi_typescript.ts", ("node",), _typescript, ("node", "js/sample.js"), node=True),
    Client(
        "typescript-fetch", "typescript_fetch.ts", ("node",), _typescript, ("node", "js/sample.js"), "typescript-fetch",
        node=True,
    ),
    Client(
        "typescript-axios", "typescript_axios.ts", ("node",), _typescript, ("node", "js/sample.js"), "typescript-axios",
        node=True,
    ),
    Client(
        "php", "sample.php", ("php",), _php, ("php", "-d", "error_reporting=E_ALL", "sample.php"), "php",
        {"invokerPackage": "Guichet"}, files=(_GUZZLE,),
    ),
    Client(
        "python", "sample.py", (), _python, (sys.executable, "generated/sample.py"), "python",
        {"packageName": "guichet_client"},
    ),
    Client(
        "go", "sample.go", ("go",), _go, ("./sample",), "go", {"packageName": "guichet"},
        environment={"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local"},
    ),
    Client(
        "java", "Sample.java", ("java", "javac"), _java, ("java", "-cp", _java_class_path(), "Sample"), "java",
        {"library": "native", "invokerPackage": "guichet.client", "apiPackage": "guichet.client.api",
         "modelPackage": "guichet.client.model", "openApiNullable": "false"}, files=_JARS,
    ),
)  # fmt: skip


def generate(clients: Iterable[Client], demo: Demo) -> None:
    """The code of these clients in folders that are made anew. One Java writes it for all: starting it and reading the
    document take longer than writing. Raises StepFailed."""
    document = demo.document()
    configured = []
    for client in clients:
        shutil.rmtree(client.folder, ignore_errors=True)
        client.folder.mkdir(parents=True)
        (client.folder / "document.json").write_bytes(document)
        sample = "Sample.java" if client.name == "java" else f"sample{Path(client.sample).suffix}"
        shutil.copy(FOLDER / "samples" / client.sample, client.folder / sample)
        if client.generator is None:
            program = str(_NODE_PROGRAMS / "openapi-typescript")
            _execute(client.folder, [program, "document.json", "-o", "generated/schema.ts"])
        else:
            (client.folder / "generator.json").write_text(json.dumps(_configuration(client)), encoding="utf-8")
            configured.append(f"{client.name}/generator.json")
    if configured:
        _execute(BUILD, ["java", *_SHORT_LIVED, "-jar", str(_jar()), "batch", "--fail-fast", "--", *configured])


def build_and_run(client: Client, demo: Demo) -> None:
    """Compiles a generated client, and lets its sample create, read and refund a payment. Raises StepFailed."""
    for command in client.compile(client.folder):
        _execute(client.folder, command, client.environment)
    external_id = f"{client.name}-{uuid4().hex[:8]}"
    environment = {**client.environment, "GUICHET": f"{demo.url}/v1", "CLE": demo.key}
    _execute(client.folder, [*client.run, external_id], environment)
    status = demo.payment(external_id)["status"]
    if status != "refunded":
        raise StepFailed(f"{client.name}: the sample's payment is {status}, not refunded")


def _configuration(client: Client) -> Mapping[str, object]:
    return {
        "generatorName": client.generator,
        "inputSpec": f"{client.name}/document.json",
        "outputDir": f"{client.name}/generated",
        "gitHost": "example.com",
        "gitUserId": "guichet",
        "globalProperties": dict.fromkeys(("apiTests", "modelTests", "apiDocs", "modelDocs"), "false"),
        "additionalProperties": {"hideGenerationTimestamp": "true", **client.properties},
    }


def _execute(folder: Path, command: list[str], environment: Mapping[str, str] = MappingProxyType({})) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    with (folder / "log.txt").open("a", encoding="utf-8") as log:
        log.write(f"$ {' '.join(command)}\n{done.stdout}")
    if done.returncode:
        raise StepFailed(f"{folder.name}: {' '.join(command[:4])} … failed\n{done.stdout[-4000:]}")
