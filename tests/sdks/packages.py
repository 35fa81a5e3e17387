"""Each library packed as it would be published, and installed from its package into an empty project."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.frozen.libraries import SDKS

DRIVERS: Final = Path(__file__).with_name("drivers")
NODE_MODULES: Final = SDKS.parent / "clients" / "node_modules"
_NEEDED: Final = {"python": (), "typescript": ("node", "npm"), "php": ("php", "composer")}


@dataclass(frozen=True)
class Installed:
    """A project into which a library was installed. `run`: what runs a file there."""

    folder: Path
    run: Sequence[str]
    environment: Mapping[str, str]


def missing(language: str) -> list[str]:
    """What installing this library needs and is not there."""
    found = [each for each in _NEEDED[language] if shutil.which(each) is None]
    if language == "typescript" and not (NODE_MODULES / "typescript").is_dir():
        found.append("clients/node_modules")
    if language == "php" and not found and "curl" not in _output(["php", "-m"], SDKS):
        found.append("php-curl")
    return found


def install(language: str, folder: Path) -> Installed:
    """`folder` must be empty."""
    source = folder / "source"
    ignored = shutil.ignore_patterns("dist", "node_modules", "vendor", "*.egg-info", "__pycache__")
    shutil.copytree(SDKS / language, source, ignore=ignored)
    project = folder / "project"
    project.mkdir()
    return {"python": _python, "typescript": _typescript, "php": _php}[language](source, folder, project)


def _python(source: Path, folder: Path, project: Path) -> Installed:
    """The wheel is built from the source archive, so that both are whole."""
    build = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"
    archive = _output([sys.executable, "-c", build, "build_sdist", str(folder)], source).splitlines()[-1]
    with tarfile.open(folder / archive) as packed:
        packed.extractall(folder / "unpacked", filter="data")
    [unpacked] = (folder / "unpacked").iterdir()
    wheel = _output([sys.executable, "-c", build, "build_wheel", str(folder)], unpacked).splitlines()[-1]
    with zipfile.ZipFile(folder / wheel) as packed_wheel:  # A pure wheel is installed by unpacking it.
        packed_wheel.extractall(project / "site")
    return Installed(project, [sys.executable], {"PYTHONPATH": str(project / "site")})


def _typescript(source: Path, folder: Path, project: Path) -> Installed:
    (source / "node_modules").symlink_to(NODE_MODULES)
    path = {"PATH": f"{NODE_MODULES / '.bin'}:{os.environ['PATH']}"}
    archive = _output(["npm", "pack", "--silent", "--pack-destination", str(folder)], source, path).splitlines()[-1]
    (project / "package.json").write_text('{"name": "shop", "private": true}')
    quiet = ["--offline", "--silent", "--no-audit", "--no-fund"]
    _output(["npm", "install", *quiet, str(folder / archive)], project)
    return Installed(project, ["node"], {})


def _php(source: Path, folder: Path, project: Path) -> Installed:
    environment = {"COMPOSER_HOME": str(folder / "composer"), "COMPOSER_ALLOW_SUPERUSER": "1"}
    packed = ["composer", "archive", "--quiet", "--no-interaction", "--format=tar", f"--dir={folder}", "--file=sdk"]
    _output(packed, source, environment)
    with tarfile.open(folder / "sdk.tar") as archive:
        archive.extractall(folder / "sdk", filter="data")
    (project / "composer.json").write_text(
        '{"repositories": [{"type": "path", "url": "../sdk", "options": {"symlink": false}}, {"packagist.org": false}],'
        ' "require": {"guichet/sdk": "^1.0"}}'
    )
    _output(["composer", "install", "--quiet", "--no-interaction"], project, environment)
    return Installed(project, ["php", "-d", "error_reporting=-1", "-d", "display_errors=stderr"], {})


def _output(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    run = subprocess.run(
        command, cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, f"{command}\n{run.stdout}\n{run.stderr}"
    return run.stdout
