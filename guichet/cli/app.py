"""The command's tree. Each module of this room adds its own commands; only the one that a command needs is loaded."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_group

from guichet import __version__

#: Command → the module of this room that holds it, in the order of `guichet --help`.
_HOLDERS: Final = {
    "serve": "serve",
    "worker": "serve",
    "migrate": "serve",
    "demo": "demo",
    "listen": "listen",
    "simulator": "providers",
    "merchant": "merchants",
    "key": "keys",
    "wallet": "wallets",
    "mode": "modes",
    "ledger": "ledger",
    "reconcile": "reconcile",
    "operators": "providers",
    "incidents": "providers",
    "doctor": "doctor",
    "secret-key": "secret_key",
    "rotate-secrets": "secret_key",
}


class _Commands(Mapping[str, Any]):
    """Reads as typer's dictionary of commands; a module is imported when a command of its is asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            holder = import_module(f"guichet.cli.{_HOLDERS[name]}")
            apart = typer.Typer(rich_markup_mode="markdown", callback=_root)
            holder.register(apart)
            self._loaded |= get_group(apart).commands
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_HOLDERS)

    def __len__(self) -> int:
        return len(_HOLDERS)


class _Tree(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands()  # type: ignore[assignment]  # nobody adds to it


app = typer.Typer(
    name="guichet",
    cls=_Tree,
    help="Guichet: payment aggregation for Mobile Money and cards.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_say_version)
    ] = False,
) -> None:
    """What every command has in common."""
