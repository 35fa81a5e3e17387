"""What a difference between a provider's statement and our ledger comes with: `guichet reconcile` prints it, the rows
of `reconciliation_runs` keep it, the back office says it in the reader's language."""

from guichet.domain.messages import Code


class ComparisonNote(Code):
    """`status`: of the payment or refund here, or of the line there."""

    UNKNOWN_HERE = "comparison_note.unknown_here"
    CURRENCIES = "comparison_note.currencies", "theirs", "ours"
    STATUS_HERE = "comparison_note.status_here", "status"
    NOT_THERE = "comparison_note.not_there"
    STATUS_THERE = "comparison_note.status_there", "status"
    SECOND_TIME = "comparison_note.second_time"
