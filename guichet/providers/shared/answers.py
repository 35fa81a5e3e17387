"""What Guichet itself says in place of a provider's answer (`raw` of the results in `base.py`): logs, incidents, checks
of accounts and runs of reconciliation quote it beside what providers say themselves.

`answer`: what the provider said, or one of these again."""

from guichet.domain.messages import Code


class ProviderAnswer(Code):
    NOT_CONNECTED = "provider_answer.not_connected"
    ACCOUNT_GONE = "provider_answer.account_gone", "account"
    ANOTHER_ACCOUNT = "provider_answer.another_account"
    NO_ANSWER = "provider_answer.no_answer", "seconds"
    UNAUTHENTICATED = "provider_answer.unauthenticated", "answer"
    NEVER_ARRIVED = "provider_answer.never_arrived", "answer"
    SETTLED_BY_PERSON = "provider_answer.settled_by_person"
    # What an account does not do.
    OPERATOR_NOT_SERVED = "provider_answer.operator_not_served", "account", "operator"
    CURRENCY_NOT_TAKEN = "provider_answer.currency_not_taken", "account", "operator", "currency"
    NO_REFUNDS = "provider_answer.no_refunds"
    NO_DISBURSEMENT_KEYS = "provider_answer.no_disbursement_keys"
    NO_CODES = "provider_answer.no_codes", "account"
    NO_CODES_FOR = "provider_answer.no_codes_for", "operator"
    NO_CODE_GIVEN = "provider_answer.no_code_given"
    NOT_PAID_BY_SONATEL = "provider_answer.not_paid_by_sonatel", "currency"
    NOT_PAID_BY_PAWAPAY = "provider_answer.not_paid_by_pawapay", "operator", "currency"
    TOO_SMALL_FOR_FEEXPAY = "provider_answer.too_small_for_feexpay"
    TOO_SMALL_FOR_FEDAPAY = "provider_answer.too_small_for_fedapay"
    TOO_LARGE_FOR_STRIPE = "provider_answer.too_large_for_stripe"
    NOT_TAKEN_BY_STRIPE = "provider_answer.not_taken_by_stripe", "operator", "currency", "page"
    NO_RETURN_PAGE = "provider_answer.no_return_page"
    NO_ADDRESSES = "provider_answer.no_addresses"
    ONLY_NUMBERS_WITH = "provider_answer.only_numbers_with", "operator", "prefix"
    NOT_AGGREGATED = "provider_answer.not_aggregated"
    NO_PUBLIC_KEY = "provider_answer.no_public_key", "answer"
    NOT_RSA = "provider_answer.not_rsa"
    # What became of a request is not known.
    SESSION_WITHOUT_ID = "provider_answer.session_without_id"
    SESSION_UNKNOWN = "provider_answer.session_unknown"
    NO_SESSION = "provider_answer.no_session"
    NO_SESSION_REFUND = "provider_answer.no_session_refund"
    OTHER_SESSIONS = "provider_answer.other_sessions"
    PAYMENT_NOT_FOUND = "provider_answer.payment_not_found", "answer"
    ASKED_BY_REPEATING = "provider_answer.asked_by_repeating"
    RESPONSE_LOST = "provider_answer.response_lost"
    PAY_PAGE_LOST = "provider_answer.pay_page_lost"
    TEST_MODE = "provider_answer.test_mode"
    OTHER_CALLBACK_INFO = "provider_answer.other_callback_info"
    OTHER_REFERENCE = "provider_answer.other_reference", "answer"
    OTHER_ORDER = "provider_answer.other_order", "answer"
    REFERENCES_UNKNOWN = "provider_answer.references_unknown"
    NOT_LISTED = "provider_answer.not_listed"
    NOT_IN_HISTORY = "provider_answer.not_in_history"
    # What could not be read to its end.
    TOO_MANY_MERCHANTS = "provider_answer.too_many_merchants", "count"
    TOO_MANY_DISPUTES = "provider_answer.too_many_disputes"
    TOO_MANY_TRANSACTIONS = "provider_answer.too_many_transactions", "count", "day"
    TOO_MANY_PAGES = "provider_answer.too_many_pages", "day", "count"
    CURSOR_STAYS = "provider_answer.cursor_stays", "day", "cursor"
    STATEMENT_NOT_READY = "provider_answer.statement_not_ready", "statement", "answer"
    STATEMENT_UNREADABLE = "provider_answer.statement_unreadable", "wallet", "answer"
    COLUMN_MISSING = "provider_answer.column_missing", "column"
    COLUMNS_DIFFER = "provider_answer.columns_differ", "found", "wanted"
    # The two products of MTN.
    OF_COLLECTION = "provider_answer.of_collection", "answer"
    OF_DISBURSEMENT = "provider_answer.of_disbursement", "answer"
    # The sandbox of Guichet.
    WRONG_OTP_SCENARIO = "provider_answer.wrong_otp_scenario"
    REFUSED_NUMBER = "provider_answer.refused_number"
