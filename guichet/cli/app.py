"""The tree of commands. The module of a command is imported only when that command is needed."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_group

from guichet import __version__

#: Command → the module of this package that defines it, in the order of `guichet --help`.
_MODULES: Final = {
    "serve": "serve",
    "worker": "worker",
    "migrate": "migrate",
    "check-config": "check_config",
    "demo": "demo",
    "listen": "listen",
    "trigger": "trigger",
    "replay": "replay",
    "clock": "clock",
    "mcp": "mcp",
    "simulator": "simulator",
    "merchant": "merchants",
    "key": "keys",
    "user": "users",
    "wallet": "wallets",
    "mode": "modes",
    "ledger": "ledger",
    "treasury": "treasury",
    "reconcile": "reconcile",
    "providers": "providers",
    "incidents": "incidents",
    "payment": "payments",
    "refund": "refunds",
    "late-money": "late_money",
    "dispute": "disputes",
    "approval": "approvals",
    "delivery": "deliveries",
    "audit-log": "audit_log",
    "doctor": "doctor",
    "secret-key": "secret_keys",
    "rotate-secrets": "secret_keys",
}


class _Commands(Mapping[str, Any]):
    """Stands for typer's dictionary of commands, and imports a module when one of its commands is looked up."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            module = import_module(f"guichet.cli.{_MODULES[name]}")
            commands = typer.Typer(rich_markup_mode="markdown", callback=_root)
            # A group says what it is for; the commands of the others stand beside it.
            commands.add_typer(module.app, name=name if module.app.info.help else None)
            self._loaded |= get_group(commands).commands
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


class _Tree(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands()  # type: ignore[assignment]  # nothing is ever added to it


app = typer.Typer(
    name="guichet",
    cls=_Tree,
    help="Guichet: payment aggregation for Mobile Money and cards.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(print_version: bool) -> None:
    if print_version:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Options that are not of any one command."""
