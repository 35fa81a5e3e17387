"""The interface of a provider: what Guichet calls, and the few results that a call can have.

    initiate        debit a customer
    status          ask what became of that debit
    refund          give the money back
    refund_status   ask what became of that refund
    parse_callback  find which payment or refund a callback is about (never what happened to it)

Results are types. Only `Succeeded` and `Refused` are explicit answers of the provider. Whatever is unclear is `Unknown`
and moves no money (D21). Only after `NotProcessed` may another route be tried: the provider did not take the request.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final

import msgspec

from guichet.clock import MINUTE, Instant
from guichet.domain.failures import RefusalReason
from guichet.domain.messages import Answer
from guichet.domain.money import Currency, Hundredths
from guichet.domain.payments import Payment
from guichet.domain.records import Record

#: The operator codes of cards; every other code is Mobile Money (docs/contract.md, "Operators").
CARDS: Final = frozenset({"VISA", "MASTERCARD"})


class Charge(Record, frozen=True):
    """A debit of a customer: the payment, and what only a call has. `amount` is the total, rounded to the smallest unit
    of the currency (D27)."""

    payment: Payment
    amount: Hundredths
    otp: str | None = None
    #: The merchant's page to which the provider's page sends the customer back.
    return_url: str | None = None
    #: Where the provider may send callbacks; its path ends with our reference. None without a public address.
    notify_url: str | None = None
    #: The provider's id of the merchant, for an account that `needs_merchant_id`.
    provider_merchant_id: str | None = None
    #: The provider's reference that a callback about this payment named. Anybody can send a callback: a provider may
    #: ask about it, but must prove that the transaction is this payment before it believes the answer.
    callback_reference: str | None = None
    #: Ask for its state and nothing else: it ended here, or a person is about to end it, so a request that was lost
    #: must not be sent again, not even under the same reference.
    ask_only: bool = False
    #: What `Accepted.provider_data` held when the debit was initiated.
    provider_data: Mapping[str, str] = msgspec.field(default_factory=dict)


class RefundRequest(Record, frozen=True):
    """A refund: our reference for it, the debit that it gives back, and how much."""

    reference: str
    charge: Charge
    amount: Hundredths
    currency: Currency
    #: True when the account that is called also took the payment; otherwise only a payout can give the money back.
    collected_here: bool = True
    #: The number that a payout goes to. Never None when the account `pays_out`.
    payee_number: str | None = None
    provider_reference: str | None = None
    provider_data: Mapping[str, str] = msgspec.field(default_factory=dict)
    #: When the refund was last sent to the provider.
    sent_at: Instant | None = None
    #: Whether it is proven that no request under this reference ever arrived (`domain/payments.py`). Until then,
    #: what a repeated request is refused for says nothing about the first one.
    never_arrived: bool = False
    #: As that of `Charge`.
    ask_only: bool = False


class Accepted(Record, frozen=True):
    """The provider took the request and the result is not final yet.

    `redirect_url` is the provider's page on which the customer confirms. `provider_data` is stored and comes back with
    the next calls. `next_poll_at` is when to ask first; None means after the usual interval. `float_empty`: the
    provider keeps a refund until our balance with it covers it, and then pays it by itself.
    """

    provider_reference: str | None = None
    redirect_url: str | None = None
    provider_data: Mapping[str, str] = msgspec.field(default_factory=dict)
    next_poll_at: Instant | None = None
    float_empty: bool = False


class Succeeded(Record, frozen=True):
    """The provider says that it moved the money: `amount` and `currency` as it states them, None if it does not.

    The caller compares both with ours before anything is booked. `payer_number` is the full number that paid, as digits
    with the country code; None where the provider does not state it.
    """

    amount: Hundredths | None
    currency: str | None
    provider_reference: str | None = None
    payer_number: str | None = None


class Refused(Record, frozen=True):
    """The provider says that it did not move the money and never will.

    `stated`: False when it does not say so itself: it did not know our reference often enough, or a person decided. It
    is then asked about for much longer (`domain/late_results.py`).
    """

    reason: RefusalReason = "refused"
    raw: Answer = ""
    stated: bool = True


class AmbiguousRefusal(Refused, frozen=True):
    """Of a refund only: refused by a code that means either the payee or our own balance with the provider. Nothing was
    moved, and under this reference nothing ever will be. Our balance tells which (`refunds/ambiguous_refusals.py`)."""

    code: str = ""


class Unknown(Record, frozen=True):
    """Nothing can be concluded (timeout, broken connection, 5xx, unreadable body): ask again later."""

    raw: Answer = ""


class NotFound(Record, frozen=True):
    """The provider does not know our reference, and a debit or payout that it had taken it would know. One such answer
    proves nothing, because the request may still be on its way: `domain/payments.py` says what proves it."""

    raw: Answer = ""


class NotProcessed(Record, frozen=True):
    """The provider certainly did not take the request (no connection, or it says so): another route may be tried."""

    reason: RefusalReason = "operator_unavailable"
    raw: Answer = ""


class FloatEmpty(Record, frozen=True):
    """Our own balance with the provider does not cover the refund: nothing was moved, and under this reference nothing
    ever will be. It is no refusal of the customer's account: the refund is sent again later, as a new request.

    `is_certain`: False when the provider did not say so plainly and our balance could not be read."""

    raw: Answer = ""
    is_certain: bool = True


class AlreadyRefunded(Record, frozen=True):
    """The provider says that the payment was given back before, by a refund that it does not name. The customer has the
    money, so the hold must not be released; a person must look."""

    raw: Answer = ""


#: Seconds that a provider may take to answer any call, and an initiation unless the provider needs longer.
PROVIDER_TIMEOUT: Final = 20.0

InitiationResult = Accepted | Succeeded | Refused | Unknown | NotProcessed
StatusResult = Accepted | Succeeded | Refused | Unknown | NotFound
#: What `refund` and `refund_status` return.
RefundInitiationResult = InitiationResult | FloatEmpty | AlreadyRefunded
RefundStatusResult = StatusResult | FloatEmpty | AlreadyRefunded
OtpRequestResult = Accepted | Refused | Unknown | NotProcessed


class Callback(Record, frozen=True):
    """A callback as we received it. `body` is not decoded, because signatures are computed over its bytes."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class CallbackReference(Record, frozen=True):
    """How a callback names a payment or a refund: by our reference, by the provider's, or both.

    `about_dispute`: it says that something happened to a dispute; then all disputes are asked for.
    """

    reference: str | None = None
    provider_reference: str | None = None
    about_dispute: bool = False
    #: True when it is about a statement of the account that we asked for, which is fetched in any case.
    about_statement: bool = False


