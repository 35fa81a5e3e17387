"""Whether an account is still the one that a payment or refund was sent to, where no setting of ours names it.

Only a key leads there, and keys are renewed: the provider says whose it is (Stripe, pawaPay, FedaPay). It is asked at
the first use after a start, then daily, and what it said is stored by fingerprint. Wave says nothing: another key is
another account until two people confirm that it is not (`back_office/account_confirmation.py`).
"""

import asyncio
from enum import Enum
from typing import Final, NamedTuple

from sqlalchemy import and_, bindparam, case, or_, select, update

from guichet.clock import DAY, MINUTE, Instant, later
from guichet.context import AppContext
from guichet.db.engine import Reader, Writer, require
from guichet.db.sql_functions import upsert
from guichet.db.tables import provider_identities
from guichet.domain.payments import Payment, Refund
from guichet.incidents import repository as incidents
from guichet.incidents.repository import IncidentDetail
from guichet.logs import log
from guichet.providers.base import Provider, Unknown
from guichet.providers.capabilities import StatesIdentity
from guichet.providers.shared.answers import ProviderAnswer
from guichet.providers.shared.fingerprints import is_fingerprint, only_key_differs

#: How often a provider is asked who the account is, and how soon again after it did not say. Microseconds.
_READ_EVERY: Final = DAY
_RETRY: Final = MINUTE
#: Seconds. With the call that it comes before, it ends within the lease of the row.
_TIMEOUT: Final = 8.0

_rows: Final = provider_identities.c
_ROW: Final = and_(_rows.provider_account == bindparam("account"), _rows.fingerprint == bindparam("print"))
_STORED: Final = select(_rows.identity, _rows.stated).where(_ROW)
_INSERT: Final = upsert(provider_identities).values(
    provider_account=bindparam("account"),
    fingerprint=bindparam("print"),
    identity=bindparam("who"),
    stated=bindparam("who"),
    read_at=bindparam("now"),
)
_READ: Final = _INSERT.on_conflict_do_update(
    index_elements=["provider_account", "fingerprint"],
    set_={
        "identity": case((_rows.stated == _INSERT.excluded.stated, _rows.identity)),
        "stated": _INSERT.excluded.stated,
        "read_at": _INSERT.excluded.read_at,
    },
)
_CONFIRM: Final = _INSERT.on_conflict_do_update(
    index_elements=["provider_account", "fingerprint"], set_={"identity": _INSERT.excluded.identity}
)
_CONFIRM_OTHERS: Final = (
    update(provider_identities)
    .where(
        _rows.provider_account == bindparam("account"),
        or_(_rows.identity == bindparam("before"), _rows.fingerprint == bindparam("current")),
    )
    .values(identity=bindparam("who"))
)


class AccountMatch(Enum):
    """`UNSURE`: it may be another one. It may be asked and its explicit answers count, but nothing is sent again and
    "not found" proves nothing. `OTHER`: it is not asked."""

    SAME = "same"
    UNSURE = "unsure"
    OTHER = "other"


class StoredIdentity(NamedTuple):
    """`identity`: None while the provider's word and what was known before differ."""

    identity: str | None
    stated: str


async def compare(ctx: AppContext, provider: Provider, subject: Payment | Refund) -> AccountMatch:
    """Whether the account of that name is the one that the payment or refund was sent to."""
    sent_to, account, current = subject.account_fingerprint, subject.provider_account, provider.fingerprint
    if sent_to is None or account is None:
        return AccountMatch.SAME
    same_settings = sent_to == current
    if current is None or not (same_settings or only_key_differs(sent_to, current)):
        return AccountMatch.OTHER
    if not provider.identified_by_key:
        return AccountMatch.SAME
    now_there = await current_identity(ctx, provider, account)
    if now_there is None:
        return AccountMatch.UNSURE
    before = now_there if same_settings else await stored(ctx.db, account, sent_to)
    match = _match(now_there, before)
    if match is not AccountMatch.SAME:
        detail = IncidentDetail.ACCOUNT_CHANGED(account=account)
        await incidents.report_once_for_account(ctx.db, subject, incidents.ACCOUNT_CHANGED, detail, ctx.clock.now())
    return match


def _match(current: StoredIdentity, before: StoredIdentity | None) -> AccountMatch:
    if before is None or before.identity is None or current.identity is None:
        return AccountMatch.UNSURE
    if before.identity == current.identity:
        return AccountMatch.SAME
    are_names = not (is_fingerprint(before.identity) or is_fingerprint(current.identity))
    return AccountMatch.OTHER if are_names else AccountMatch.UNSURE


async def current_identity(ctx: AppContext, provider: Provider, account: str) -> StoredIdentity | None:
    """Whose account the present credentials lead to: asked when that is due, else as it was read last. None while the
    provider never said it."""
    now = ctx.clock.now()
    if ctx.identity_due.get(account, now) <= now:
        ctx.identity_due[account] = later(now, _RETRY)  # Before the call: others that come meanwhile do not ask too.
        await _read(ctx, provider, account)
    return await stored(ctx.db, account, require(provider.fingerprint))


def read_soon(ctx: AppContext, provider: Provider, account: str) -> None:
    """After the first use since the start of an account that is `identified_by_key`: reads the identity in the
    background, so that it is known before the key is changed and before the first question."""
    if account not in ctx.identity_due:
        task = asyncio.create_task(_read_logged(ctx, provider, account))
        ctx.awaited_polls.add(task)
        task.add_done_callback(ctx.awaited_polls.discard)


async def _read_logged(ctx: AppContext, provider: Provider, account: str) -> None:
    try:
        await current_identity(ctx, provider, account)
    except Exception as error:  # It is read again before it is needed.
        log.error("identity.not_stored", provider_account=account, error=repr(error))


async def _read(ctx: AppContext, provider: Provider, account: str) -> None:
    identity = await _ask(provider)
    if isinstance(identity, Unknown):
        log.warning("identity.not_read", provider_account=account, raw=identity.raw)
        return
    fingerprint, now = require(provider.fingerprint), ctx.clock.now()
    await ctx.db.write(_READ, account=account, print=fingerprint, who=identity or fingerprint, now=now)
    ctx.identity_due[account] = later(now, _READ_EVERY)


async def _ask(provider: Provider) -> str | Unknown | None:
    if not isinstance(provider, StatesIdentity):
        return None
    try:
        async with asyncio.timeout(_TIMEOUT):
            return await provider.account_identity()
    except TimeoutError:
        return Unknown(ProviderAnswer.NO_ANSWER(seconds=f"{_TIMEOUT:g}"))


async def stored(db: Reader, account: str, fingerprint: str) -> StoredIdentity | None:
    return await db.one_as(StoredIdentity, _STORED, account=account, print=fingerprint)


async def confirm(
    writer: Writer, account: str, *, former: str, former_identity: str | None, current: str, identity: str, now: Instant
) -> None:
    """What was sent under the fingerprint `former`, and under those that were the same account as it, belongs to
    `identity`, and so do the credentials of `current`."""
    await writer.write(_CONFIRM, account=account, print=former, who=identity, now=now)
    await writer.write(
        _CONFIRM_OTHERS, account=account, before=former_identity or identity, current=current, who=identity
    )
