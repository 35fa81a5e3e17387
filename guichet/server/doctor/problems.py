"""What `guichet doctor` finds: the back office shows it too, in the reader's language.

`answer`: what a provider said. `waiting` and `last`: another sentence of these. `why`: of the operator's state."""

from guichet.domain.sentences import Sentences


class Age(Sentences):
    """The time between two instants in its largest whole unit."""

    MOMENT = "a moment"
    MINUTE = "1 minute"
    HOUR = "1 hour"
    DAY = "1 day"
    MINUTES = "{count:number} minutes"
    HOURS = "{count:number} hours"
    DAYS = "{count:number} days"


class DoctorProblem(Sentences):
    PENDING = "{count:number} live {subjects:word} by {operator:word}, pending for up to {age}"
    QUEUE_LATE = "{count:number} {queue} late by up to {age}: does a worker run?"
    ROUTE_FAILS = (
        "{failed:number} live payments by {operator:word} failed over {account:word} in a day through no fault of "
        "their customers, {succeeded:number} succeeded: `guichet providers check`"
    )
    ENDPOINT_FAILS = (
        "{destination} of merchant {merchant:number} ({env:word}): {abandoned:number} given up, {retrying:number} "
        "being tried again, {delivered:number} delivered in a day"
    )
    KEY_EXPIRES = "key {key:number} ({env:word}) of merchant {merchant:number}, {name}, expires in {age}"
    CALLBACKS_UNMATCHED = "{count:number} callbacks of the last day match no payment or refund: `guichet incidents`"
    INCIDENTS = "{count:number} {incident:word}, the oldest since {age}: `guichet incidents`"
    BALANCE_LOW = "{balance:money} with {wallet}, below the bound of {bound:amount}: fill it, refunds are paid from it"
    BALANCE_UNREAD = "the balance with {account:word} cannot be read: {answer}"
    POSTING_UNCHAINED = "posting {posting:number} has waited {age} to enter the hash chain: does a worker run?"
    NEVER_AUDITED = "there has been none yet: `guichet ledger audit`"
    AUDIT_FAULT = "{age} ago it found: {audit_fault}"
    AUDIT_OLD = "the last one is {age} old"
    HEADS_NEVER_LEFT = "they never left the machine: does a worker run?"
    HEADS_OLD = "they last left the machine {age} ago: look for ledger.head_not_published"
    DIFFERENCES = "{count:number} differences with {account:word} in a week: `guichet reconcile --runs --json`"
    NOT_COMPARED = "{account:word} was last compared {age} ago: does a worker run?"
    NOT_COMPARABLE = "{account:word} was last compared {age} ago: {answer}"
    OPERATOR_STATE = "{operator:word} is {availability:word} for {age}: {availability_reason}"
    FILE_MODE = (
        "{path} has mode {mode:word}: others on this machine may read it. `chmod {wanted:word} {target}`, or restart "
        "the service, which does it"
    )
    # PostgreSQL: standbys and the archive.
    COMMITS_WAIT = " ({count:number} wait, the first for {seconds:number} s)"
    NO_STANDBY = (
        "a synchronous standby is missing (none is connected that may confirm), so no write ends{waiting}: bring it "
        "back, or decide to go on without it (docs/operations/postgresql.md)"
    )
    STANDBY_MISSING = (
        "a synchronous standby is missing ({names}), so no write ends{waiting}: bring it back, or decide to go on "
        "without it (docs/operations/postgresql.md)"
    )
    STANDBY_SILENT = (
        "a synchronous standby is connected but does not confirm any write{waiting}: look at it and at its network, or "
        "decide to go on without it (docs/operations/postgresql.md)"
    )
    WAL_GONE = (
        "the WAL that the standby of slot {slot:word} needs is gone: copy that standby again "
        "(docs/operations/postgresql.md)"
    )
    SLOT_UNUSED = (
        "the standby of slot {slot:word} is not connected, and {size:number} MB of WAL are kept for it: bring it back, "
        "or drop the slot"
    )
    NOTHING_ARCHIVED = "nothing was archived so far"
    LAST_ARCHIVED = "the last file was archived {age} ago"
    ARCHIVE_FAILS = "archive_command fails, {last}: PostgreSQL's log says why (docs/operations/backup.md)"
    ARCHIVE_WAITS = "{count:number} segments of WAL wait for the archive, {last}: does archive_command hang?"