class Provider(ABC):
    """One provider's API through one account. Never raises for what the provider does: every fault is a result.

    Without overrides: no network, no refunds, no callbacks, the usual poll intervals.
    """

    #: False when every result comes from what we know already: such a call needs no lease and no network.
    remote = False
    #: Which account this really is: derived from its address, its users and its target environment, and from its key
    #: only where no setting names the account (`shared/fingerprints.py`). None where there is no account. A provider
    #: knows a transaction only on the account that took it: elsewhere "not found" proves nothing.
    fingerprint: str | None = None
    #: No setting names the account. Keys are renewed, so the provider itself is asked whose it is (`StatesIdentity`).
    identified_by_key = False
    #: Whether this account wants its own id of the merchant with every payment and payout; then a charge without
    #: `provider_merchant_id` is NotProcessed.
    needs_merchant_id = False
    #: Seconds that `initiate` may take. Some networks answer only after the customer typed the PIN.
    initiation_timeout = PROVIDER_TIMEOUT
    #: For how long, in microseconds, a customer may confirm a debit: on the telephone, and on the provider's page. What
    #: nobody states is longer than what is known of any network. A confirmation after that is believed all the same.
    prompt_lasts = 15 * MINUTE
    page_lasts = 30 * MINUTE

    def first_poll_at(self, charge: Charge) -> Instant | None:
        """Of one that is not `remote`: when the result is there; None for the usual interval."""
        return None

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        """Whether `refund` can give money back to a customer of this operator.

        `collected_here`: this account took the payment; otherwise only a payout can give the money back.
        """
        return False

    def pays_out(self, operator: str, *, collected_here: bool) -> bool:
        """Whether `refund` sends the money to a number, which must therefore be the one that paid; False when the
        provider itself gives the debit back to whoever paid it."""
        return True

    @abstractmethod
    def takes(self, operator: str, currency: Currency) -> bool:
        """Whether `initiate` debits customers of this operator in this currency; otherwise it is NotProcessed."""

    def collection_wallet(self, operator: str) -> str:
        """Our wallet with the provider that payments of this operator fill, in the word by which the account tells its
        wallets apart (`FloatBalance.wallet`); "" where it has only one."""
        return ""

    def payout_wallet(self, operator: str) -> str:
        """The wallet from which money goes back to customers of this operator."""
        return self.collection_wallet(operator)

    @abstractmethod
    async def initiate(self, charge: Charge) -> InitiationResult: ...

    @abstractmethod
    async def status(self, charge: Charge) -> StatusResult: ...

    def prepare_refund(self, request: RefundRequest) -> Mapping[str, str]:
        """What must be stored before the refund is sent, because a setting may change before its status is asked. It
        comes back in `RefundRequest.provider_data`."""
        return {}

    async def refund(self, request: RefundRequest) -> RefundInitiationResult:
        return Refused("no_refund")

    async def refund_status(self, request: RefundRequest) -> RefundStatusResult:
        return Unknown()

    @abstractmethod
    async def probe(self) -> Answer:
        """Make a harmless call that needs our credentials; return `ok`, or what is wrong."""

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        """The references in a callback; None when it is not readable or its signature is wrong."""
        return None
