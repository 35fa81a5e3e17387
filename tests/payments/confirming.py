"""A person confirms who gets a refund."""

from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.audit_log import Actor
from guichet.domain.payments import Refund
from guichet.refunds import payee
from guichet.refunds import repository as refund_repository


async def confirmed(ctx: AppContext, reference: str, number: str) -> Refund:
    refund = require(await refund_repository.find(ctx.db, reference))
    return await payee.confirm(ctx, refund, number, Actor("Awa", "awa"), "ticket 4411")
