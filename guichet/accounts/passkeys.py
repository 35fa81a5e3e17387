"""Passkeys (WebAuthn): keys in a telephone, a computer or a USB key that prove a person without a password.

A passkey asks for a finger, a face or a PIN (user verification), so it is two factors in one: it signs in by itself,
and it counts as a fresh second factor. It comes in addition to the telephone's codes, which remain the way back.

A challenge is signed, for one person or nobody yet, and bound to a cookie of the browser that asked for it; issuing one
stores nothing. A genuine answer stores it, so that none is answered twice. The key's site (RP ID) is the host of
`GUICHET_PUBLIC_URL`.
"""

import asyncio
import base64
from importlib import import_module
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec
from sqlalchemy import bindparam, delete, func, insert, select, update

from guichet.accounts import users
from guichet.accounts.errors import CodeRefused, TooManyPasskeys
from guichet.accounts.signed_tokens import SignedTokens
from guichet.clock import MINUTE, Instant
from guichet.context import AppContext
from guichet.db.engine import Reader, Transaction, require
from guichet.db.sql_functions import new_row, upsert, values_of
from guichet.db.tables import passkey_challenges, passkeys
from guichet.domain.accounts import Passkey, User, UserId, normal_name, secret_hash

if TYPE_CHECKING:
    from guichet.accounts.webauthn_messages import Site

#: How long somebody may take to answer.
CHALLENGE_LASTS: Final = 5 * MINUTE
MOST_PASSKEYS: Final = 10

_USE: Final = (
    upsert(passkey_challenges)
    .values(hash=bindparam("hash"), created_at=bindparam("now"))
    .on_conflict_do_nothing()
    .returning(passkey_challenges.c.id)
)
_INSERT: Final = insert(passkeys).values(new_row(passkeys))
_THIS_USER: Final = passkeys.c.user_id == bindparam("user")
_OF_USER: Final = select(passkeys).where(_THIS_USER).order_by(passkeys.c.id).limit(MOST_PASSKEYS)
_COUNT: Final = select(func.count()).select_from(passkeys).where(_THIS_USER)
_BY_CREDENTIAL: Final = select(passkeys).where(passkeys.c.credential_id == bindparam("credential"))
_USED: Final = (
    update(passkeys)
    .where(passkeys.c.id == bindparam("passkey"))
    .values(sign_count=bindparam("count"), last_used_at=bindparam("now"))
)
_REMOVE: Final = delete(passkeys).where(_THIS_USER, passkeys.c.id == bindparam("passkey")).returning(passkeys.c.name)
_REMOVE_ALL: Final = delete(passkeys).where(_THIS_USER)


class _ClientData(msgspec.Struct):
    challenge: str


class _AnswerData(msgspec.Struct):
    clientDataJSON: str  # noqa: N815 - the standard's name


class _Answer(msgspec.Struct):
    id: str
    response: _AnswerData


async def of_user(db: Reader, user_id: UserId) -> list[Passkey]:
    """Oldest first."""
    return [Passkey(*row) for row in await db.all(_OF_USER, user=user_id)]


async def creation_options(ctx: AppContext, user: User, browser: str) -> str:
    """The JSON for `navigator.credentials.create`. `browser`: the secret of its cookie. Raises TooManyPasskeys."""
    site, existing = await load_site(ctx), await of_user(ctx.db, user.id)
    if len(existing) >= MOST_PASSKEYS:
        raise TooManyPasskeys
    return site.creation_options(user, _new_challenge(ctx, user, browser), existing)


async def add(
    ctx: AppContext, tx: Transaction, site: "Site", user: User, answer: str, name: str, browser: str | None
) -> None:
    """Stores the key that a browser made. `site`: of `load_site`, since a transaction waits for nothing but the
    database. Raises CodeRefused for anything but an answer to our challenge to this user in this browser,
    TooManyPasskeys."""
    now = ctx.clock.now()
    challenge, nonce = _answered_challenge(ctx, answer, user, browser)
    await users.lock(tx, user.id)
    if require(await tx.one(_COUNT, user=user.id))[0] >= MOST_PASSKEYS:
        raise TooManyPasskeys
    credential, public_key, count = site.made_key(answer, challenge)
    if await tx.one(_BY_CREDENTIAL, credential=credential) is not None:
        raise CodeRefused
    await _use(tx, nonce, now)
    new = Passkey(0, user.id, credential, public_key, count, normal_name(name) or site.name, now, None)
    await tx.write(_INSERT, **values_of(passkeys, new))


