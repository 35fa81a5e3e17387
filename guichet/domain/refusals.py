"""Why an act of a person is refused (`audit_log.ActRefused`): commands print it, the back office says it in the
reader's language.

`told`: what the provider says of a payment or refund. `decisions`, `bearers`: what may be chosen, with commas."""

from guichet.domain.sentences import Sentences


class Refusal(Sentences):
    # Requests that a second person approves.
    WAITS_ALREADY = "A request about {subject} waits already: it must be decided first."
    NOT_WAITING = "The request {request:number} does not wait any more."
    DECIDED = "The request {request:number} is {decision:word}."
    NO_REQUEST = "There is no request {request:number}."
    NOT_ALLOWED = "{email:word} may not ask for this: no active account of the staff with {right:word}."
    NOT_ALLOWED_ANY_MORE = "{email:word} may not ask for this any more."
    NOBODY_ELSE = (
        "Nobody but {email:word} could approve this: another person must join the staff first "
        "(`guichet user invite EMAIL --staff --role admin --name NAME`)."
    )
    OWN_REQUEST = "{email:word} asked for this: another person must approve it."
    TOO_NEW = "{email:word} has had this role in the staff for less than 24 hours: somebody else must approve it."
    ENDED_ALIKE = "{subject} ended in the same way meanwhile, by itself: refuse the request."
    # What it is about.
    NO_PAYMENT = "There is no payment {subject}."
    NO_REFUND = "There is no refund {subject}."
    NO_DISPUTE = "There is no dispute {subject}."
    NO_LATE_MONEY = "There is no late money about {reference:word}."
    NO_REFERENCE = "{subject} is no reference."
    NO_WALLET = "{subject} is no wallet."
    NO_MERCHANT = "There is no merchant with the id {merchant:number}."
    DECIDE_ONE = "One of {decisions} must be decided."
    BEAR_ONE = "One of {bearers} must bear it."
    # Payments and refunds.
    LIVE_ONLY = "Only live payments and refunds are settled by hand."
    FINAL = (
        "{reference:word} is {status:word} already. If the provider says otherwise now, "
        "`guichet late-money list` shows it."
    )
    NOT_COVERED = "The wallet did not cover this refund: the worker ends it as failed by itself."
    SETTLED_MEANWHILE = "{reference:word} was settled as {status:word} by another process meanwhile."
    BEING_ASKED = "Another process is asking the provider about {reference:word}: try again in a minute."
    CONTRADICTED = (
        "The provider says that {reference:word} is: {told}. It cannot be settled as {status:word}; "
        "two people can override the provider with --override."
    )
    REFUND_SENT = "The refund was already sent to a provider, or is final."
    NO_PAYEE = "Only a live refund has a payee."
    PAYEE_KNOWN = "The number that paid is known: the refund goes there."
    NO_NUMBER = "{number} is not a phone number with its country code, such as 2290197001234."
    NUMBER_ELSEWHERE = "A number of {operator:word} begins with {prefix:word}."
    JUST_DECIDED = "Somebody else has just decided about it."
    NOTHING_TO_DECIDE = "Nothing is to be decided about {reference:word}: it is {stage:word}."
    OTHER_CHOICES = "About {reference:word}, which is {stage:word}, can be decided: {decisions}."
    CANNOT_GIVE_BACK = "{account:word} cannot give money back."
    PAYER_UNKNOWN = "Nobody states which number paid, so it cannot be paid back by a payout."
    NOT_LOST = "The dispute {reference:word} is not lost, or somebody decided about it already."
    # Wallets.
    WALLET_NOT_ACTIVE = "The merchant's wallet is not Actif: open it first."
    WALLET_TOO_LOW = "The wallet holds {balance:amount}, which does not cover {wanted:amount}."
    WALLET_ACTIVE = "The {currency:word} wallet of merchant {merchant:number} is Actif already."
    # Webhooks and API keys.
    STILL_TRIED = "This delivery is still being tried."
    NO_ENDPOINT = "The merchant has disabled its endpoint."
    DELIVERY_CHANGED = "This delivery has changed meanwhile: look at it again."
    NEWER_KEY = "Another key was created meanwhile."
    TOO_MANY_KEYS = "{count:number} keys are not revoked: one must be revoked first."
    KEY_ENDED = "This key works no more."
    KEY_IN_PAST = "A key that expired on {at:instant} would never work."
    # The test environment.
    CLOCK_STEP = "A test clock is advanced by one second to 366 days at a time."
    CLOCK_MOVED = "The test clock was moved meanwhile."
    TOO_MUCH_WAITS = "More than {count:number} payments or webhooks of this merchant wait: let the worker finish."
    NO_TEST_ENDPOINT = "Merchant {merchant:number} has no webhook address in the test environment."
    NO_SIMPLE_MODE = "No payment mode of this merchant needs nothing but a telephone number."
    NO_CARD = "No card is active for this merchant."
