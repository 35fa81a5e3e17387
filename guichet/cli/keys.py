"""`guichet key …`: API keys. Only a hash is stored, so a key is shown once, when it is created (D39)."""

from typing import Annotated, Final

import typer

from guichet.accounts import key_management
from guichet.cli.arguments import InstantValue, Json, MerchantId, OptionalBy, actor, instant, parser, row_id
from guichet.cli.console import console, print_json, show_done, show_rows
from guichet.cli.errors import CommandError
from guichet.cli.runner import get_merchant, run
from guichet.clock import Instant, SystemClock, iso
from guichet.context import AppContext
from guichet.domain.ids import ApiKeyId
from guichet.domain.key_access import (
    FULL_ACCESS,
    KEY_SCOPES,
    UNRESTRICTED,
    KeyAccess,
    read_network,
    scope_bits,
    scopes_of,
    stored_networks,
)
from guichet.domain.merchants import MAX_KEY_NAME, ApiKey, Environment, key_name
from guichet.domain.records import described, iso_or_none
from guichet.merchants import api_keys

app = typer.Typer(no_args_is_help=True, help="API keys. A running server sees a change within a second.")

_COLUMNS: Final = {
    "id": "Id",
    "env": "Environment",
    "name": "Name",
    "preview": "Key",
    "state": "State",
    "created_at": "Created",
    "expires_at": "Expires",
    "revoked_at": "Revoked",
    "scopes": "Scopes",
    "addresses": "Addresses",
}


def _network(text: str) -> str:
    try:
        return read_network(text.strip())
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither an address nor a network such as 203.0.113.0/24.") from None


_KeyId = Annotated[int, typer.Argument(parser=row_id, metavar="KEY_ID", help="As `guichet key list` shows it.")]


@app.command(epilog="Example: `guichet key create 1 --env live --expires-at 2030-01-31T00:00:00Z --json`")
def create(
    merchant_id: MerchantId,
    env: Annotated[Environment, typer.Option(help="Environment of the key.")],
    expires_at: Annotated[
        Instant | None,
        typer.Option(parser=instant, metavar="DATE", help="When it stops working (UTC without an offset)."),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            parser=parser({name: name for name in KEY_SCOPES}.get, f"One of {', '.join(KEY_SCOPES)} is expected."),
            metavar="SCOPE",
            help=f"All that it may do: {', '.join(KEY_SCOPES)}; repeatable. Without this option, everything.",
        ),
    ] = None,
    address: Annotated[
        list[str] | None,
        typer.Option(
            parser=_network,
            metavar="NETWORK",
            help="Address or network from which alone it is accepted (live keys only); repeatable.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            parser=parser(key_name, f"A name has 1 to {MAX_KEY_NAME} characters and holds no address."),
            metavar="NAME",
            help="What will use it, for lists.",
        ),
    ] = None,
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Give a merchant one more key; the others keep working. It is shown only once."""

    scopes = [key_scope for key_scope in KEY_SCOPES if scope and key_scope in scope]
    access = KeyAccess(scope_bits(scopes) if scopes else FULL_ACCESS, stored_networks(address or []))
    created, key = run(
        lambda ctx: key_management.create(
            ctx.db, ctx.clock, merchant_id, env, expires_at, actor(by), access=access, name=name
        )
    )
    if as_json:
        facts = {"id": created.id, "key": key, "env": created.env, "expires_at": iso_or_none(created.expires_at)}
        named = {} if name is None else {"name": name}
        print_json({**facts, **named, **({} if access == UNRESTRICTED else _access(created))})
        return
    until = f" until {iso(created.expires_at)}" if created.expires_at is not None else ""
    console.print(f"Key {created.id} is for the {created.env} environment{until}. It is shown only once:")
    console.print(f"  {key}", soft_wrap=True)


@app.command("list", epilog="Example: `guichet key list 1`")
def list_keys(merchant_id: MerchantId, as_json: Json = False) -> None:
    """List a merchant's keys by their first characters; the keys themselves are not stored."""

    async def work(ctx: AppContext) -> list[ApiKey]:
        await get_merchant(ctx.db, merchant_id)
        return await api_keys.list_of(ctx.db, merchant_id)

    keys = run(work)
    now = SystemClock().now()
    rows = [_described(key, now) for key in keys]
    show_rows("keys", rows, _COLUMNS, as_json=as_json, merchant_id=merchant_id)


@app.command(epilog="Example: `guichet key expire 3 2030-01-31T00:00:00Z`")
def expire(
    key_id: _KeyId,
    expires_at: Annotated[
        InstantValue,
        typer.Argument(parser=instant, metavar="DATE", help="When it stops working (UTC without an offset)."),
    ],
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Set when a key stops working. One that has stopped already stays so: create another one."""

    async def work(ctx: AppContext) -> ApiKey:
        key = _existing(await api_keys.by_id(ctx.db, ApiKeyId(key_id)), key_id)
        return await key_management.expire(ctx.db, ctx.clock, key, expires_at, actor(by))

    key = run(work)
    _show_change(key, f"works until {iso(expires_at)}", as_json=as_json)


@app.command(epilog="Example: `guichet key revoke 3`")
def revoke(key_id: _KeyId, by: OptionalBy = None, as_json: Json = False) -> None:
    """Revoke a key for ever. Every process refuses it within a second. Revoking it again changes nothing."""

    async def work(ctx: AppContext) -> ApiKey:
        revoked = await key_management.revoke(ctx.db, ctx.clock, ApiKeyId(key_id), actor(by))
        return _existing(revoked, key_id)

    key = run(work)
    _show_change(key, "is revoked", as_json=as_json)


def _existing(key: ApiKey | None, key_id: int) -> ApiKey:
    if key is None:
        raise CommandError(f"There is no key with the id {key_id}.")
    return key


def _show_change(key: ApiKey, change: str, *, as_json: bool) -> None:
    sentence = f"Key {key.id} ({key.label}) of merchant {key.merchant_id} {change}."
    value = {**_described(key, SystemClock().now()), "merchant_id": key.merchant_id}
    show_done(value, sentence, as_json=as_json)


def _described(key: ApiKey, now: Instant) -> dict[str, object]:
    return described(key, _COLUMNS, state=key.state(now), **_access(key))


def _access(key: ApiKey) -> dict[str, object]:
    """None: everything, and from everywhere."""
    return {"scopes": scopes_of(key.scopes), "addresses": None if key.networks is None else key.networks.split()}
