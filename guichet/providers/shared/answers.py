"""What Guichet itself says in place of a provider's answer (`raw` of the results in `base.py`): logs, incidents, checks
of accounts and runs of reconciliation quote it beside what providers say themselves.

`answer`: what the provider said, or one of these again."""

from guichet.domain.sentences import Sentences


class ProviderAnswer(Sentences):
    NOT_CONNECTED = "not connected"
    ACCOUNT_GONE = "the account {account} is no longer in the providers' file"
    ANOTHER_ACCOUNT = "the account's address, user or target environment changed since: add it as a new one"
    NO_ANSWER = "no answer within {seconds} s"
    UNAUTHENTICATED = "no token: {answer}"
    NEVER_ARRIVED = "never arrived: {answer}"
    SETTLED_BY_PERSON = "settled by a person"
    # What an account does not do.
    OPERATOR_NOT_SERVED = "{account} does not serve {operator}"
    CURRENCY_NOT_TAKEN = "{account} does not take {operator} in {currency}"
    NO_REFUNDS = "this provider has no refunds"
    NO_DISBURSEMENT_KEYS = "the account has no disbursement keys"
    NO_CODES = "{account} texts no codes"
    NO_CODES_FOR = "FeexPay texts no code for {operator}"
    NO_CODE_GIVEN = "no code was given"
    NOT_PAID_BY_SONATEL = "Sonatel does not pay in {currency}"
    NOT_PAID_BY_PAWAPAY = "pawaPay does not pay {operator} in {currency}"
    TOO_SMALL_FOR_FEEXPAY = "FeexPay takes no payin below 100"
    TOO_LARGE_FOR_STRIPE = "Stripe takes eight digits at most"
    NOT_TAKEN_BY_STRIPE = "Stripe: {operator} in {currency}, back to {page}"
    NO_RETURN_PAGE = "Wave needs a page to send the customer back to"
    NO_ADDRESSES = "the return or notification address is missing or too long"
    ONLY_NUMBERS_WITH = "{operator}: only numbers with {prefix}"
    NOT_AGGREGATED = "the merchant is no aggregated merchant of Wave yet"
    NO_PUBLIC_KEY = "no public key: {answer}"
    NOT_RSA = "the public key is not an RSA key"
    # What became of a request is not known.
    SESSION_WITHOUT_ID = "a session without an id"
    SESSION_UNKNOWN = "the session is not known"
    NO_SESSION = "no session found"
    OTHER_SESSIONS = "sessions of other references were found"
    PAYMENT_NOT_FOUND = "no payment found to refund: {answer}"
    ASKED_BY_REPEATING = "Wave tells what became of it only to a repeated request"
    RESPONSE_LOST = "the response was lost, and its Idempotency-Key may have expired"
    PAY_PAGE_LOST = "the response with the pay_token was lost"
    TEST_MODE = "livemode: false"
    OTHER_CALLBACK_INFO = "FeexPay states another callback_info than ours"
    OTHER_REFERENCE = "about another reference: {answer}"
    OTHER_ORDER = "about another order: {answer}"
    REFERENCES_UNKNOWN = "Coris does not know our references: staff must look at its transactions"
    NOT_LISTED = "not listed"
    NOT_IN_HISTORY = "not in the history"
    # What could not be read to its end.
    TOO_MANY_MERCHANTS = "more than {count:number} aggregated merchants"
    TOO_MANY_DISPUTES = "too many disputes"
    TOO_MANY_TRANSACTIONS = "FeexPay lists only {count:number} transactions: {day:day} has more; use its export"
    TOO_MANY_PAGES = "{day:day} has more than {count:number} pages"
    CURSOR_STAYS = "the cursor of {day:day} stays at {cursor}"
    STATEMENT_NOT_READY = "statement {statement} is not ready: {answer}"
    STATEMENT_UNREADABLE = "the statement of {wallet} cannot be read: {answer}"
    COLUMN_MISSING = "it has no column {column}"
    COLUMNS_DIFFER = "{found} columns where the header has {wanted}"
    # The two products of MTN.
    OF_COLLECTION = "collection: {answer}"
    OF_DISBURSEMENT = "disbursement: {answer}"
    # The sandbox of Guichet.
    WRONG_OTP_SCENARIO = "sandbox: test_scenario wrong_otp"
    REFUSED_NUMBER = "sandbox: the number ends with 0001"
