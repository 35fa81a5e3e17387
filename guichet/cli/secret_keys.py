"""`guichet secret-key` and `guichet rotate-secrets`: the encryption keys in `GUICHET_SECRET_KEYS`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import typer
from cryptography.fernet import Fernet

from guichet.accounts import factors
from guichet.back_office.jobs import repository as staff_jobs
from guichet.bootstrap import Service
from guichet.cli.arguments import Json
from guichet.cli.console import console, print_json
from guichet.cli.errors import fail
from guichet.cli.runner import run
from guichet.db.engine import Database
from guichet.exports import repository as exports
from guichet.mail import outbox
from guichet.merchants import documents
from guichet.merchants.vault import UnreadableSecret, Vault
from guichet.webhooks import endpoints


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
    """How many secrets were encrypted again, how many already had the first key, and which could not be read, as
    members of the JSON object and as words."""

    renewed: int = 0
    unchanged: int = 0
    unreadable: list[dict[str, object]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    async def renew(
        self, vault: Vault, token: str, replace: Callable[[str], Awaitable[bool]], words: str, **what: object
    ) -> None:
        """One SQL statement for each secret, so the command can be interrupted and repeated at any point."""
        try:
            renewed = vault.renewed(token)
        except UnreadableSecret:
            self.unreadable.append(what)
            self.words.append(words)
            return
        if renewed is not None and await replace(renewed):
            self.renewed += 1
        else:
            self.unchanged += 1


def rotate_secrets(as_json: Json = False) -> None:
    """Encrypt everything that is kept encrypted with the first key of GUICHET_SECRET_KEYS; the older keys can then go:
    webhook secrets, seeds of one-time codes, merchants' documents, files of exports, mails that wait, staff jobs.

    The secrets themselves do not change. Exit code 1 when one could not be read.
    """
    done = run(_rotate)
    if as_json:
        print_json({"renewed": done.renewed, "unchanged": done.unchanged, "unreadable": done.unreadable})
    else:
        console.print(f"{done.renewed} secrets encrypted with the first key, {done.unchanged} already were.")
    if done.unreadable:
        fail(f"No key of GUICHET_SECRET_KEYS reads the secrets of {', '.join(done.words)}: put the missing key back.")


async def _rotate(opened: Service) -> _Rotation:
    ctx, done = opened.ctx, _Rotation()
    db, vault = ctx.db, ctx.vault
    for merchant_id, env, token in await endpoints.stored_secrets(db):
        replace = partial(endpoints.replace_secret, db, merchant_id, env, token)
        words = f"merchant {merchant_id} ({env})"
        await done.renew(vault, token, replace, words, merchant_id=merchant_id, env=env)
    for user_id, token in await factors.all_seeds(db):
        replace = partial(factors.replace, db, user_id, token)
        await done.renew(vault, token, replace, f"user {user_id}", user_id=user_id)
    for user_id, token in await factors.prepared(db):
        replace = partial(factors.replace_prepared, db, user_id, token)
        await done.renew(vault, token, replace, f"user {user_id} (next telephone)", user_id=user_id)
    for document_id, number in await documents.every_chunk(db):
        chunk = await documents.chunk(db, document_id, number)
        if chunk is not None:  # None: the document was removed meanwhile.
            replace = partial(documents.replace_chunk, db, document_id, number)
            words = f"document {document_id} (part {number})"
            await done.renew(vault, chunk, replace, words, document_id=document_id, part=number)
    await _renew_what_leaves(db, vault, done)
    return done


async def _renew_what_leaves(db: Database, vault: Vault, done: _Rotation) -> None:
    """Files of exports, which are kept for a day, mails that wait, and jobs of the staff. A worker may remove them
    meanwhile."""
    for chunk_id in await exports.every_chunk(db):
        chunk = await exports.chunk_by_id(db, chunk_id)
        if chunk is not None:
            replace = partial(exports.replace_chunk, db, chunk_id)
            await done.renew(vault, chunk, replace, f"piece {chunk_id} of an export", export_piece=chunk_id)
    for mail_id, token in await outbox.kept_messages(db):
        replace = partial(outbox.replace_message, db, mail_id, token)
        await done.renew(vault, token, replace, f"mail {mail_id}", mail_id=mail_id)
    for job_id in await staff_jobs.every_id(db):
        for column, token in await staff_jobs.encrypted(db, job_id):
            replace = partial(staff_jobs.replace, db, job_id, column, token)
            await done.renew(vault, token, replace, f"job {job_id} of the staff", staff_job=job_id)
