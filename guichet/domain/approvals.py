"""Acts of the staff that one person asks for and another one approves: those that move money, and those that give
somebody the right to.

The rules for people: docs/admin-guide.md, "Two people for acts that move money".

A request waits for a day. Its act is done in the transaction of the approval, once (`audit_log/entries.py`).
"""

from collections.abc import Mapping
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
    "treasury.record",
]
MONEY_ACTS: Final[tuple[MoneyAct, ...]] = get_args(MoneyAct)
#: `staff.add` gives a role that approves, `staff.restore` gives it back to a disabled account, `team.give_role` puts
#: somebody into a merchant's team that has an owner.
AccessAct = Literal["staff.add", "staff.restore", "team.give_role"]
ACCESS_ACTS: Final[tuple[AccessAct, ...]] = get_args(AccessAct)
ApprovedAct = MoneyAct | AccessAct
APPROVED_ACTS: Final[tuple[ApprovedAct, ...]] = (*MONEY_ACTS, *ACCESS_ACTS)
#: What the person who approves must be allowed to do, and the person who asks.
RIGHTS: Final[Mapping[ApprovedAct, StaffRight]] = {
    **dict.fromkeys(APPROVED_ACTS, "incidents.decide"),
    "wallet.reopen": "wallets.change",
}
ASKING_RIGHTS: Final[Mapping[ApprovedAct, StaffRight]] = {
    **RIGHTS,
    "staff.add": "staff.change",
    "staff.restore": "staff.change",
    "team.give_role": "merchants.change",
}
ApprovalStatus = Literal["pending", "approved", "refused", "expired"]
APPROVAL_STATUSES: Final[tuple[ApprovalStatus, ...]] = get_args(ApprovalStatus)
#: How long a request waits for its approval.
APPROVAL_LASTS: Final = DAY
#: How long an approver must have had the right before they approve: a money act, and another approver.
RIGHT_FOR_MONEY: Final = DAY
RIGHT_FOR_APPROVERS: Final = 7 * DAY
#: Until an installation is so old, RIGHT_FOR_MONEY is enough for another approver, too.
FIRST_WEEK: Final = 7 * DAY
#: If nobody could approve another approver: how long those who could, or lately could, have to object.
OBJECTIONS_LAST: Final = 3 * DAY
#: Who took the right to approve from somebody cannot ask for money for so long.
AFTER_REMOVAL: Final = 7 * DAY

#: What an act needs to know beyond its subject: JSON values.
Arguments = Mapping[FactName, str | bool | int]


class ActRequest(Record, frozen=True):
    """An act that somebody asks for. `subject`: the reference of the payment, refund or dispute, for `account.confirm`
    of one that was sent to the account, or a new one of what is recorded, or `<merchant>/<currency>` of a wallet, or
    `user/<id>` of a colleague, or `user/<id>/<merchant>` of somebody for a team. `reason`: the evidence."""

    act: ApprovedAct
    subject: str
    arguments: Arguments
    reason: str


class ApprovalRequest(Record, frozen=True):
    """A row of `approval_requests`, in the order of its columns. `user_id`: the account of the person who asks;
    `os_user`: `console`, or the operating-system user of the command. `arguments`: a JSON object.
    `effective_at`: when the act is done unless somebody objects; None where only an approval does it."""

    id: ApprovalId
    act: ApprovedAct
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
    effective_at: Instant | None = None

    @property
    def act_request(self) -> ActRequest:
        return ActRequest(self.act, self.subject, msgspec.json.decode(self.arguments), self.reason)

    def status_at(self, now: Instant) -> ApprovalStatus:
        """A request that nobody decided in time is stored as `pending` until a worker looks, a minute later at most."""
        return "expired" if self.status == "pending" and self.expires_at <= now else self.status
