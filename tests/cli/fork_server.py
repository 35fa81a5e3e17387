"""Imported by the process from which commands are forked (child.py, shell.py). The command loads each module when it is
needed; here all are, before the fork."""

import gc
from importlib import import_module
from pkgutil import walk_packages
from typing import Final

import guichet
import guichet_demo
import guichet_simulator
from tests.cli import shell
from tests.cli.tree import leaves

__all__ = ["shell"]

#: What is no module to import, and what few commands need and takes long.
_LEFT_OUT: Final = ("__main__", "guichet.cli.mcp_server", "guichet.otlp")
#: What others import when they first need it: for a page of help that is more than half of a command's time.
_LATER: Final = (
    *("encodings.idna", "importlib.resources._itertools", "importlib.resources.readers", "sqlite3"),
    *("pydantic.plugin._loader", "redis.asyncio", "rich._emoji_codes", "rich.traceback"),
    *("typer._adapters", "typer._click._textwrap", "typer._click.decorators", "typer.rich_utils"),
    *("uvicorn.protocols.http.httptools_impl", "uvloop"),
)

list(leaves())
for _package in (guichet, guichet_demo, guichet_simulator):
    for _module in walk_packages(_package.__path__, f"{_package.__name__}."):
        if not _module.name.endswith(_LEFT_OUT) and ".versions" not in _module.name:
            import_module(_module.name)
for _name in _LATER:
    import_module(_name)
# A page of memory that the garbage collector marks in a child is copied for it.
gc.collect()
gc.freeze()
