"""`guichet key …`: API keys. Only a hash is stored, so a key is shown when it is made and never again (D39)."""

from typing import Annotated

import typer

from guichet.bootstrap import Service
from guichet.cli.support import (
    CommandError,
    Json,
    MerchantId,
    date,
    known_merchant,
    people,
    present,
    print_json,
    print_table,
    row_id,
    run,
)
from guichet.clock import Instant, SystemClock, iso, read_date
from guichet.domain.merchants import ApiKey, Env
from guichet.merchants import api_keys
from guichet.merchants.api_keys import new_key

app = typer.Typer(no_args_is_help=True, help="API keys. A change is seen by a running server within a second.")


def register(commands: typer.Typer) -> None:
    commands.add_typer(app, name="key")


def _instant(text: str) -> Instant:
    instant = read_date(text)
    if instant is None:
        raise typer.BadParameter("an ISO-8601 date is expected, such as 2030-01-31 or 2030-01-31T12:00:00Z.")
    return instant


@app.command(epilog="Example: `guichet key create 1 --env live --expires-at 2030-01-31T00:00:00Z --json`")
def create(
    merchant_id: MerchantId,
    env: Annotated[Env, typer.Option(help="Which environment the key opens.")],
    expires_at: Annotated[
        Instant | None,
        typer.Option(parser=_instant, metavar="ISO", help="When it stops working (UTC without an offset)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Give a merchant one more key; the others keep working. It is shown here and never again."""
    key = new_key(env)

    async def work(opened: Service) -> ApiKey:
        ctx = opened.ctx
        now = ctx.clock.now()
        if expires_at is not None and expires_at <= now:
            raise CommandError(f"A key that expired on {iso(expires_at)} would never work.")
        await known_merchant(ctx.db, merchant_id)
        async with ctx.db.transaction() as tx:
            return await api_keys.add(tx, merchant_id, env, key, expires_at, now)

    made = run(work)
    if as_json:
        print_json({"id": made.id, "key": key, "env": made.env, "expires_at": date(made.expires_at)})
        return
    until = f" until {iso(made.expires_at)}" if made.expires_at is not None else ""
    people.print(f"Key {made.id} opens the {made.env} environment{until}. It is shown only once:")
    people.print(f"  {key}", soft_wrap=True)


@app.command("list", epilog="Example: `guichet key list 1`")
def list_keys(merchant_id: MerchantId, as_json: Json = False) -> None:
    """List a merchant's keys by their first characters; the keys themselves are not stored."""

    async def work(opened: Service) -> list[ApiKey]:
        await known_merchant(opened.ctx.db, merchant_id)
        return await api_keys.list_of(opened.ctx.db, merchant_id)

    found = run(work)
    now = SystemClock().now()
    if as_json:
        print_json({"merchant_id": merchant_id, "keys": [_described(key, now) for key in found]})
    else:
        columns = ("Id", "Environment", "Key", "State", "Created", "Expires", "Revoked")
        print_table(columns, [tuple(_described(key, now).values()) for key in found])


@app.command(epilog="Example: `guichet key revoke 3`")
def revoke(
    key_id: Annotated[int, typer.Argument(parser=row_id, metavar="KEY_ID", help="As `guichet key list` shows it.")],
    as_json: Json = False,
) -> None:
    """Stop a key for good, within a second in every process. Revoking it again changes nothing."""

    async def work(opened: Service) -> ApiKey:
        ctx = opened.ctx
        return present(await api_keys.revoke(ctx.db, key_id, ctx.clock.now()), "key", key_id)

    key = run(work)
    if as_json:
        print_json({**_described(key, SystemClock().now()), "merchant_id": key.merchant_id})
    else:
        people.print(f"Key {key.id} ({key.preview}) of merchant {key.merchant_id} is revoked.")


def _described(key: ApiKey, now: Instant) -> dict[str, object]:
    expired = key.expires_at is not None and key.expires_at <= now
    return {
        "id": key.id,
        "env": key.env,
        "preview": key.preview,
        "state": "revoked" if key.revoked_at is not None else "expired" if expired else "active",
        "created_at": iso(key.created_at),
        "expires_at": date(key.expires_at),
        "revoked_at": date(key.revoked_at),
    }
