"""What a difference between a provider's statement and our ledger comes with: `guichet reconcile` prints it, the rows
of `reconciliation_runs` keep it, the back office says it in the reader's language."""

from guichet.domain.sentences import Sentences


class ComparisonNote(Sentences):
    """`status`: of the payment or refund here, or of the line there."""

    UNKNOWN_HERE = "unknown here"
    CURRENCIES = "{theirs} there, {ours} here"
    STATUS_HERE = "{status} here"
    NOT_THERE = "not there"
    STATUS_THERE = "{status} there"
    SECOND_TIME = "a second time"
