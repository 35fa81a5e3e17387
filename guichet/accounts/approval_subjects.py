"""What requests for approval are about, for whoever decides: the merchant, the person and the amount of each, in three
statements however many requests there are."""

import json
from collections.abc import Sequence
from typing import Final

from sqlalchemy import select, union_all

from guichet.accounts import users
from guichet.accounts.access_acts import person_of
from guichet.db.engine import Reader
from guichet.db.references import parse_reference
from guichet.db.sql_functions import is_listed
from guichet.db.tables import disputes, payments, refunds
from guichet.domain.accounts import User
from guichet.domain.approvals import ApprovalRequest
from guichet.domain.ids import ApprovalId
from guichet.domain.money import CURRENCIES, Currency, Hundredths
from guichet.domain.records import Record
from guichet.merchants import repository as merchants

#: References are unique over the three tables.
_AMOUNTS: Final = union_all(
    *(
        select(table.c.reference, table.c.amount, table.c.currency).where(is_listed(table.c.reference, "references"))
        for table in (payments, refunds, disputes)
    )
)


class RequestSubject(Record, frozen=True):
    """`merchant`: the name. `person`: whom the request is about, None where it is about something else.
    `amount`: of the payment, refund or dispute, or what is recorded of our own money; None for a wallet or a person."""

    merchant: str
    person: User | None
    amount: Hundredths | None
    currency: Currency | None


async def subjects_of(db: Reader, requests: Sequence[ApprovalRequest]) -> dict[ApprovalId, RequestSubject]:
    names = await merchants.names(db, {request.merchant_id for request in requests})
    people = {request.id: person for request in requests if (person := person_of(request.subject)) is not None}
    users_by_id = await users.by_ids(db, set(people.values()))
    references = {request.id: text for request in requests if (text := parse_reference(request.subject)) is not None}
    amounts: dict[str, tuple[Hundredths, Currency]] = {}
    if references:
        rows = await db.all(_AMOUNTS, references=json.dumps(sorted(set(references.values()))))
        amounts = {reference: (amount, currency) for reference, amount, currency in rows}
    return {
        request.id: RequestSubject(
            names.get(request.merchant_id, str(request.merchant_id)),
            users_by_id.get(people[request.id]) if request.id in people else None,
            *(amounts.get(references.get(request.id, "")) or _amount_of_arguments(request)),
        )
        for request in requests
    }


def _amount_of_arguments(request: ApprovalRequest) -> tuple[Hundredths | None, Currency | None]:
    arguments = request.act_request.arguments
    amount, code = arguments.get("amount"), arguments.get("currency")
    currency = next((currency for currency in CURRENCIES if currency == code), None)
    return (Hundredths(amount), currency) if isinstance(amount, int) and currency is not None else (None, None)
