"""`guichet secret-key` and `guichet rotate-secrets`: the encryption keys in `GUICHET_SECRET_KEYS`."""

from dataclasses import dataclass, field
from typing import Final

import typer
from cryptography.fernet import Fernet

from guichet.cli.arguments import Json
from guichet.cli.console import console, print_json
from guichet.cli.errors import fail
from guichet.cli.runner import run
from guichet.context import AppContext
from guichet.db.encrypted_columns import EncryptedText, encrypted_texts, replace
from guichet.db.engine import Database
from guichet.merchants.vault import UnreadableSecret, Vault

app = typer.Typer()


@app.command(epilog="Example: `GUICHET_SECRET_KEYS=$(guichet secret-key) guichet serve`")
def secret_key(as_json: Json = False) -> None:
    """Print a new encryption key for GUICHET_SECRET_KEYS. It is stored nowhere: keep it with your backups."""
    key = Fernet.generate_key().decode()
    if as_json:
        print_json({"secret_key": key})
    else:
        typer.echo(key)


#: How a text that cannot be read is named: in a sentence, and the members of a JSON object that are its key.
_NAMED: Final = {
    "webhook_endpoints.secret": ("merchant {} ({})", ("merchant_id", "env")),
    "webhook_endpoints.old_secret": ("merchant {} ({})", ("merchant_id", "env")),
    "users.totp_secret": ("user {}", ("user_id",)),
    "users.next_totp_secret": ("user {} (next telephone)", ("user_id",)),
    "merchant_document_chunks.content": ("document {} (part {})", ("document_id", "part")),
    "export_chunks.content": ("piece {} of an export", ("export_piece",)),
    "mails.message": ("mail {}", ("mail_id",)),
    "staff_jobs.parameters": ("job {} of the staff", ("staff_job",)),
    "staff_jobs.result": ("job {} of the staff", ("staff_job",)),
}


@dataclass(slots=True)
class _Rotation:
    """How many secrets were encrypted again, how many already had the first key, and which could not be read, as
    members of the JSON object and as words."""

    renewed: int = 0
    unchanged: int = 0
    unreadable: list[dict[str, object]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    async def renew(self, db: Database, vault: Vault, text: EncryptedText) -> None:
        """One SQL statement for each secret, so the command can be interrupted and repeated at any point."""
        try:
            renewed = vault.renewed(text.token)
        except UnreadableSecret:
            words, names = _NAMED[text.column]
            self.unreadable.append(dict(zip(names, text.key, strict=True)))
            self.words.append(words.format(*text.key))
            return
        if renewed is not None and await replace(db, text, renewed):
            self.renewed += 1
        else:
            self.unchanged += 1


@app.command(epilog="Example: `guichet rotate-secrets --json`")
def rotate_secrets(as_json: Json = False) -> None:
    """Encrypt everything that is kept encrypted with the first key of GUICHET_SECRET_KEYS; the older keys can then go:
    webhook secrets, seeds of one-time codes, merchants' documents, files of exports, mails that wait, staff jobs.

    The secrets themselves do not change. Exit code 1 when one could not be read.
    """
    tally = run(_rotate)
    if as_json:
        print_json({"renewed": tally.renewed, "unchanged": tally.unchanged, "unreadable": tally.unreadable})
    else:
        console.print(f"{tally.renewed} secrets encrypted with the first key, {tally.unchanged} already were.")
    if tally.unreadable:
        fail(f"No key of GUICHET_SECRET_KEYS reads the secrets of {', '.join(tally.words)}: put the missing key back.")


async def _rotate(ctx: AppContext) -> _Rotation:
    tally = _Rotation()
    async for text in encrypted_texts(ctx.db):
        await tally.renew(ctx.db, ctx.vault, text)
    return tally
