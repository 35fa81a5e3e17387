"""`make dist`: the source archive, the wheel and the WooCommerce plugin of the last commit, in `dist/`.

The same commit gives the same bytes: what is built is what `git archive` gives, and every time in it is the commit's
(SOURCE_DATE_EPOCH). To be sure of that, everything is built twice and compared. The wheel is built from the source
archive, which proves that nothing is missing there. No network is needed: setuptools is one of our own requirements.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from release import woocommerce

ROOT: Final = Path(__file__).parents[1]
_BUILD: Final = "import sys; from setuptools import build_meta; print(build_meta.{hook}(sys.argv[1]))"


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve()
    if _git("status", "--porcelain", "--untracked-files=no").strip():
        print("Changes that are not committed are left out.", file=sys.stderr)
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        built, again = build(Path(first)), build(Path(second))
        for one, other in zip(built, again, strict=True):
            if (one.name, one.read_bytes()) != (other.name, other.read_bytes()):
                sys.exit(f"✗ {one.name} is not reproducible: two builds of one commit differ.")
        target.mkdir(parents=True, exist_ok=True)
        for file in built:
            shutil.copyfile(file, target / file.name)
            print(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {target / file.name}")


def build(folder: Path) -> list[Path]:
    """The source archive, the wheel and the WooCommerce plugin, in `folder`."""
    os.umask(0o022)
    source, unpacked, out = (folder / name for name in ("source", "unpacked", "out"))
    for each in (source, unpacked, out):
        each.mkdir()
    epoch = int(_git("log", "-1", "--format=%ct"))
    _export(source)
    sdist = out / _run_hook("build_sdist", source, out, epoch)
    _normalise(sdist, epoch)
    _unpack(sdist.read_bytes(), unpacked, "-z")
    wheel = out / _run_hook("build_wheel", unpacked / sdist.name.removesuffix(".tar.gz"), out, epoch)
    return [sdist, wheel, woocommerce.pack(source, out)]


def _export(folder: Path) -> None:
    """The files of the last commit; a symbolic link becomes what it leads to."""
    archive = subprocess.run(
        ["git", "-c", "tar.umask=0022", "archive", "--format=tar", "HEAD"], cwd=ROOT, check=True, capture_output=True
    )
    _unpack(archive.stdout, folder)
    for link in [path for path in folder.rglob("*") if path.is_symlink()]:
        content = link.read_bytes()
        link.unlink()
        link.write_bytes(content)


def _unpack(archive: bytes, folder: Path, *options: str) -> None:
    subprocess.run(["tar", "-x", *options, "-f", "-", "-C", str(folder)], input=archive, check=True)


def _run_hook(hook: str, source: Path, out: Path, epoch: int) -> str:
    """The name of the file that a hook of setuptools (PEP 517) made, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _BUILD.format(hook=hook), str(out)],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"✗ {hook} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.splitlines()[-1]


def _normalise(sdist: Path, epoch: int) -> None:
    """Writes the archive again: sorted, with the commit's time, and without whose files they were."""
    with tarfile.open(sdist) as archive:
        members = [(member, archive.extractfile(member)) for member in archive.getmembers()]
        draft = sdist.with_suffix(".new")
        with (
            draft.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=epoch) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as out,
        ):
            for member, content in sorted(members, key=lambda each: each[0].name):
                plain = tarfile.TarInfo(member.name)
                plain.type, plain.size, plain.mtime = member.type, member.size, epoch
                plain.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
                out.addfile(plain, content)
    draft.replace(sdist)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
