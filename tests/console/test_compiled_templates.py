"""Compiled templates are kept in files for the next process, which reads them while they are what it would make."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from guichet.pages.render import Renderer


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "static").mkdir()
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "page.html").write_text('{{ _("hello") }} {{ view.name }}')
    _write(tmp_path, "Bonjour", "Hello")
    return tmp_path


def _write(folder: Path, *texts: str) -> None:
    for language, text in zip(("fr", "en"), texts, strict=True):
        messages = folder / "locale" / language / "LC_MESSAGES"
        messages.mkdir(parents=True, exist_ok=True)
        (messages / "page.po").write_text(f'msgid "hello"\nmsgstr "{text}"\n')


def _page(folder: Path, language: str) -> str:
    """As a new process shows it."""
    renderer = Renderer(folder, "/assets")
    return renderer.page(language, "page.html", None, view=SimpleNamespace(name="Awa")).decode()


def _kept(folder: Path) -> set[tuple[str, int]]:
    return {(file.name, file.stat().st_ino) for file in (folder / "__pycache__").glob("*.template")}


def test_the_next_process_reads_what_the_first_compiled(folder: Path) -> None:
    assert (_page(folder, "fr"), _page(folder, "en")) == ("Bonjour Awa", "Hello Awa")
    kept = _kept(folder)
    assert len(kept) == 2
    assert (_page(folder, "fr"), _page(folder, "en")) == ("Bonjour Awa", "Hello Awa")
    assert _kept(folder) == kept, "read, not written again"


def test_a_changed_text_and_a_changed_template_are_compiled_anew(folder: Path) -> None:
    _page(folder, "fr")
    _write(folder, "Bonsoir", "Hello")
    assert _page(folder, "fr") == "Bonsoir Awa"
    (folder / "templates" / "page.html").write_text("{{ view.name }}")
    assert _page(folder, "fr") == "Awa"


@pytest.mark.parametrize("content", [b"", b"j2", b"\0" * 4096], ids=["empty", "short", "other"])
def test_a_damaged_file_is_compiled_anew(folder: Path, content: bytes) -> None:
    _page(folder, "fr")
    [file] = (folder / "__pycache__").glob("*.template")
    file.write_bytes(content)
    assert _page(folder, "fr") == "Bonjour Awa"


def test_a_folder_that_cannot_be_written_is_no_fault(folder: Path) -> None:
    (folder / "__pycache__").write_text("a file stands in its place")
    assert _page(folder, "fr") == "Bonjour Awa"


def test_all_can_be_compiled_ahead(folder: Path) -> None:
    Renderer(folder, "/assets").compile()
    kept = _kept(folder)
    assert _page(folder, "en") == "Hello Awa"
    assert _kept(folder) == kept