async def request_options(ctx: AppContext, user: User | None, browser: str) -> str:
    """The JSON for `navigator.credentials.get`. `user`: who must answer; None: whoever has a key of this site.
    `browser`: the secret of its cookie."""
    site = await load_site(ctx)
    existing = await of_user(ctx.db, user.id) if user is not None else []
    return site.request_options(_new_challenge(ctx, user, browser), existing)


async def check(ctx: AppContext, answer: str, user: User | None, browser: str | None) -> UserId:
    """Whose key answered. `user` and `browser`: who was asked, as in `request_options`. Raises CodeRefused."""
    site, now = await load_site(ctx), ctx.clock.now()
    challenge, nonce = _answered_challenge(ctx, answer, user, browser)
    row = await ctx.db.one(_BY_CREDENTIAL, credential=_read(answer).id)
    if row is None:
        raise CodeRefused
    passkey = Passkey(*row)
    if user is not None and passkey.user_id != user.id:
        raise CodeRefused
    count = site.counter_of(answer, challenge, passkey)
    async with ctx.db.transaction() as tx:
        await _use(tx, nonce, now)
        await tx.write(_USED, passkey=passkey.id, count=count, now=now)
    return passkey.user_id


async def remove(tx: Transaction, user_id: UserId, passkey_id: int) -> str | None:
    """The name of the key that was removed; None if the user has no such key."""
    row = await tx.write(_REMOVE, user=user_id, passkey=passkey_id)
    return row[0] if row else None


async def remove_all(tx: Transaction, user_id: UserId) -> None:
    await tx.write(_REMOVE_ALL, user=user_id)


def _new_challenge(ctx: AppContext, user: User | None, browser: str) -> bytes:
    return _challenges(ctx).issue(_subject(user, browser)).encode()


def _answered_challenge(ctx: AppContext, answer: str, user: User | None, browser: str | None) -> tuple[bytes, str]:
    """The challenge that this answers, and its nonce. Raises CodeRefused unless we issued it to this user in this
    browser in the last minutes."""
    try:
        client = msgspec.json.decode(_bytes(_read(answer).response.clientDataJSON), type=_ClientData)
        challenge = _bytes(client.challenge)
        nonce = _challenges(ctx).nonce_of(_subject(user, browser), challenge.decode("ascii")) if browser else None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise CodeRefused from error
    if nonce is None:
        raise CodeRefused
    return challenge, nonce


async def _use(tx: Transaction, nonce: str, now: Instant) -> None:
    """A challenge can be answered once. Raises CodeRefused if somebody has answered it."""
    if await tx.write(_USE, hash=secret_hash(nonce), now=now) is None:
        raise CodeRefused


def _challenges(ctx: AppContext) -> SignedTokens:
    return SignedTokens(ctx.settings.secret_keys, "guichet passkey challenge v1", CHALLENGE_LASTS, ctx.clock)


def _subject(user: User | None, browser: str) -> str:
    return f"{user.id if user is not None else 0}.{secret_hash(browser)}"


def _read(answer: str) -> _Answer:
    try:
        return msgspec.json.decode(answer, type=_Answer)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise CodeRefused from error


def _bytes(text: str) -> bytes:
    """Of URL-safe base64 without padding. Raises ValueError."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


async def load_site(ctx: AppContext) -> "Site":
    """What the keys belong to. The import would hold up all other requests."""
    messages = await asyncio.to_thread(import_module, "guichet.accounts.webauthn_messages")
    public = urlsplit(ctx.settings.browser_url)
    site: Site = messages.Site(public.hostname or "", f"{public.scheme}://{public.netloc}")
    return site
