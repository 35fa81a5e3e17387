"""Money acts of the staff that one person asks for and another one approves.

The rules for people: docs/admin-guide.md, "Two people for acts that move money".

A request waits for a day. Its act is done in the transaction of the approval, once (`audit_log/entries.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

import msgspec

from guichet.clock import DAY, Instant
from guichet.domain.accounts import UserId
from guichet.domain.audit_log import FactName
from guichet.domain.ids import ApprovalId, MerchantId
from guichet.domain.records import Record
from guichet.domain.roles import StaffRight

#: `account.confirm` lets refunds be sent again through an account with a new key, `wallet.reopen` posts the credits
#: that were suspended while the wallet was not `Actif`.
MoneyAct = Literal[
    "payment.settle",
    "refund.settle",
    "refund.confirm_payee",
    "late_money.resolve",
    "dispute.resolve",
    "wallet.reopen",
    "account.confirm",
]
MONEY_ACTS: Final[tuple[MoneyAct, ...]] = get_args(MoneyAct)
#: What the person who asks and the one who approves must both be allowed to do.
RIGHTS: Final[dict[MoneyAct, StaffRight]] = {
    "payment.settle": "incidents.decide",
    "refund.settle": "incidents.decide",
    "refund.confirm_payee": "incidents.decide",
    "late_money.resolve": "incidents.decide",
    "dispute.resolve": "incidents.decide",
    "wallet.reopen": "wallets.change",
    "account.confirm": "incidents.decide",
}
ApprovalStatus = Literal["pending", "approved", "refused", "expired"]
APPROVAL_STATUSES: Final[tuple[ApprovalStatus, ...]] = get_args(ApprovalStatus)
#: How long a request waits for its approval.
APPROVAL_LASTS: Final = DAY

#: What an act needs to know beyond its subject: JSON values.
Arguments = Mapping[FactName, str | bool]


@dataclass(frozen=True, slots=True)
class WantedAct:
    """A money act that somebody asks for. `subject`: the reference of the payment, refund or dispute, for
    `account.confirm` of one that was sent to the account, or `<merchant>/<currency>` of a wallet. `reason`: the
    evidence."""

    act: MoneyAct
    subject: str
    arguments: Arguments
    reason: str


class ApprovalRequest(Record, frozen=True):
    """A row of `approval_requests`, in the order of its columns. `user_id`: the account of the person who asks;
    `os_user`: `console`, or the operating-system user of the command. `arguments`: a JSON object."""

    id: ApprovalId
    act: MoneyAct
    subject: str
    merchant_id: MerchantId
    arguments: str
    reason: str
    status: ApprovalStatus
    requested_by: str
    user_id: UserId
    os_user: str
    created_at: Instant
    expires_at: Instant
    decided_by: str | None
    decided_at: Instant | None
    decision_reason: str | None

    @property
    def wanted(self) -> WantedAct:
        return WantedAct(self.act, self.subject, msgspec.json.decode(self.arguments), self.reason)

    def status_at(self, now: Instant) -> ApprovalStatus:
        """A request that nobody decided in time is stored as `pending` until a worker looks, a minute later at most."""
        return "expired" if self.status == "pending" and self.expires_at <= now else self.status
