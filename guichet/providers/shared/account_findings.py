"""What a deep check says about an account of ours: what was looked at, what was found out, and what providers share to
find it out.

Names of settings, operators and addresses are no words of ours: they stand there as they are."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from guichet.domain.messages import Amount, Answer, Code, Message, verbatim
from guichet.providers.base import Unknown
from guichet.providers.capabilities import FloatBalance
from guichet.providers.shared.client import CallResult, ProviderAccount, ProviderResponse


class AccountSubject(Code):
    BALANCES = "account_subject.balances"
    LIMITS = "account_subject.limits"
    LIMITS_AND_BALANCE = "account_subject.limits_and_balance"
    ENVIRONMENT = "account_subject.environment"
    ROUTES = "account_subject.routes"
    COUNTRY = "account_subject.country"
    CREDENTIALS = "account_subject.credentials"
    PRODUCT_KEYS = "account_subject.product_keys", "product"
    KEY_AND_SIGNATURE = "account_subject.key_and_signature"
    MERCHANT_KEY = "account_subject.merchant_key"
    MERCHANT_CODE = "account_subject.merchant_code"
    CHECKOUT_SCOPE = "account_subject.checkout_scope"
    CONFIGURATION = "account_subject.configuration"
    CHARGES = "account_subject.charges"
    SHOP = "account_subject.shop"
    NETWORKS = "account_subject.networks"
    RETAILER = "account_subject.retailer"
    AGGREGATED_MERCHANTS = "account_subject.aggregated_merchants"
    TRANSACTIONS = "account_subject.transactions"
    OUR_CALLBACK = "account_subject.our_callback"
    CALLBACK_LENGTH = "account_subject.callback_length"
    REGISTERED_CALLBACK = "account_subject.registered_callback"
    CALLBACK_HOST = "account_subject.callback_host"
    CALLBACK_KEY = "account_subject.callback_key"
    SIGNATURES = "account_subject.signatures"
    SIGNED_REQUEST = "account_subject.signed_request"


class AccountFinding(Code):
    """`address`: of callbacks. `why` and `without`: another message of these."""

    NO_CALL = "account_finding.no_call", "why"
    ONLY_BY_PAYMENT = "account_finding.only_by_payment"
    ONLY_BY_CASH_IN = "account_finding.only_by_cash_in"
    # Where it leads to, and what it may do.
    LIVE = "account_finding.live"
    SIMULATOR = "account_finding.simulator"
    SANDBOX = "account_finding.sandbox", "why"
    SANDBOX_HOST = "account_finding.sandbox_host", "host"
    SANDBOX_TARGET = "account_finding.sandbox_target"
    SANDBOX_COUNTRY = "account_finding.sandbox_country"
    SANDBOX_KEY = "account_finding.sandbox_key"
    NO_ROUTE = "account_finding.no_route"
    CHARGES_ENABLED = "account_finding.charges_enabled", "country", "currency"
    CHARGES_DISABLED = "account_finding.charges_disabled", "country", "currency"
    NOT_ENABLED = "account_finding.not_enabled", "code"
    ENABLED_ALONE = "account_finding.enabled_alone", "code", "least", "most", "state"
    ENABLED = "account_finding.enabled", "code", "least", "most", "state", "others"
    # Keys, signatures and other settings.
    SET = "account_finding.set"
    NOT_SET = "account_finding.not_set", "without"
    CANNOT_REFUND = "account_finding.cannot_refund"
    CALLBACKS_UNCHECKED = "account_finding.callbacks_unchecked"
    REQUESTS_UNSIGNED = "account_finding.requests_unsigned"
    SIGNING_NEEDED = "account_finding.signing_needed"
    SIGNED_ONLY = "account_finding.signed_only"
    SIGNATURE_ACCEPTED = "account_finding.signature_accepted"
    SIGNED_GET = "account_finding.signed_get"
    SIGNED_POST = "account_finding.signed_post"
    CLIENT_ACCEPTED = "account_finding.client_accepted"
    HASH_ACCEPTED = "account_finding.hash_accepted"
    KEYS_ACCEPTED = "account_finding.keys_accepted"
    SHOP_ACCEPTED = "account_finding.shop_accepted"
    TRANSACTIONS_LISTED = "account_finding.transactions_listed"
    KEY_OF_COUNTRY = "account_finding.key_of_country", "other", "country"
    SECRETS_EXCHANGED = "account_finding.secrets_exchanged", "kind"
    NOT_PERMITTED = "account_finding.not_permitted"
    CALLBACK_KEY_UNSET = "account_finding.callback_key_unset"
    CALLBACK_KEY_KNOWN = "account_finding.callback_key_known"
    CALLBACK_KEY_UNKNOWN = "account_finding.callback_key_unknown"
    # Addresses to which the provider sends callbacks.
    NO_CALLBACKS = "account_finding.no_callbacks"
    NOT_PUBLIC = "account_finding.not_public", "address"
    CHARACTERS = "account_finding.characters", "length", "most"
    ADDRESS_UNSET = "account_finding.address_unset", "address"
    ADDRESS_WRONG = "account_finding.address_wrong", "other", "address"
    ADDRESS_SET = "account_finding.address_set", "address"
    NOT_REGISTERED = "account_finding.not_registered"
    HOST_IN_PORTAL = "account_finding.host_in_portal", "host"
    HOST_WRONG = "account_finding.host_wrong", "other", "host"
    IN_DASHBOARD = "account_finding.in_dashboard", "address"
    IN_SHOP = "account_finding.in_shop", "address"
    IN_PORTAL = "account_finding.in_portal", "address"
    NO_ENDPOINT = "account_finding.no_endpoint", "address"
    ENDPOINT_DISABLED = "account_finding.endpoint_disabled", "address"
    EVENTS_MISSING = "account_finding.events_missing", "address", "events"
    ENDPOINT_KNOWN = "account_finding.endpoint_known", "address"
    # Amounts and numbers.
    NO_BALANCE = "account_finding.no_balance"
    BALANCES = "account_finding.balances", "balances"
    BALANCE_OF = "account_finding.balance_of", "wallet", "balance"
    MERCHANTS_AT_WAVE = "account_finding.merchants_at_wave", "count"
    NETWORK_CLOSED = "account_finding.network_closed"
    LIMITS_OF_FEEXPAY = "account_finding.limits_of_feexpay"
    LIMITS_OF_STRIPE = "account_finding.limits_of_stripe"
    MTN_TELLS_NONE = "account_finding.mtn_tells_none"
    CORIS_TELLS_NONE = "account_finding.coris_tells_none"
    ORANGE_TELLS_NONE = "account_finding.orange_tells_none"


class BalanceProblem(Code):
    """Of one of our balances with a provider."""

    TOO_LOW = "balance_problem.too_low"
    UNREADABLE = "balance_problem.unreadable", "answer"


#: `unchecked`: nothing is known to be wrong, but a person must look, or there is nothing to check.
FindingState = Literal["ok", "wrong", "unchecked"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, and what there is to say about it."""

    subject: Message
    state: FindingState
    message: Message


