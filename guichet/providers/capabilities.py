"""What some providers offer beyond the interface of all (`base.py`): histories, balances, disputes, texted codes.

Each is a protocol that `isinstance` can ask for; it is asked outside the way of an ordinary payment.
"""

from collections.abc import Mapping
from typing import Literal, Protocol, runtime_checkable

from guichet.clock import Instant
from guichet.domain.availability import OperatorState
from guichet.domain.money import Hundredths
from guichet.domain.reconciliation import Line
from guichet.domain.records import Record
from guichet.providers.base import Charge, NotProcessed, OtpRequestResult, Refused, Unknown

DisputedStatus = Literal["open", "won", "lost", "inquiry", "prevented"]


class DisputeFacts(Record, frozen=True):
    """A dispute as the provider states it. `payment_reference` is ours; `amount` in hundredths, what it took back.

    An `inquiry` took nothing back (yet). Of a `prevented` one the provider does not say whether it did.
    """

    provider_reference: str
    payment_reference: str | None
    status: DisputedStatus
    amount: Hundredths
    currency: str
    reason: str
    opened_at: Instant
    evidence_due_at: Instant | None
    is_live: bool


@runtime_checkable
class History(Protocol):
    """A provider that lists its own transactions; `guichet reconcile --fetch` and the daily comparison use it."""

    async def history(self, since: Instant, until: Instant, notify_url: str) -> list[Line] | Unknown:
        """Every transaction of the days from `since` to `until`; Unknown when the list may be incomplete.

        Where the history takes minutes to make, the provider may tell `notify_url` that it is ready.
        """


@runtime_checkable
class StatesAvailability(Protocol):
    """A provider that says which operators work at present."""

    async def availability(self) -> Mapping[str, OperatorState] | Unknown:
        """By our operator code; an operator of which it says nothing is left out."""


class FloatBalance(Record, frozen=True):
    """Money of ours that a provider holds. `wallet` tells the balances of one account apart, in the provider's own word
    (MTN's product, pawaPay's country, FeexPay's network); it is empty where an account has only one."""

    wallet: str
    amount: Hundredths
    currency: str
    #: Ours too, but not to be paid out yet; not in `amount`.
    not_yet_available: int = 0


@runtime_checkable
class Balances(Protocol):
    #: Below which balance, by wallet, the staff want to know; the key "" stands for every wallet that is not named.
    float_alert_below: Mapping[str, Hundredths]

    async def balances(self) -> list[FloatBalance] | Unknown:
        """All balances of the account; Unknown when one of them cannot be read."""


@runtime_checkable
class StatesIdentity(Protocol):
    """A provider that says whose account a key belongs to."""

    async def account_identity(self) -> str | Unknown | None:
        """Its own name of the account, which stays when the key is renewed. None where it does not tell this key."""


@runtime_checkable
class HasDisputes(Protocol):
    """A provider whose payers can contest a payment with their bank."""

    async def disputes(self, since: Instant) -> list[DisputeFacts] | Unknown:
        """Every dispute opened after `since`; Unknown when the list may be incomplete."""


class MerchantNames(Protocol):
    """The merchants for whom an account collects, as the provider knows them."""

    #: Characters that it takes as a name.
    max_length: int

    async def ids_by_name(self) -> Mapping[str, str] | Unknown:
        """All of them; Unknown when the list cannot be read to its end."""

    async def create(self, name: str) -> str | NotProcessed | Refused | Unknown:
        """The id of a new one. After Unknown it may exist: look for its name before it is made again."""


@runtime_checkable
class AggregatesMerchants(Protocol):
    """A provider that must know for which of our merchants an account collects (`Provider.needs_merchant_id`)."""

    needs_merchant_id: bool
    merchants: MerchantNames


@runtime_checkable
class SendsOtpCodes(Protocol):
    """A provider that texts the customer the code that `initiate` needs."""

    async def send_code(self, charge: Charge) -> OtpRequestResult:
        """Ask for the code; moves no money. `charge` is the debit to come, not stored yet. Accepted: code sent."""
