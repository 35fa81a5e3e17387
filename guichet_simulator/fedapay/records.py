"""What FedaPay keeps before money may move: transactions whose customer was not asked yet, and payouts that were not
started. They become transactions of the simulator when they are.

Both kinds are numbered from 1, as the real ones overlap too.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from guichet.clock import DAY, Instant
from guichet_simulator.context import SimulatorContext
from guichet_simulator.http_helpers import new_uuid
from guichet_simulator.models import Kind, Transaction

NAME: Final = "fedapay"
#: How long a transaction can be paid.
LIFE: Final = DAY
Record = Mapping[str, Any]


class Records:
    def __init__(self, ctx: SimulatorContext) -> None:
        self._ctx = ctx
        self._store = ctx.store

    def add(self, kind: Kind, values: Mapping[str, Any]) -> Record:
        number = int(self._store.setting(f"{NAME}:last:{kind}") or 0) + 1
        company = self._ctx.dashboard(NAME).company
        record = {"id": number, "kind": kind, "created_at": self._ctx.clock.now(), "company": company, **values}
        self._store.set_setting(f"{NAME}:last:{kind}", number)
        self.save(record)
        if values.get("merchant_reference"):
            self._store.set_setting(f"{NAME}:ours:{kind}:{company}:{values['merchant_reference']}", number)
        return record

    def save(self, record: Record) -> None:
        self._store.set_setting(f"{NAME}:{record['kind']}:{record['id']}", record)

    def get(self, kind: Kind, number: object) -> Record | None:
        """One of the account that the client's key leads to."""
        record = self.made_by_any(kind, number)
        return record if record is not None and self._is_visible(record) else None

    def made_by_any(self, kind: Kind, number: object) -> Record | None:
        record: Record | None = self._store.setting(f"{NAME}:{kind}:{number}")
        return record

    def _is_visible(self, record: Record) -> bool:
        return not record.get("deleted") and bool(record["company"] == self._ctx.dashboard(NAME).company)

    def by_reference(self, kind: Kind, reference: str) -> Record | None:
        company = self._ctx.dashboard(NAME).company
        return self.get(kind, self._store.setting(f"{NAME}:ours:{kind}:{company}:{reference}"))

    def all(self, kind: Kind) -> list[Record]:
        rows = self._store.rows("SELECT value FROM settings WHERE name GLOB ?", f"{NAME}:{kind}:*")
        records = [json.loads(row["value"]) for row in rows]
        return [record for record in records if self._is_visible(record)]

    def token(self, record: Record) -> str:
        """A new one each time."""
        token = new_uuid()
        self._store.set_setting(f"{NAME}:token:{token}", record["id"])
        return token

    def by_token(self, token: object) -> Record | None:
        return self.get("debit", self._store.setting(f"{NAME}:token:{token}"))

    def transaction(self, record: Record) -> Transaction | None:
        """What the simulator holds of it; None while nobody was asked."""
        return self._ctx.find(NAME, record["kind"], str(record["id"]))

    def is_expired(self, record: Record, now: Instant) -> bool:
        return bool(now - record["created_at"] >= LIFE)
