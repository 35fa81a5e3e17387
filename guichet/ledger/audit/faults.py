"""What the audit of the ledger finds: `guichet ledger audit` prints it, rows of `ledger_audits` keep it, the back
office says it in the reader's language. Names of accounts and of causes of postings are those of the ledger.

`audit_fault`, `holder`: another message of these."""

from guichet.domain.messages import Code


class AuditFault(Code):
    # The hash chain.
    BEFORE_CHAIN = "audit_fault.before_chain", "posting"
    LINK_MISSING = "audit_fault.link_missing", "link", "posting", "wanted"
    LINK_COUNTS = "audit_fault.link_counts", "link", "postings", "hashes"
    LINK_DIGEST = "audit_fault.link_digest", "link"
    LINK_COVERS = "audit_fault.link_covers", "audit_fault", "link", "first", "last"
    POSTING_REMOVED = "audit_fault.posting_removed", "posting"
    POSTING_INSERTED = "audit_fault.posting_inserted", "posting"
    POSTING_CHANGED = "audit_fault.posting_changed", "posting"
    # Sums of accounts.
    ACCOUNT_WRONG = "audit_fault.account_wrong", "env", "currency", "account", "merchant", "holder", "held", "posted"
    WALLET_HOLDS = "audit_fault.wallet_holds"
    SUSPENSE_HOLDS = "audit_fault.suspense_holds"
    REFUNDS_HOLD = "audit_fault.refunds_hold"
    LATE_RESULTS_HOLD = "audit_fault.late_results_hold"
    LATE_REFUNDS_HOLD = "audit_fault.late_refunds_hold"
    DISPUTES_HOLD = "audit_fault.disputes_hold"
    OVERDRAWN = "audit_fault.overdrawn", "env", "currency", "merchant", "posted"
    FLOAT_WRONG = "audit_fault.float_wrong", "env", "currency", "account", "merchant", "booked", "wanted"
    ENTRY_WITHOUT_SUSPENSE = "audit_fault.entry_without_suspense", "entry", "payment"
    ENTRY_AMOUNT = "audit_fault.entry_amount", "entry", "held", "posted"
    ENTRY_RELEASED = "audit_fault.entry_released", "entry", "posting"
    # Payments, refunds, disputes and their postings.
    OF_PAYMENT = "audit_fault.of_payment", "reference", "env", "status", "audit_fault"
    OF_REFUND = "audit_fault.of_refund", "reference", "env", "status", "audit_fault"
    OF_DISPUTE = "audit_fault.of_dispute", "reference", "env", "audit_fault"
    OF_TREASURY = "audit_fault.of_treasury", "reference", "audit_fault"
    ORPHAN = "audit_fault.orphan", "posting", "cause", "noun", "number"
    NOBODY_DECIDED = "audit_fault.nobody_decided"
    REFUND_MISSING = "audit_fault.refund_missing"
    REFUND_STATUS = "audit_fault.refund_status", "status"
    PAYMENT_STATUS = "audit_fault.payment_status", "status"
    BOOKED_ALL_THE_SAME = "audit_fault.booked_all_the_same", "posting"
    TEST_IN_SUSPENSE = "audit_fault.test_in_suspense"
    OTHER_OWNER = "audit_fault.other_owner"
    OTHER_AMOUNT = "audit_fault.other_amount", "returned", "taken"
    NOT_HELD = "audit_fault.not_held"
    NOT_ITS_POSTING = "audit_fault.not_its_posting", "posting", "cause", "leg"
    OTHER_ENVIRONMENT = "audit_fault.other_environment", "posting", "env", "currency"
    OTHER_MOVE = (
        "audit_fault.other_move",
        "posting",
        "moved",
        "source",
        "destination",
        "wanted",
        "right_source",
        "right_destination",
    )
    POSTING_MISSING = "audit_fault.posting_missing", "cause", "leg"
