"""`guichet rotate-secrets`: `GUICHET_SECRET_KEYS` goes from one key to the next, again and again, and merchants notice
nothing.

Every statement runs on both databases where all that is encrypted is encrypted anew, and where somebody changes it.
"""

from dataclasses import replace

import pytest
from cryptography.fernet import Fernet

from guichet.accounts import users
from guichet.back_office.jobs import repository as staff_jobs
from guichet.back_office.merchant_file import add_document, read_document
from guichet.back_office.merchants import create_merchant
from guichet.bootstrap import service
from guichet.clock import DAY, Instant, later
from guichet.db.encrypted_columns import encrypted_texts
from guichet.db.encrypted_columns import replace as replace_text
from guichet.db.engine import require
from guichet.domain.accounts import UserId
from guichet.domain.audit_log import Actor
from guichet.domain.exports import Export
from guichet.domain.ids import MerchantId
from guichet.domain.staff_jobs import StaffJob
from guichet.exports import repository as exports
from guichet.mail.outbox import Outbox
from guichet.settings import Settings, load
from guichet.webhooks import endpoints
from tests.cli.conftest import Cli, RunningCommand
from tests.conftest import SECRET_KEY


def new_key() -> str:
    return Fernet.generate_key().decode()


def with_keys(cli: Cli, *keys: str) -> Cli:
    return cli.having(GUICHET_SECRET_KEYS=",".join(keys))


def _export(merchant_id: MerchantId, user_id: UserId, now: Instant) -> Export:
    """One that waits for the worker."""
    return Export(
        id=0, merchant_id=merchant_id, env="live", user_id=user_id, kind="payments", format="csv", currency=None,
        language="fr", time_zone="Africa/Porto-Novo", since=now, until=now, status="pending", attempts=0, due_at=now,
        created_at=now, expires_at=later(now, DAY), reached_at=None, row_count=0, size=0,
    )  # fmt: skip


def _job(user_id: UserId, parameters: str, now: Instant) -> StaffJob:
    """One that waits for the worker."""
    return StaffJob(
        id=0, kind="ledger_margin", merchant_id=None, user_id=user_id, request_hash="h", parameters=parameters,
        status="pending", attempts=0, due_at=now, created_at=now, finished_at=None, result=None,
    )  # fmt: skip


def own_secret(server: RunningCommand, key: str) -> str:
    """As its owner reads it, decrypted."""
    status, body = server.call("PUT", "/v1/webhooks/endpoint", key, {"url": "https://boutique.example/"})
    assert status == 200, body
    secret = body["data"]["secret"]
    assert secret.startswith("whsec_"), body
    return str(secret)


def test_two_rotations_one_after_the_other(sqlite_cli: Cli) -> None:
    first = sqlite_cli("merchant", "create", "Awa", "--json").json
    second = sqlite_cli("merchant", "create", "Zoé", "--json").json
    with sqlite_cli.running("serve") as server:
        before = {key: own_secret(server, key) for each in (first, second) for key in each["keys"].values()}
        server.stop()
    assert len(set(before.values())) == 4

    oldest = SECRET_KEY
    for _ in range(2):
        newest = new_key()
        both = with_keys(sqlite_cli, newest, oldest)
        assert both("rotate-secrets", "--json").json == {"renewed": 4, "unchanged": 0, "unreadable": []}
        assert both("rotate-secrets", "--json").json == {"renewed": 0, "unchanged": 4, "unreadable": []}
        only = with_keys(sqlite_cli, newest)
        with only.running("serve") as server:
            assert {key: own_secret(server, key) for key in before} == before
            server.stop()
        oldest = newest
    assert "0 secrets encrypted with the first key, 4 already were." in only("rotate-secrets").out


def test_it_works_while_the_service_runs_with_both_keys(sqlite_cli: Cli) -> None:
    merchant = sqlite_cli("merchant", "create", "Awa", "--json").json
    test, live = merchant["keys"]["test"], merchant["keys"]["live"]
    newest = new_key()
    both = with_keys(sqlite_cli, newest, SECRET_KEY)
    with both.running("serve") as server:
        before = own_secret(server, test)
        changed = server.call(
            "PUT", "/v1/webhooks/endpoint", live, {"url": "https://a.example/", "rotate_secret": True}
        )
        assert changed[0] == 200, changed
        assert both("rotate-secrets", "--json").json == {"renewed": 1, "unchanged": 1, "unreadable": []}
        assert own_secret(server, test) == before
        assert own_secret(server, live) == changed[1]["data"]["secret"]


def test_a_secret_that_no_key_reads_is_named_and_the_others_are_done(sqlite_cli: Cli) -> None:
    sqlite_cli("merchant", "create", "Awa", "--json")
    middle, newest = new_key(), new_key()
    with_keys(sqlite_cli, middle)("merchant", "create", "Zoé", "--json")
    missing = with_keys(sqlite_cli, newest, middle)
    sentence = (
        "No key of GUICHET_SECRET_KEYS reads the secrets of merchant 1 (live), merchant 1 (test): "
        "put the missing key back."
    )
    refused = missing("rotate-secrets")
    assert refused.code == 1
    assert sentence in refused.err
    assert "2 secrets encrypted with the first key, 0 already were." in refused.out
    found = with_keys(sqlite_cli, newest, middle, SECRET_KEY)
    assert found("rotate-secrets", "--json").json == {"renewed": 2, "unchanged": 2, "unreadable": []}


