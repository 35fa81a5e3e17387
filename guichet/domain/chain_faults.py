"""What is wrong with one of the two hash chains: the audits print it, rows of `ledger_audits` keep it, the back office
says it in the reader's language.

`origin`: who knows a head, another sentence of these. `chain_fault`: why heads cannot be compared, another one."""

from guichet.domain.sentences import Sentences


class ChainFault(Sentences):
    ENTRY_MISSING = "Entry {number:number} is missing."
    ENTRY_CHANGED = "Entry {number:number} was changed: its digest does not fit."
    ENTRIES_MISSING = "Entries after {number:number} are missing: the log once had {end:number}."
    LEDGER_CUT = (
        "The hash chain ends at posting {end:number}, but {origin} covered it up to posting {place:number}: "
        "rows are missing at its end, or this is a restored backup."
    )
    LEDGER_REWRITTEN_AT = (
        "The hash chain does not contain {origin}, digest {digest:word} at posting {place:number}: "
        "it was cut short or rewritten."
    )
    LEDGER_REWRITTEN = "The hash chain does not contain {origin}, digest {digest:word}: it was cut short or rewritten."
    LOG_CUT = (
        "The audit log ends at entry {end:number}, but {origin} covered it up to entry {place:number}: "
        "rows are missing at its end, or this is a restored backup."
    )
    LOG_REWRITTEN_AT = (
        "The audit log does not contain {origin}, digest {digest:word} at entry {place:number}: "
        "it was cut short or rewritten."
    )
    LOG_REWRITTEN = "The audit log does not contain {origin}, digest {digest:word}: it was cut short or rewritten."
    NOT_COMPARABLE = "The known heads cannot all be compared: {chain_fault}."
    NO_HEAD = "{file}, line {line:number} is not a head: {error}"
    OTHER_DATABASE = (
        "{file} has a head of the database {other:word}, published at {at:instant}, and this is {database:word}: each "
        "database needs a file of its own, or somebody changed the id"
    )
    # Who knows a head.
    TYPED_HEAD = "the known head"
    OWN_HEAD = "its own head"
    LAST_HEAD = "the last published head"
    PUBLISHED_HEAD = "the head published at {at:instant}"
    AUDITED_HEAD = "the head of the audit of {at:instant}"
