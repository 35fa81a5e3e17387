"""`make dist`: what it makes is complete, reproducible, and works where nothing else of this checkout is."""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

import pytest

import release.__main__ as release
from guichet import __version__
from tests.cli.conftest import ROOT
from tests.cli.test_demo import pasted
from tests.made_once import made_once
from tests.patience import PATIENCE
from tests.ports import free_port

#: Five to ten seconds for a build on a quiet machine.
pytestmark = pytest.mark.slow


GUIDES = ("guide-marchand.md", "guide-webhooks.md")


@dataclass(frozen=True)
class Distribution:
    sdist: Path
    wheel: Path


#: One build of the two that `make dist` makes and compares.
_ONCE: Final = "import sys, pathlib; from release.__main__ import build; build(pathlib.Path(sys.argv[1]))"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    def make(folder: Path) -> None:
        subprocess.run([sys.executable, "-c", _ONCE, str(folder)], cwd=ROOT, check=True, capture_output=True)

    return _found(made_once(tmp_path_factory, "dist", make) / "out")


def _found(folder: Path) -> Distribution:
    [sdist], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return Distribution(sdist, wheel)


def _committed(*folders: str) -> set[str]:
    listed = ["git", "ls-tree", "-r", "--name-only", "HEAD", *folders]
    return set(subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines())


def test_the_wheel_has_every_file_of_the_packages_and_no_other(built: Distribution) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        guides = {name: wheel.read(f"guichet/data/{name}").decode() for name in GUIDES}
        [metadata] = [wheel.read(name).decode() for name in wheel.namelist() if name.endswith("/METADATA")]

    assert names == _committed("guichet", "guichet_demo", "guichet_simulator")
    assert guides == {name: _shown(f"docs/{name}") for name in guides}
    assert f"\nVersion: {__version__}\n" in metadata
    required = set(re.findall(r"^Requires-Dist: ([\w.\[\]-]+)", metadata.partition("\n\n")[0], re.MULTILINE))
    assert {re.split(r"[>=]", line)[0] for line in _shown("requirements/runtime.in").splitlines()} <= required


def _shown(file: str) -> str:
    return subprocess.run(["git", "show", f"HEAD:{file}"], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_the_source_archive_has_every_file(built: Distribution) -> None:
    with tarfile.open(built.sdist) as sdist:
        members = sdist.getmembers()

    files = {member.name.partition("/")[2] for member in members if not member.isdir()}
    assert _committed() <= files
    assert {name.partition("/")[0] for name in files - _committed()} == {"PKG-INFO", "setup.cfg", "guichet.egg-info"}
    assert {(member.uid, member.gid, member.uname, member.gname) for member in members} == {(0, 0, "", "")}


def test_the_same_commit_gives_the_same_bytes(built: Distribution, tmp_path: Path) -> None:
    """Also for somebody else, elsewhere, on another day."""
    time.sleep(max(0.0, built.wheel.stat().st_mtime + 2 - time.time()))  # Archives count in seconds, some in two.
    old = os.umask(0o077)
    try:
        elsewhere = {**os.environ, "TZ": "Asia/Kolkata", "LC_ALL": "C", "PYTHONHASHSEED": "7"}
        command = [sys.executable, "-c", _ONCE, str(tmp_path)]
        subprocess.run(command, cwd=ROOT, env=elsewhere, check=True, capture_output=True)
    finally:
        os.umask(old)

    again = _found(tmp_path / "out")
    assert again.sdist.name == built.sdist.name == f"guichet-{__version__}.tar.gz"
    assert again.sdist.read_bytes() == built.sdist.read_bytes()
    assert again.wheel.read_bytes() == built.wheel.read_bytes()


def test_what_two_builds_make_differently_is_not_released(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    contents = iter((b"same", b"same", b"same", b"other"))

    def build(folder: Path) -> list[Path]:
        (folder / "guichet.whl").write_bytes(next(contents))
        return [folder / "guichet.whl"]

    monkeypatch.setattr("release.__main__.build", build)
    monkeypatch.setattr(sys, "argv", ["release", str(tmp_path / "dist")])
    release.main()
    assert (tmp_path / "dist" / "guichet.whl").read_bytes() == b"same"
    monkeypatch.setattr(sys, "argv", ["release", str(tmp_path / "other")])
    with pytest.raises(SystemExit, match="is not reproducible"):
        release.main()
    assert not (tmp_path / "other").exists()


@pytest.fixture(scope="module")
def installed(built: Distribution, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of a virtual environment with the wheel. What it requires comes from the environment of the tests, so
    that no network is needed; but not Guichet, which a `.pth` file of its own makes importable there."""
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    install = ["install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", str(built.wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *install], check=True)
    [site] = folder.glob("lib/python*/site-packages")
    (site / "requirements.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return folder / "bin"


@contextmanager
def _demo(programs: Path, folder: Path) -> Iterator[str]:
    """What a running `guichet demo` printed; only the essential variables are set."""
    environ = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder), "LANG": "C.UTF-8"}
    process = subprocess.Popen(
        [str(programs / "guichet"), "demo", "--port", str(free_port())],
        cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        text = ""
        while "Ctrl-C" not in text:
            line = process.stdout.readline()
            assert line, process.communicate()
            text += line
        yield text
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def test_the_installed_wheel_takes_a_payment(installed: Path, tmp_path: Path) -> None:
    with _demo(installed, tmp_path) as text:
        create, read, _ = [line for line in text.splitlines() if line.startswith("curl ")]
        assert pasted(create)["status"] == "pending"
        assert pasted(read)["status"] == "succeeded"
        root = shlex.split(read)[2].partition("/v1/")[0]
        key = re.findall(r"sk_test_\w+", text)[0]
        card = pasted(
            f"curl -s {root}/v1/payments -H 'Authorization: Bearer {key}' -d "
            '\'{"amount": 5000, "operator": "VISA", "customer": '
            '{"firstname": "Awa", "lastname": "Diop", "email": "awa@example.com"}}\''
        )
        for address in (f"{root}/docs", f"{root}/docs/guide", f"{root}/simulator/phone", str(card["payment_url"])):
            with urlopen(Request(address, headers={"Accept": "text/html"}), timeout=PATIENCE) as page:
                assert page.status == 200
    where = [str(installed / "python"), "-c", "import guichet; print(guichet.__file__)"]
    file = subprocess.run(where, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert Path(file.strip()).is_relative_to(installed.parent)
