"""What FedaPay keeps before money may move: transactions whose customer was not asked yet, and payouts that were not
started. They become transactions of the simulator when they are.

Both kinds are numbered from 1, as the real ones overlap too.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from guichet.clock import DAY, Instant
from guichet_simulator.http_helpers import new_uuid
from guichet_simulator.models import Kind, Transaction
from guichet_simulator.transactions import ProviderTransactions

#: How long a transaction can be paid.
LIFE: Final = DAY
Record = Mapping[str, Any]


class Records:
    def __init__(self, api: ProviderTransactions) -> None:
        self._api = api
        self._store = api.ctx.store

    def add(self, kind: Kind, values: Mapping[str, Any]) -> Record:
        number = int(self._store.setting(f"fedapay:last:{kind}") or 0) + 1
        company = self._api.dashboard.company
        record = {"id": number, "kind": kind, "created_at": self._api.ctx.clock.now(), "company": company, **values}
        self._store.set_setting(f"fedapay:last:{kind}", number)
        self.save(record)
        if values.get("merchant_reference"):
            self._store.set_setting(f"fedapay:ours:{kind}:{company}:{values['merchant_reference']}", number)
        return record

    def save(self, record: Record) -> None:
        self._store.set_setting(f"fedapay:{record['kind']}:{record['id']}", record)

    def get(self, kind: Kind, number: object) -> Record | None:
        """One of the account that the client's key leads to."""
        record = self.made_by_any(kind, number)
        return record if record is not None and self._is_visible(record) else None

    def made_by_any(self, kind: Kind, number: object) -> Record | None:
        record: Record | None = self._store.setting(f"fedapay:{kind}:{number}")
        return record

    def _is_visible(self, record: Record) -> bool:
        return not record.get("deleted") and bool(record["company"] == self._api.dashboard.company)

    def by_reference(self, kind: Kind, reference: str) -> Record | None:
        company = self._api.dashboard.company
        return self.get(kind, self._store.setting(f"fedapay:ours:{kind}:{company}:{reference}"))

    def all(self, kind: Kind) -> list[Record]:
        rows = self._store.rows("SELECT value FROM settings WHERE name GLOB ?", f"fedapay:{kind}:*")
        records = [json.loads(row["value"]) for row in rows]
        return [record for record in records if self._is_visible(record)]

    def token(self, record: Record) -> str:
        """A new one each time."""
        token = new_uuid()
        self._store.set_setting(f"fedapay:token:{token}", record["id"])
        return token

    def by_token(self, token: object) -> Record | None:
        return self.get("debit", self._store.setting(f"fedapay:token:{token}"))

    def transaction(self, record: Record) -> Transaction | None:
        """What the simulator holds of it; None while nobody was asked."""
        return self._api.find(record["kind"], str(record["id"]))

    def is_expired(self, record: Record, now: Instant) -> bool:
        return bool(now - record["created_at"] >= LIFE)
