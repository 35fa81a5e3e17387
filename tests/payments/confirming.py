"""A person confirms who gets a refund."""

from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.audit_log import Actor
from guichet.domain.payments import Refund
from guichet.refunds import repository as refund_repository
from guichet.refunds.request import confirm_payee


async def confirmed(ctx: AppContext, reference: str, number: str) -> Refund:
    refund = require(await refund_repository.find(ctx.db, reference))
    return await confirm_payee(ctx, refund, number, Actor("Awa", "awa"), "ticket 4411")
