"""`Containerfile` and `compose.yaml`: the same steps without a container, and what the files must keep saying.

No image is built here, because the base images come from a registry; docs/operations/containers.md says what that
leaves untested.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped,unused-ignore]

from guichet import __version__
from guichet.settings import VARIABLES
from tests.cli.conftest import ROOT, Cli, answers, until
from tests.cli.tree import parses
from tests.conftest import SECRET_KEY
from tests.patience import PATIENCE
from tests.ports import free_port

ENTRYPOINT: Final = ROOT / "docs" / "operations" / "containers" / "entrypoint.sh"
COMPOSE: Final[dict[str, Any]] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: Final[dict[str, dict[str, Any]]] = COMPOSE["services"]
OURS: Final = ("migrate", "server", "worker")
CONTAINERFILE: Final = (ROOT / "Containerfile").read_text(encoding="utf-8")
PAGE: Final = (ROOT / "docs" / "operations" / "containers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_can_change_nothing_but_its_data(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    user, _, group = service["user"].partition(":")
    assert int(user) > 0
    assert int(group) > 0
    assert "privileged" not in service
    # Named volumes only: no folder of the host.
    assert all(volume.partition(":")[0] in COMPOSE["volumes"] for volume in service.get("volumes", []))


@pytest.mark.parametrize("name", [name for name in SERVICES if name != "migrate"])
def test_what_keeps_running_has_a_health_check_and_starts_again(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
    assert SERVICES[name]["restart"] == "unless-stopped"


def test_the_schema_is_migrated_once_before_anything_serves() -> None:
    assert SERVICES["migrate"]["command"] == ["migrate"]
    assert SERVICES["migrate"]["restart"] == "no"
    assert SERVICES["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in ("server", "worker"):
        assert SERVICES[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


@pytest.mark.parametrize("name", OURS)
def test_commands_and_settings_are_those_of_guichet(name: str) -> None:
    service = SERVICES[name]
    known = {variable.name for variable in VARIABLES}
    assert parses(shlex.join(["guichet", *service["command"]]))
    assert set(service["environment"]) <= known
    assert set(re.findall(r"GUICHET_\w+", CONTAINERFILE)) <= known
    # A stop must last longer than the command needs for it.
    seconds = sum(int(value) for value in service["command"] if value.isdigit() and value != "8000")
    assert int(service.get("stop_grace_period", "10s").removesuffix("s")) > seconds + 2


def test_secrets_stand_in_files_only() -> None:
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    for name in OURS:
        assert SERVICES[name]["secrets"] == ["GUICHET_SECRET_KEYS", "GUICHET_DATABASE_URL"]
        assert not set(SERVICES[name]["secrets"]) & set(SERVICES[name]["environment"])
    assert set(COMPOSE["secrets"]) == {"GUICHET_SECRET_KEYS", "GUICHET_DATABASE_URL", "postgres_password"}
    for name, secret in COMPOSE["secrets"].items():
        assert secret == {"file": f"./secrets/{name}"}
    assert not re.search(r"password: (?!\{file)|postgresql://", text, re.IGNORECASE)
    assert "/secrets/\n" in (ROOT / ".gitignore").read_text(encoding="utf-8")


def test_only_the_server_is_reachable_and_only_from_its_own_machine() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"server": ["127.0.0.1:8000:8000"]}
    assert COMPOSE["networks"]["back"] == {"internal": True}
    assert SERVICES["postgres"]["networks"] == SERVICES["redis"]["networks"] == ["back"]
    [subnet] = COMPOSE["networks"]["front"]["ipam"]["config"]
    assert SERVICES["server"]["environment"]["GUICHET_TRUSTED_PROXIES"] == f"{subnet['gateway']}/32"


def test_the_image_has_no_root_and_what_it_copies_is_let_through() -> None:
    assert re.search(r"^USER 10001:10001$", CONTAINERFILE, re.MULTILINE)
    assert all(SERVICES[name]["user"] == "10001:10001" for name in OURS)
    allowed = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    copied = re.findall(r"^COPY (?!--from)(\S+) ", CONTAINERFILE, re.MULTILINE)
    assert sorted(copied) == sorted(allowed)
    assert ENTRYPOINT.relative_to(ROOT).as_posix() in copied
    assert os.access(ENTRYPOINT, os.X_OK)
    defaults = yaml.safe_load(re.findall(r"^CMD (.+)$", CONTAINERFILE, re.MULTILINE)[0])
    assert defaults == SERVICES["server"]["command"]


def test_versions_are_those_of_the_package() -> None:
    assert f"guichet:${{RELEASE:-{__version__}}}" in SERVICES["server"]["image"]
    for text in (CONTAINERFILE, PAGE):
        assert set(re.findall(r"guichet:(\d+\.\d+\.\d+)", text)) == {__version__}


class Container:
    """The entrypoint with a folder of secrets, and `guichet` on its PATH, as the image has them."""

    def __init__(self, folder: Path) -> None:
        self.secrets, programs = folder / "secrets", folder / "bin"
        self.secrets.mkdir()
        programs.mkdir()
        for name, command in (("guichet", "-m guichet"), ("python", "")):
            (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {command} "$@"\n')
            (programs / name).chmod(0o755)
        self.environ = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "LANG": "C.UTF-8",
            "SECRETS_FOLDER": str(self.secrets),
        }
        self.folder = folder

    def secret(self, name: str, value: str) -> None:
        (self.secrets / name).write_text(value)

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(ENTRYPOINT), *arguments],
            cwd=self.folder, env={**self.environ, **environ}, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def healthy(self, command: list[str], **environ: str) -> bool:
        done = subprocess.run(command, env={**self.environ, **environ}, capture_output=True, check=False)
        return done.returncode == 0

    @contextmanager
    def running(self, *arguments: str, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
        process = subprocess.Popen(
            [str(ENTRYPOINT), *arguments],
            cwd=self.folder, env={**self.environ, **environ}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return Container(tmp_path)


def test_the_entrypoint_makes_variables_of_secrets(container: Container) -> None:
    programs = container.folder / "bin"
    (programs / "guichet").write_text('#!/bin/sh\nenv\necho "arguments: $*"\n')
    container.secret("GUICHET_SECRET_KEYS", SECRET_KEY + "\n")
    container.secret("FEEXPAY_KEY", "two words; $HOME `id` 'x'")
    container.secret("postgres_password", "not ours")
    container.secret("1NOT", "not a name")

    shown = container.run("merchant", "create", "Boutique Awa").stdout

    assert f"GUICHET_SECRET_KEYS={SECRET_KEY}\n" in shown
    assert "FEEXPAY_KEY=two words; $HOME `id` 'x'\n" in shown
    assert "not ours" not in shown
    assert "not a name" not in shown
    assert "SECRETS_FOLDER" not in shown
    assert "arguments: merchant create Boutique Awa\n" in shown


def test_the_entrypoint_works_without_secrets(container: Container) -> None:
    container.secrets.rmdir()

    assert container.run("--version").stdout.strip().endswith(__version__)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_secret_that_cannot_be_read_stops_the_start(container: Container) -> None:
    container.secret("GUICHET_SECRET_KEYS", SECRET_KEY)
    (container.secrets / "GUICHET_SECRET_KEYS").chmod(0)

    ran = container.run("--version")

    assert ran.returncode == 1
    assert "may not read" in ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_the_steps_of_compose_without_containers(cli: Cli, container: Container) -> None:
    """migrate, then a server and a worker, their health checks, a merchant, a payment, and a stop in time."""
    container.secret("GUICHET_SECRET_KEYS", SECRET_KEY)
    container.secret("GUICHET_DATABASE_URL", cli.environ["GUICHET_DATABASE_URL"])
    home = container.folder / "home"
    own = {"GUICHET_PUBLIC_URL": "https://pay.example.com", "GUICHET_HOME": str(home), "GUICHET_REDIS_URL": ""}
    given = {**SERVICES["server"]["environment"], **own}
    assert container.run("migrate", **given).returncode == 0
    key = cli("merchant", "create", "Boutique Awa", "--json").json["keys"]["test"]

    ports = {"8000": str(free_port()), "18000": str(free_port())}
    serve = [ports.get(each, each) for each in SERVICES["server"]["command"]]
    checks = {}
    for name in ("server", "worker"):
        (kind, *check) = SERVICES[name]["healthcheck"]["test"]
        assert kind == "CMD"
        checks[name] = [re.sub(r"(?<=:)(8000|18000)(?=/)", lambda port: ports[port[0]], part) for part in check]
    working = {**given, "GUICHET_METRICS_PORT": ports["18000"]}
    assert not container.healthy(checks["server"])
    assert not container.healthy(checks["worker"])
    work = SERVICES["worker"]["command"]
    with container.running(*serve, **given) as server, container.running(*work, **working) as worker:
        # A check starts a Python of its own, so it comes when there is an answer.
        until(lambda: answers(f"http://127.0.0.1:{ports['8000']}/readyz"))
        until(lambda: container.healthy(checks["server"]))
        until(lambda: answers(f"http://127.0.0.1:{ports['18000']}/metrics"))
        until(lambda: container.healthy(checks["worker"]))
        request = urllib.request.Request(
            f"http://127.0.0.1:{ports['8000']}/v1/payments",
            b'{"amount": 5000, "operator": "mtn", "phone_number": "2290197000000"}',
            {"Authorization": f"Bearer {key}"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            assert answer.status == 201
        for process, name in ((server, "server"), (worker, "worker")):
            process.send_signal(signal.SIGTERM)
            assert process.wait(int(SERVICES[name]["stop_grace_period"].removesuffix("s"))) == 0
