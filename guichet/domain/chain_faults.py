"""What is wrong with one of the two hash chains: the audits print it, rows of `ledger_audits` keep it, the back office
says it in the reader's language.

`origin`: who knows a head, another message of these. `chain_fault`: why heads cannot be compared, another one."""

from guichet.domain.messages import Code


class ChainFault(Code):
    ENTRY_MISSING = "chain_fault.entry_missing", "number"
    ENTRY_CHANGED = "chain_fault.entry_changed", "number"
    ENTRIES_MISSING = "chain_fault.entries_missing", "number", "end"
    LEDGER_CUT = "chain_fault.ledger_cut", "end", "origin", "place"
    LEDGER_REWRITTEN_AT = "chain_fault.ledger_rewritten_at", "origin", "digest", "place"
    LEDGER_REWRITTEN = "chain_fault.ledger_rewritten", "origin", "digest"
    LOG_CUT = "chain_fault.log_cut", "end", "origin", "place"
    LOG_REWRITTEN_AT = "chain_fault.log_rewritten_at", "origin", "digest", "place"
    LOG_REWRITTEN = "chain_fault.log_rewritten", "origin", "digest"
    NOT_COMPARABLE = "chain_fault.not_comparable", "chain_fault"
    NO_HEAD = "chain_fault.no_head", "file", "line", "error"
    OTHER_DATABASE = "chain_fault.other_database", "file", "other", "at", "database"
    # Who knows a head.
    TYPED_HEAD = "chain_fault.typed_head"
    OWN_HEAD = "chain_fault.own_head"
    LAST_HEAD = "chain_fault.last_head"
    PUBLISHED_HEAD = "chain_fault.published_head", "at"
    AUDITED_HEAD = "chain_fault.audited_head", "at"