@pytest.mark.parametrize("changes_first", [True, False])
async def test_a_merchant_that_changes_its_secret_meanwhile_wins(settings: Settings, changes_first: bool) -> None:
    async with service(settings) as opened:
        ctx = opened.ctx
        merchant, _ = await create_merchant(ctx, "Awa")
        read = {text.key: text async for text in encrypted_texts(ctx.db)}
        text, now = read[merchant.id, "test"], ctx.clock.now()
        again = ctx.vault.encrypt(ctx.vault.decrypt(text.token))
        if not changes_first:
            assert await replace_text(ctx.db, text, again)
        configured = await endpoints.configure(ctx.db, ctx.vault, merchant.id, "test", None, now, rotate=True)
        assert not await replace_text(ctx.db, text, again)
        assert (await endpoints.read(ctx.db, ctx.vault, merchant.id, "test")).secret == configured.secret
        live = read[merchant.id, "live"]
        assert live in [text async for text in encrypted_texts(ctx.db)]


async def test_the_seed_of_a_telephone_that_proves_itself_meanwhile_is_not_passed_over(settings: Settings) -> None:
    async with service(settings) as opened:
        ctx = opened.ctx
        now, first, other = ctx.clock.now(), ctx.vault.encrypt("SEED"), ctx.vault.encrypt("NEXT")
        async with ctx.db.transaction() as tx:
            user = require(await users.create(tx, "awa@example.com", "Awa", "fr", None, now))
            await users.begin_totp(tx, user.id, first, now)
            await users.prepare_totp(tx, user.id, other, now)
        seen = []
        async for text in encrypted_texts(ctx.db):
            seen.append(text.token)
            if text.column.startswith("users.") and len(seen) == 1:
                await users.replace_totp(ctx.db, user.id, other, 1, now)
        assert seen[-1] == other


def test_the_newest_key_is_the_first(sqlite_cli: Cli) -> None:
    """Swapped, the list encrypts with the other key: what decides is the order, not when a key was made."""
    sqlite_cli("merchant", "create", "Awa", "--json")
    newest = new_key()
    assert with_keys(sqlite_cli, SECRET_KEY, newest)("rotate-secrets", "--json").json["renewed"] == 0
    assert with_keys(sqlite_cli, newest, SECRET_KEY)("rotate-secrets", "--json").json["renewed"] == 2
    assert with_keys(sqlite_cli, SECRET_KEY, newest)("rotate-secrets", "--json").json["renewed"] == 2
    assert load({"GUICHET_SECRET_KEYS": f"{SECRET_KEY},{newest}"}).secret_keys == (SECRET_KEY, newest)


async def test_codes_and_documents_are_encrypted_anew_too(cli: Cli, settings: Settings) -> None:
    newest = new_key()
    pdf, who = b"%PDF-1.7 " + b"x" * 300_000, Actor("Ada", "root")
    async with service(settings) as opened:
        ctx = opened.ctx
        merchant, _ = await create_merchant(ctx, "Awa")
        document = await add_document(ctx, merchant.id, "a.pdf", pdf, who)
        async with ctx.db.transaction() as tx:
            user = require(await users.create(tx, "awa@example.com", "Awa", "fr", None, ctx.clock.now()))
            await users.begin_totp(tx, user.id, ctx.vault.encrypt("SEED"), ctx.clock.now())
            await users.prepare_totp(tx, user.id, ctx.vault.encrypt("NEXT"), ctx.clock.now())
            values = {"name": "Awa", "link": "https://pay.example/console/password/SECRET"}
            await Outbox(ctx.vault).add(tx, user, "password", values, ctx.clock.now())
            assert await staff_jobs.add(tx, _job(user.id, ctx.vault.encrypt("NUMBER"), ctx.clock.now()))
            export = await exports.add(tx, _export(merchant.id, user.id, ctx.clock.now()))
        [export] = (await exports.claim(ctx.db, ctx.clock.now(), 1, [])).jobs
        for number, piece in enumerate((b"jour;", b"montant")):
            sealed = ctx.vault.encrypt_bytes(piece)
            await exports.add_chunk(ctx.db, export, number, sealed, reached=None, rows=0, now=ctx.clock.now())
    lost = with_keys(cli, newest)("rotate-secrets", "--json")
    assert lost.code == 1
    for words in (
        f"user {user.id} (next telephone), user {user.id}, document {document.id} (part 0), ",
        "piece 1 of an export, piece 2 of an export, mail 1, job 1 of the staff: put the missing key back",
    ):
        assert words in lost.err
    # Two webhook secrets, two seeds, two parts of the document, two pieces of the export, a mail, a job.
    both = with_keys(cli, newest, SECRET_KEY)
    assert both("rotate-secrets", "--json").json == {"renewed": 10, "unchanged": 0, "unreadable": []}
    async with service(replace(settings, secret_keys=(newest,))) as opened:
        ctx = opened.ctx
        assert require(await read_document(ctx, merchant.id, document.id, who))[1] == pdf
        stored = require(await users.get(ctx.db, user.id))
        seeds = [ctx.vault.decrypt(require(each)) for each in (stored.totp_secret, stored.next_totp_secret)]
        assert seeds == ["SEED", "NEXT"]
        pieces = [require(await exports.chunk(ctx.db, export, number)) for number in range(2)]
        assert b"".join(ctx.vault.decrypt_bytes(piece) for piece in pieces) == b"jour;montant"
        [asked] = [text.token async for text in encrypted_texts(ctx.db) if text.column == "staff_jobs.parameters"]
        assert ctx.vault.decrypt(asked) == "NUMBER"
        [mail] = await Outbox(ctx.vault).latest(ctx.db)
        assert require(mail.message).values["link"].endswith("SECRET")
