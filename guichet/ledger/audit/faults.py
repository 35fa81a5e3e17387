"""What the audit of the ledger finds: `guichet ledger audit` prints it, rows of `ledger_audits` keep it, the back
office says it in the reader's language. Names of accounts and of causes of postings are those of the ledger.

`audit_fault`, `holder`: another sentence of these."""

from guichet.domain.sentences import Sentences


class AuditFault(Sentences):
    # The hash chain.
    BEFORE_CHAIN = "Posting {posting:number} was inserted before the first link of the hash chain."
    LINK_MISSING = (
        "A link of the hash chain is missing: link {link:number} begins at posting {posting:number}, "
        "not {wanted:number}."
    )
    LINK_COUNTS = (
        "Link {link:number} of the hash chain was rewritten: it has {postings:number} postings and {hashes:number} "
        "hashes."
    )
    LINK_DIGEST = (
        "Link {link:number} of the hash chain was rewritten: its digest does not follow from the link before it and "
        "its postings."
    )
    LINK_COVERS = "{audit_fault} Link {link:number} of the hash chain covers {first:number} to {last:number}."
    POSTING_REMOVED = "Posting {posting:number} was removed."
    POSTING_INSERTED = "Posting {posting:number} was inserted."
    POSTING_CHANGED = "Posting {posting:number} was changed."
    # Sums of accounts.
    ACCOUNT_WRONG = (
        "The {env:word} {currency:word} {account:word} of merchant {merchant:number} is wrong: {holder} "
        "{held:amount}, its postings add up to {posted:amount}."
    )
    WALLET_HOLDS = "it and its entries hold"
    SUSPENSE_HOLDS = "the waiting entries hold"
    REFUNDS_HOLD = "the pending refunds hold"
    LATE_RESULTS_HOLD = "the late results hold"
    LATE_REFUNDS_HOLD = "the late refunds hold"
    DISPUTES_HOLD = "the disputes hold"
    OVERDRAWN = "The {env:word} {currency:word} wallet of merchant {merchant:number} is overdrawn: {posted:amount}."
    OPERATOR_WRONG = (
        "The {env:word} {currency:word} account {account:word} of merchant {merchant:number} is wrong: it says "
        "{booked:amount} is owed, payments and refunds say {wanted:amount}."
    )
    ENTRY_WITHOUT_SUSPENSE = (
        "Wallet entry {entry:number} waits for payment {payment:number}, which put nothing in suspense."
    )
    ENTRY_AMOUNT = "Wallet entry {entry:number} waits with {held:amount}, {posted:amount} is in suspense."
    ENTRY_RELEASED = "Wallet entry {entry:number} still waits, but posting {posting:number} released it."
    # Payments, refunds, disputes and their postings.
    OF_PAYMENT = "Payment {reference:word} ({env:word}, {status:word}): {audit_fault}."
    OF_REFUND = "Refund {reference:word} ({env:word}, {status:word}): {audit_fault}."
    OF_DISPUTE = "Dispute {reference:word} ({env:word}): {audit_fault}."
    ORPHAN = (
        "Posting {posting:number} ({cause:word}) belongs to no {noun:word} {number:number} of its merchant, "
        "environment and currency."
    )
    NOBODY_DECIDED = "it was settled by hand, and the audit log does not say by whom"
    REFUND_MISSING = "its refund is missing"
    REFUND_STATUS = "its refund is {status:word}"
    PAYMENT_STATUS = "its payment is {status:word}"
    BOOKED_ALL_THE_SAME = "posting {posting:number} books it all the same"
    TEST_IN_SUSPENSE = "a test payment never waits in suspense"
    OTHER_OWNER = "its payment is of another merchant, environment or currency"
    OTHER_AMOUNT = "it returns {returned:amount}, the payment took {taken:amount}"
    NOT_HELD = "it was paid out without having been held"
    NOT_ITS_POSTING = "posting {posting:number} ({cause:word}, {leg:word}) is not one of its postings"
    OTHER_ENVIRONMENT = "posting {posting:number} is booked in {env:word} {currency:word}"
    OTHER_MOVE = (
        "posting {posting:number} moves {moved:amount} from {source:word} to {destination:word}, not {wanted:amount} "
        "from {right_source:word} to {right_destination:word}"
    )
    POSTING_MISSING = "its posting {cause:word}, {leg:word} is missing"
