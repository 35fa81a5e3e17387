"""Work that the staff ask for in the back office and the worker does: it may take minutes at ten million payments."""

from typing import Final, Literal, get_args

from guichet.clock import MINUTE, SECOND, Instant
from guichet.domain.accounts import UserId
from guichet.domain.ids import MerchantId
from guichet.domain.records import Record
from guichet.domain.roles import StaffRight

StaffJobKind = Literal[
    "anonymise_customer",
    "ledger_margin",
    "provider_check",
    "provider_deep_check",
    "provider_balances",
    "compare_statement",
    "wave_merchants",
]
STAFF_JOB_KINDS: Final[tuple[StaffJobKind, ...]] = get_args(StaffJobKind)
StaffJobStatus = Literal["pending", "done", "failed"]
STAFF_JOB_STATUSES: Final[tuple[StaffJobStatus, ...]] = get_args(StaffJobStatus)

#: The right to ask for a job and to see its result. A deep check names our balances with the providers.
RIGHT_OF: Final[dict[StaffJobKind, StaffRight]] = {
    "anonymise_customer": "merchants.change",
    "ledger_margin": "reconciliation.view",
    "provider_check": "doctor.view",
    "provider_deep_check": "wallets.view",
    "provider_balances": "wallets.view",
    "compare_statement": "reconciliation.view",
    "wave_merchants": "merchants.change",
}

#: Jobs that wait for the worker or are done by it, of all people.
MOST_PENDING: Final = 20
#: A worker that did not renew its claim for so long has died, and another one begins again; so often at most.
STAFF_JOB_LEASE: Final = 2 * MINUTE
MOST_ATTEMPTS: Final = 3
#: Until the next attempt, after each one that ended with an error: a worker that lives need not wait for its lease.
RETRY_AFTER: Final = (5 * SECOND, 20 * SECOND)


class StaffJob(Record, frozen=True):
    """A row of `staff_jobs`, in the order of its columns. `parameters` and `result` are encrypted; megabytes, if a file
    is among them, so pages read jobs without what they do not show."""

    id: int
    kind: StaffJobKind
    #: Whose customer is anonymised; None for other kinds.
    merchant_id: MerchantId | None
    #: Who asked.
    user_id: UserId
    #: Of the form that asked and of what it asked: a form that is sent twice makes one job.
    request_hash: str
    #: What was asked; None once the job has ended, so that nothing keeps whom it anonymised.
    parameters: str | None
    status: StaffJobStatus
    attempts: int
    due_at: Instant | None
    created_at: Instant
    finished_at: Instant | None
    #: None unless the status is `done`.
    result: str | None
