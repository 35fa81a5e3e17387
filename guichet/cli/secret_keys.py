"""`guichet secret-key` and `guichet rotate-secrets`: the encryption keys in `GUICHET_SECRET_KEYS`."""

from dataclasses import dataclass, field

import typer
from cryptography.fernet import Fernet

from guichet.bootstrap import Service
from guichet.cli.arguments import Json
from guichet.cli.console import console, fail, print_json
from guichet.cli.runner import run
from guichet.merchants import webhook_secrets as secrets
from guichet.merchants.vault import UnreadableSecret


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: `GUICHET_SECRET_KEYS=$(guichet secret-key) guichet serve`")(secret_key)
    app.command(epilog="Example: `guichet rotate-secrets --json`")(rotate_secrets)


def secret_key(as_json: Json = False) -> None:
    """Print a new encryption key for GUICHET_SECRET_KEYS. It is stored nowhere: keep it with your backups."""
    key = Fernet.generate_key().decode()
    if as_json:
        print_json({"secret_key": key})
    else:
        typer.echo(key)


@dataclass(slots=True)
class _Rotation:
    """How many secrets were encrypted again, how many already had the first key, and which could not be read."""

    renewed: int = 0
    unchanged: int = 0
    unreadable: list[tuple[int, str]] = field(default_factory=list)


def rotate_secrets(as_json: Json = False) -> None:
    """Encrypt every stored webhook secret with the first key of GUICHET_SECRET_KEYS; the older keys can then go.

    The secrets themselves do not change. Exit code 1 when one could not be read.
    """
    done = run(_rotate)
    if as_json:
        unreadable = [{"merchant_id": merchant_id, "env": env} for merchant_id, env in done.unreadable]
        print_json({"renewed": done.renewed, "unchanged": done.unchanged, "unreadable": unreadable})
    else:
        console.print(f"{done.renewed} secrets encrypted with the first key, {done.unchanged} already were.")
    if done.unreadable:
        whose = ", ".join(f"merchant {merchant_id} ({env})" for merchant_id, env in done.unreadable)
        fail(f"No key of GUICHET_SECRET_KEYS reads the webhook secret of {whose}: put the missing key back.")


async def _rotate(opened: Service) -> _Rotation:
    """One SQL statement for each secret, so the command can be interrupted and repeated at any point."""
    ctx, done = opened.ctx, _Rotation()
    for merchant_id, env, token in await secrets.everyone(ctx.db):
        try:
            renewed = ctx.vault.renewed(token)
        except UnreadableSecret:
            done.unreadable.append((merchant_id, env))
            continue
        if renewed is not None and await secrets.replace(ctx.db, merchant_id, env, token, renewed):
            done.renewed += 1
        else:
            done.unchanged += 1
    return done