@dataclass(frozen=True, slots=True)
class AccountSetup:
    """The account, the operators whose routes lead to it, and our own address."""

    account: ProviderAccount
    operators: Collection[str]
    public_url: str

    @property
    def callback_addresses(self) -> tuple[str, str]:
        """Either may be entered where the provider has one address: of all accounts of its type, or of this one."""
        names = (self.account.provider, self.account.name)
        return (f"{self.public_url}/providers/{names[0]}/callback", f"{self.public_url}/providers/{names[1]}/callback")


@runtime_checkable
class ChecksAccount(Protocol):
    """A provider that tells about its account through calls that move no money."""

    async def check_account(self, setup: AccountSetup) -> list[Finding]: ...


def ok(subject: Message, message: Message) -> Finding:
    return Finding(subject, "ok", message)


def wrong(subject: Message, message: Message) -> Finding:
    return Finding(subject, "wrong", message)


def unchecked(subject: Message, message: Message) -> Finding:
    return Finding(subject, "unchecked", message)


def no_call(subject: Message, message: Message) -> Finding:
    """The provider has no call that tells it."""
    return unchecked(subject, AccountFinding.NO_CALL(why=message))


def answered(subject: Message, result: CallResult, message: Message) -> Finding:
    """`message` after a 2xx; else what came back."""
    is_ok = isinstance(result, ProviderResponse) and result.ok
    return ok(subject, message) if is_ok else wrong(subject, verbatim(result.raw))


def probed(answer: Answer, message: Message) -> Finding:
    """`message` after a probe that was answered `ok`; else what came back."""
    subject = AccountSubject.CREDENTIALS()
    return ok(subject, message) if answer == "ok" else wrong(subject, verbatim(answer))


def balances_read(found: list[FloatBalance] | Unknown) -> Finding:
    if isinstance(found, Unknown):
        return wrong(AccountSubject.BALANCES(), verbatim(found.raw))
    if not found:
        return ok(AccountSubject.BALANCES(), AccountFinding.NO_BALANCE())
    return ok(AccountSubject.BALANCES(), AccountFinding.BALANCES(balances=[_balance(each) for each in found]))


def _balance(found: FloatBalance) -> Message | Amount:
    balance = Amount(found.amount, found.currency)
    return AccountFinding.BALANCE_OF(wallet=found.wallet, balance=balance) if found.wallet else balance


def callback_address_is_ours(subject: Message, address: object, setup: AccountSetup) -> Finding:
    """The address that the provider has is one of ours."""
    ours = setup.callback_addresses[0]
    if not isinstance(address, str) or not address:
        return wrong(subject, AccountFinding.ADDRESS_UNSET(address=ours))
    if address.rstrip("/") in setup.callback_addresses:
        return ok(subject, AccountFinding.ADDRESS_SET(address=address))
    return wrong(subject, AccountFinding.ADDRESS_WRONG(other=address, address=ours))
