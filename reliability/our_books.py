"""Guichet's book of a trial: its tables, read when everything has settled."""

from collections import defaultdict
from dataclasses import dataclass

import msgspec
from sqlalchemy import select

from guichet.bootstrap import service
from guichet.db.engine import Database
from guichet.db.tables import audit_log, incidents, late_results, payment_links, payments, refunds, webhook_deliveries
from guichet.domain.ids import LinkId
from guichet.domain.late_results import LateResult
from guichet.domain.payments import Payment, Refund
from guichet.incidents.repository import Incident
from reliability.installation import Installation


@dataclass
class OurBooks:
    """Guichet's tables, as they are when nothing runs any more."""

    payments: dict[str, Payment]
    refunds: dict[str, Refund]
    #: By the payment's or the refund's reference.
    late: dict[str, LateResult]
    open_incidents: dict[str, set[str]]
    waiting_deliveries: int
    link_uses: dict[LinkId, int]
    #: References of payments whose customer was anonymised, as the audit log names them.
    anonymised: set[str]
    #: By provider account.
    providers: dict[str, str]

    def provider(self, subject: Payment | Refund) -> str | None:
        return self.providers.get(subject.provider_account or "")


async def read_our_books(installation: Installation) -> OurBooks:
    async with service(installation.settings) as opened:
        return await read_tables(opened.ctx.db, installation)


async def read_tables(db: Database, installation: Installation) -> OurBooks:
    stored = [Payment(*row) for row in await db.scan(select(payments).where(payments.c.env == "live"))]
    returned = [Refund(*row) for row in await db.scan(select(refunds).where(refunds.c.env == "live"))]
    late = [LateResult(*row) for row in await db.scan(select(late_results))]
    opened: dict[str, set[str]] = defaultdict(set)
    for row in await db.scan(select(incidents).where(incidents.c.closed_at.is_(None))):
        incident = Incident(*row)
        opened[incident.reference].add(incident.kind)
    waiting = await db.scan(select(webhook_deliveries.c.id).where(webhook_deliveries.c.status == "pending"))
    return OurBooks(
        {each.reference: each for each in stored},
        {each.payment_reference: each for each in returned},
        {each.reference: each for each in late},
        opened,
        len(waiting),
        dict(await db.scan(select(payment_links.c.id, payment_links.c.completed_uses))),
        await _anonymised(db),
        {name: account["provider"] for name, account in installation.accounts.items()},
    )


async def _anonymised(db: Database) -> set[str]:
    entries = await db.scan(select(audit_log.c.after).where(audit_log.c.action == "customer.anonymised"))
    return {reference for (after,) in entries for reference in msgspec.json.decode(after).get("payments", ())}
