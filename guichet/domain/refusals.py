"""Why an act of a person is refused (`audit_log.ActRefused`): commands print it, the back office says it in the
reader's language.

`told`: what the provider says of a payment or refund. `decisions`, `bearers`: what may be chosen, with commas."""

from guichet.domain.messages import Code


class Refusal(Code):
    # Requests that a second person approves.
    WAITS_ALREADY = "refusal.waits_already", "subject"
    NOT_WAITING = "refusal.not_waiting", "request"
    DECIDED = "refusal.decided", "request", "decision"
    NO_REQUEST = "refusal.no_request", "request"
    NOT_ALLOWED = "refusal.not_allowed", "email", "right"
    NOT_ALLOWED_ANY_MORE = "refusal.not_allowed_any_more", "email"
    NOBODY_ELSE = "refusal.nobody_else", "email"
    OWN_REQUEST = "refusal.own_request", "email"
    TOO_NEW = "refusal.too_new", "email"
    ENDED_ALIKE = "refusal.ended_alike", "subject"
    # What it is about.
    NO_PAYMENT = "refusal.no_payment", "subject"
    NO_REFUND = "refusal.no_refund", "subject"
    NO_DISPUTE = "refusal.no_dispute", "subject"
    NO_LATE_MONEY = "refusal.no_late_money", "reference"
    NO_REFERENCE = "refusal.no_reference", "subject"
    NO_WALLET = "refusal.no_wallet", "subject"
    NO_MERCHANT = "refusal.no_merchant", "merchant"
    DECIDE_ONE = "refusal.decide_one", "decisions"
    BEAR_ONE = "refusal.bear_one", "bearers"
    # Payments and refunds.
    LIVE_ONLY = "refusal.live_only"
    FINAL = "refusal.final", "reference", "status"
    NOT_COVERED = "refusal.not_covered"
    SETTLED_MEANWHILE = "refusal.settled_meanwhile", "reference", "status"
    BEING_ASKED = "refusal.being_asked", "reference"
    CONTRADICTED = "refusal.contradicted", "reference", "told", "status"
    REFUND_SENT = "refusal.refund_sent"
    NO_PAYEE = "refusal.no_payee"
    PAYEE_KNOWN = "refusal.payee_known"
    NO_NUMBER = "refusal.no_number", "number"
    NUMBER_ELSEWHERE = "refusal.number_elsewhere", "operator", "prefix"
    JUST_DECIDED = "refusal.just_decided"
    NOTHING_TO_DECIDE = "refusal.nothing_to_decide", "reference", "stage"
    OTHER_CHOICES = "refusal.other_choices", "reference", "stage", "decisions"
    RETURN_ANSWERED = "refusal.return_answered", "reference", "stage"
    RETURN_UNDER_WAY = "refusal.return_under_way", "reference"
    RETURN_UNKNOWN = "refusal.return_unknown", "reference"
    CANNOT_GIVE_BACK = "refusal.cannot_give_back", "account"
    PAYER_UNKNOWN = "refusal.payer_unknown"
    NOT_LOST = "refusal.not_lost", "reference"
    NOT_SENT = "refusal.not_sent", "reference"
    ACCOUNT_NAMED = "refusal.account_named", "account"
    ACCOUNT_UNREAD = "refusal.account_unread", "account"
    SETTINGS_CHANGED = "refusal.settings_changed", "account"
    # Wallets.
    WALLET_NOT_ACTIVE = "refusal.wallet_not_active"
    WALLET_TOO_LOW = "refusal.wallet_too_low", "balance", "wanted"
    WALLET_ACTIVE = "refusal.wallet_active", "currency", "merchant"
    # Webhooks and API keys.
    STILL_TRIED = "refusal.still_tried"
    NO_ENDPOINT = "refusal.no_endpoint"
    DELIVERY_CHANGED = "refusal.delivery_changed"
    NEWER_KEY = "refusal.newer_key"
    TOO_MANY_KEYS = "refusal.too_many_keys", "count"
    KEY_ENDED = "refusal.key_ended"
    KEY_IN_PAST = "refusal.key_in_past", "at"
    # The test environment.
    CLOCK_STEP = "refusal.clock_step"
    CLOCK_MOVED = "refusal.clock_moved"
    TOO_MUCH_WAITS = "refusal.too_much_waits", "count"
    NO_TEST_ENDPOINT = "refusal.no_test_endpoint", "merchant"
    NO_SIMPLE_MODE = "refusal.no_simple_mode"
    NO_CARD = "refusal.no_card"
