"""Our balances with the providers (the float): read regularly, once across workers, and kept for `/metrics`.

An account is claimed by moving its `next_read_at`, so a reading that dies is repeated when that has passed.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import bindparam, delete, insert, select, update

from guichet.clock import DAY, MINUTE, Clock, Instant, earlier, later
from guichet.db.engine import Database, Reader
from guichet.db.sql_functions import params, upsert
from guichet.db.tables import provider_balance_reads, provider_balances
from guichet.domain.messages import Message, decode, encode, shortened, verbatim
from guichet.domain.money import Hundredths
from guichet.domain.records import Record
from guichet.logs import log
from guichet.providers.base import PROVIDER_TIMEOUT, Unknown
from guichet.providers.capabilities import Balances, FloatBalance
from guichet.providers.shared.answers import ProviderAnswer

#: How often the balances of each account are read.
READ_EVERY: Final = 5 * MINUTE
#: Nobody has claimed an account for this long: it left the providers' file, and its last balances mean nothing.
_FORGET_AFTER: Final = DAY
_MAX_ERROR: Final = 300

_SCHEDULE: Final = select(provider_balance_reads.c.provider_account, provider_balance_reads.c.next_read_at)
_CLAIM_INSERT: Final = upsert(provider_balance_reads).values(
    provider_account=bindparam("account"), next_read_at=bindparam("until")
)
_CLAIM: Final = _CLAIM_INSERT.on_conflict_do_update(
    index_elements=["provider_account"],
    set_={"next_read_at": _CLAIM_INSERT.excluded.next_read_at},
    where=provider_balance_reads.c.next_read_at <= bindparam("now"),
).returning(provider_balance_reads.c.provider_account)
_OF_ACCOUNT: Final = provider_balances.c.provider_account == bindparam("account")
_DELETE: Final = delete(provider_balances).where(_OF_ACCOUNT)
_INSERT: Final = insert(provider_balances).values(params(*provider_balances.c.keys()))
_CHANGE: Final = update(provider_balance_reads).where(provider_balance_reads.c.provider_account == bindparam("account"))
_READ: Final = _CHANGE.values(read_at=bindparam("now"), error=None)
_NOT_READ: Final = _CHANGE.values(error=bindparam("raw"))
_FORGET_READ: Final = (
    delete(provider_balance_reads)
    .where(provider_balance_reads.c.next_read_at < bindparam("before"))
    .returning(provider_balance_reads.c.provider_account)
)
_STORED: Final = select(provider_balances).order_by(*provider_balances.primary_key)
_READS: Final = select(
    provider_balance_reads.c.provider_account, provider_balance_reads.c.read_at, provider_balance_reads.c.error
).order_by(provider_balance_reads.c.provider_account)


class StoredBalance(Record, frozen=True):
    """A balance as it was read last. `alert_below`: None when the staff set no bound."""

    provider_account: str
    wallet: str
    currency: str
    amount: Hundredths
    alert_below: Hundredths | None

    @property
    def is_low(self) -> bool:
        return self.alert_below is not None and self.amount < self.alert_below


class BalanceRead(Record, frozen=True):
    """How the last reading of an account ended. `read_at`: the last success; `error`: None if that was the last one."""

    provider_account: str
    read_at: Instant | None
    error: Message | None


async def claim_due(db: Database, accounts: Sequence[str], now: Instant) -> list[str]:
    """Those of `accounts` that are due and that no other worker reads; they are due again after READ_EVERY.

    Reads a row for each account, and writes one for each that is due.
    """
    next_read_at = dict(await db.all(_SCHEDULE))
    due = [account for account in accounts if next_read_at.get(account, now) <= now]
    until = later(now, READ_EVERY)
    return [account for account in due if await db.write(_CLAIM, account=account, now=now, until=until)]


async def read(db: Database, clock: Clock, account: str, provider: Balances) -> Sequence[FloatBalance] | None:
    """Asks the provider and stores the answer. After a failure (None) the balances before stay, and the error
    is stored.

    Not counted among the calls to providers, whose unclear results say that money is in doubt.
    """
    balances: Sequence[FloatBalance] | Unknown
    try:
        async with asyncio.timeout(PROVIDER_TIMEOUT):
            balances = await provider.balances()
    except TimeoutError:
        balances = Unknown(ProviderAnswer.NO_ANSWER(seconds=f"{PROVIDER_TIMEOUT:g}"))
    if isinstance(balances, Unknown):
        log.warning("balances.not_read", provider_account=account, raw=balances.raw)
        await db.write(_NOT_READ, account=account, raw=encode(verbatim(shortened(balances.raw, _MAX_ERROR))))
        return None
    await store(db, account, balances, provider.float_alert_below, clock.now())
    return balances


async def store(
    db: Database, account: str, balances: Sequence[FloatBalance], alert_below: Mapping[str, Hundredths], now: Instant
) -> None:
    """Replaces what is stored of the account; `alert_below`: see `Balances`."""
    by_key = {(balance.wallet, balance.currency[:3]): balance.amount for balance in balances}
    async with db.transaction() as tx:
        await tx.write(_DELETE, account=account)
        for (wallet, currency), amount in by_key.items():
            least = alert_below.get(wallet, alert_below.get(""))
            key = {"provider_account": account, "wallet": wallet, "currency": currency}
            await tx.write(_INSERT, **key, amount=amount, alert_below=least)
        await tx.write(_READ, account=account, now=now)


async def forget_removed_accounts(db: Database, now: Instant) -> None:
    """Deletes the balances of accounts that no worker reads any more."""
    async with db.transaction() as tx:
        for (account,) in await tx.write_all(_FORGET_READ, before=earlier(now, _FORGET_AFTER)):
            await tx.write(_DELETE, account=account)


async def stored(db: Reader) -> list[StoredBalance]:
    """Grows with the wallets of all accounts: some dozens at most."""
    return [StoredBalance(*row) for row in await db.all(_STORED)]


async def reads(db: Reader) -> list[BalanceRead]:
    return [BalanceRead(account, read_at, decode(error)) for account, read_at, error in await db.all(_READS)]
