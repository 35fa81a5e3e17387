"""Who may do what in the console: the roles of a merchant's team and of the staff, and one table of their rights.

The table is the only place that grants anything. Pages ask it what to show, and each act asks it again where it is done
(`accounts/rights.py`). docs/security.md repeats it for people, and a test compares the two cell by cell.
"""

from typing import Final, Literal, get_args

from guichet.domain.merchants import Environment

MerchantRole = Literal["owner", "finance", "cashier", "developer", "reader"]
MERCHANT_ROLES: Final[tuple[MerchantRole, ...]] = get_args(MerchantRole)
StaffRole = Literal["admin", "support", "finance", "auditor"]
STAFF_ROLES: Final[tuple[StaffRole, ...]] = get_args(StaffRole)

#: What a role may do: in both environments, in the test environment only, or in none.
Grant = Literal["both", "test", "none"]

MerchantRight = Literal[
    "overview.view",
    "payments.view",
    "payments.refund",
    "links.view",
    "links.change",
    "cash_desk.use",
    "balance.view",
    "exports.download",
    "webhooks.view",
    "webhooks.configure",
    "webhooks.secret",
    "webhooks.resend",
    "keys.view",
    "keys.change",
    "requests.view",
    "team.view",
    "team.change",
    "activity.view",
]
MERCHANT_RIGHTS: Final[tuple[MerchantRight, ...]] = get_args(MerchantRight)

StaffRight = Literal[
    "merchants.view",
    "merchants.change",
    "notes.add",
    "documents.view",
    "documents.change",
    "modes.view",
    "modes.change",
    "incidents.view",
    "incidents.decide",
    "payments.search",
    "wallets.view",
    "wallets.change",
    "reconciliation.view",
    "ledger.audit",
    "deliveries.view",
    "deliveries.resend",
    "doctor.view",
    "staff.view",
    "staff.change",
    "audit_log.view",
]
STAFF_RIGHTS: Final[tuple[StaffRight, ...]] = get_args(StaffRight)

_B: Final = "both"
_T: Final = "test"
_N: Final = "none"

#: One row for each right, one column for each role, in the order of MERCHANT_ROLES.
_MERCHANT_TABLE: Final[dict[MerchantRight, tuple[Grant, Grant, Grant, Grant, Grant]]] = {
    #                     owner finance cashier developer reader
    "overview.view":      (_B, _B, _N, _B, _B),
    "payments.view":      (_B, _B, _B, _B, _B),
    "payments.refund":    (_B, _B, _N, _T, _N),
    "links.view":         (_B, _B, _B, _B, _B),
    "links.change":       (_B, _B, _B, _T, _N),
    "cash_desk.use":      (_B, _B, _B, _T, _N),
    "balance.view":       (_B, _B, _N, _T, _B),
    "exports.download":   (_B, _B, _N, _T, _N),
    "webhooks.view":      (_B, _N, _N, _B, _N),
    "webhooks.configure": (_B, _N, _N, _B, _N),
    "webhooks.secret":    (_B, _N, _N, _B, _N),
    "webhooks.resend":    (_B, _N, _N, _B, _N),
    "keys.view":          (_B, _N, _N, _B, _N),
    "keys.change":        (_B, _N, _N, _T, _N),
    "requests.view":      (_B, _N, _N, _B, _N),
    "team.view":          (_B, _B, _N, _N, _N),
    "team.change":        (_B, _N, _N, _N, _N),
    "activity.view":      (_B, _B, _N, _N, _N),
}  # fmt: skip

_MERCHANT_GRANTS: Final = {
    right: dict(zip(MERCHANT_ROLES, grants, strict=True)) for right, grants in _MERCHANT_TABLE.items()
}

#: The rights of each staff role; nobody has more.
_STAFF_TABLE: Final[dict[StaffRight, tuple[bool, bool, bool, bool]]] = {
    #                       admin support finance auditor
    "merchants.view":       (True, True, True, True),
    "merchants.change":     (True, False, False, False),
    "notes.add":            (True, True, True, False),
    "documents.view":       (True, True, False, True),
    "documents.change":     (True, True, False, False),
    "modes.view":           (True, True, True, True),
    "modes.change":         (True, False, False, False),
    "incidents.view":       (True, True, True, True),
    "incidents.decide":     (True, False, True, False),
    "payments.search":      (True, True, True, True),
    "wallets.view":         (True, False, True, True),
    "wallets.change":       (True, False, True, False),
    "reconciliation.view":  (True, False, True, True),
    "ledger.audit":         (True, False, True, True),
    "deliveries.view":      (True, True, False, True),
    "deliveries.resend":    (True, True, False, False),
    "doctor.view":          (True, True, True, True),
    "staff.view":           (True, False, False, True),
    "staff.change":         (True, False, False, False),
    "audit_log.view":       (True, False, False, True),
}  # fmt: skip

#: Roles that must have a second factor: who moves money, who gives rights, and all staff.
_TWO_FACTORS: Final[frozenset[MerchantRole]] = frozenset({"owner", "finance"})

#: Rights whose every use needs a second factor that was given a few minutes ago.
STEP_UP_RIGHTS: Final[frozenset[MerchantRight | StaffRight]] = frozenset(
    {
        "payments.refund",
        "exports.download",
        "webhooks.configure",
        "webhooks.secret",
        "keys.change",
        "team.change",
        "merchants.change",
        "modes.change",
        "incidents.decide",
        "wallets.change",
        "staff.change",
    }
)


#: Rights about the merchant as a whole: they are the same in both environments, and so is their step-up.
_OF_THE_MERCHANT: Final[frozenset[MerchantRight]] = frozenset({"team.view", "team.change", "activity.view"})


def merchant_grant(role: MerchantRole, right: MerchantRight) -> Grant:
    return _MERCHANT_GRANTS[right][role]


def may_as_merchant(role: MerchantRole, right: MerchantRight, env: Environment) -> bool:
    grant = merchant_grant(role, right)
    return grant in ("both", env)


def needs_step_up(right: MerchantRight, env: Environment) -> bool:
    """Whether a member of a team must have given a second factor a few minutes ago. In the test environment no money
    moves."""
    return right in STEP_UP_RIGHTS and (env == "live" or right in _OF_THE_MERCHANT)


def may_as_staff(role: StaffRole, right: StaffRight) -> bool:
    return _STAFF_TABLE[right][STAFF_ROLES.index(role)]


def may_approve(role: StaffRole | None) -> bool:
    """Whether the role approves what others of the staff ask for (`domain/approvals.py`)."""
    return role is not None and may_as_staff(role, "incidents.decide")


def makes_approver(before: StaffRole | None, after: StaffRole | None) -> bool:
    """Whether the change gives rights to a role that approves."""
    return may_approve(after) and not _rights(after) <= _rights(before)


def unmakes_approver(before: StaffRole | None, after: StaffRole | None) -> bool:
    """Whether the change takes rights from a role that approves."""
    return may_approve(before) and not _rights(before) <= _rights(after)


def _rights(role: StaffRole | None) -> set[StaffRight]:
    return set() if role is None else {right for right in STAFF_RIGHTS if may_as_staff(role, right)}


def needs_second_factor(staff_role: StaffRole | None, merchant_roles: tuple[MerchantRole, ...]) -> bool:
    """Whether a person with these roles must have a second factor before seeing anything but its set-up."""
    return staff_role is not None or not _TWO_FACTORS.isdisjoint(merchant_roles)
