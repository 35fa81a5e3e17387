"""The table that a program would have which keeps payments and does nothing else with them: the columns of the
payment object, and the two indexes that a creation needs. No search, no lists, no counts, no queue of polls."""

from typing import Final

from sqlalchemy import Column, Index, MetaData, Table

from guichet.db.tables import payments

_COLUMNS: Final = (
    *("id", "merchant_id", "env", "reference", "external_id", "status", "amount", "fee_amount", "total_amount"),
    *("currency", "description", "operator", "phone_number", "firstname", "lastname", "email", "metadata"),
    *("created_at", "updated_at"),
)

own_payments: Final = Table(
    "own_payments",
    MetaData(),
    *(
        Column(c.name, c.type, primary_key=c.primary_key, nullable=c.nullable)
        for c in (payments.c[n] for n in _COLUMNS)
    ),
    Index("own_payments_by_reference", "reference", unique=True),
    Index("own_payments_by_external_id", "merchant_id", "env", "external_id", unique=True),
)
