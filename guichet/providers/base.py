"""The connector interface: what Guichet asks of an operator, and the few things an operator can answer.

    initiate       debit a customer
    status         what became of that debit
    refund         give the money back
    refund_status  what became of that refund
    read_callback  which of our payments or refunds a notification speaks of (never what happened to it)

Answers are types. Only `Succeeded` and `Refused` are explicit; everything unclear is `Unknown` and moves no money
(D21). `NotProcessed` alone permits another route: the request provably never reached the operator's books.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

import msgspec

from guichet.domain.reconciliation import Line
from guichet.domain.records import Record

#: The contract's operator codes of cards; every other code is Mobile Money.
CARDS: Final = frozenset({"VISA", "MASTERCARD"})

#: Why something was refused, in words we share across families (docs/providers/README.md, "Reasons for a refusal").
#: Keys of the French sentences below.
REFUSAL_REASONS: Final[dict[str, str]] = {
    "insufficient_funds": "Le solde du client ne suffit pas pour ce paiement.",
    "payer_not_found": "Ce numéro n'a pas de compte actif chez l'opérateur.",
    "rejected_by_payer": "Le client a refusé le paiement.",
    "expired": "Le client n'a pas validé le paiement à temps.",
    "bad_otp": "Le code de validation est incorrect ou expiré.",
    "limit_reached": "Un plafond du compte Mobile Money est atteint.",
    "operator_unavailable": "L'opérateur est momentanément indisponible.",
    "configuration": "L'opérateur n'est pas correctement relié au service.",
    "declined": "La banque a refusé la carte.",
    "not_connected": "Aucun opérateur n'est encore relié pour ce moyen de paiement en production.",
    "no_refund": "Aucun remboursement automatique n'existe pour ce moyen de paiement.",
    "refused": "L'opérateur a refusé le paiement.",
}


class Charge(Record, frozen=True):
    """A debit as a connector sees it. `amount` is hundredths, already rounded to what the currency has (D27)."""

    reference: str
    operator: str
    amount: int
    currency: str
    description: str
    created_at: int
    phone_number: str | None = None
    otp: str | None = None
    firstname: str | None = None
    lastname: str | None = None
    email: str | None = None
    country: str | None = None
    return_url: str | None = None
    #: Where the operator may notify us, ending in our reference; None where no public address is configured.
    callback_url: str | None = None
    #: What `Accepted` returned when it was initiated.
    provider_reference: str | None = None
    provider_data: Mapping[str, str] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reversal:
    """A refund as a connector sees it: our reference for it, and the debit it undoes."""

    reference: str
    charge: Charge
    amount: int
    currency: str
    #: The connection asked is the one that took the payment; otherwise only a payout can give the money back.
    collected_here: bool = True
    provider_reference: str | None = None
    provider_data: Mapping[str, str] = field(default_factory=dict)
    #: When its disbursement was last sent (Instant).
    sent_at: int | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """Taken, not final. `next_poll_at` (Instant) is when asking first makes sense; None leaves it to the intervals."""

    provider_reference: str | None = None
    redirect_url: str | None = None
    provider_data: Mapping[str, str] = field(default_factory=dict)
    next_poll_at: int | None = None


@dataclass(frozen=True, slots=True)
class Succeeded:
    """Explicitly done. `amount` (hundredths) and `currency` are what the operator says it moved; compared with ours."""

    amount: int | None
    currency: str | None
    provider_reference: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """Explicitly not done, and never will be. `reason` is a key of REASONS; `raw` goes to the log only."""

    reason: str = "refused"
    raw: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing can be concluded: timeout, broken connection, 5xx, unreadable body. Ask again later."""

    raw: str = ""


@dataclass(frozen=True, slots=True)
class NotProcessed:
    """Provably not taken (connection refused, explicit unavailability before acceptance): another route may try."""

    reason: str = "operator_unavailable"
    raw: str = ""


InitiationResult = Accepted | Succeeded | Refused | Unknown | NotProcessed
StatusResult = Accepted | Succeeded | Refused | Unknown
OtpRequestResult = Accepted | Refused | Unknown | NotProcessed


@dataclass(frozen=True, slots=True)
class Callback:
    """A notification as received. `body` is raw: signatures are computed over it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class CallbackReference:
    """What a notification lets us look up: our reference or the operator's. `verified`: its signature was checked."""

    kind: str = "payment"
    reference: str | None = None
    provider_reference: str | None = None
    verified: bool = False


class Provider(Protocol):
    """One API family over one connection. Never raises for what an operator does; every fault is an answer."""

    #: False for a connector that answers from what we know already: asking it needs no lease and no network.
    remote: bool

    def first_poll_at(self, charge: Charge) -> int | None:
        """When to ask first about a debit whose initiation was never answered (Instant); None for the default."""

    def can_refund(self, operator: str, *, collected_here: bool) -> bool:
        """Whether `refund` can give money back to customers of this operator code.

        `collected_here`: this connection took the payment; otherwise only a payout can serve.
        """

    async def initiate(self, charge: Charge) -> InitiationResult: ...

    async def status(self, charge: Charge) -> StatusResult: ...

    async def refund(self, reversal: Reversal) -> InitiationResult: ...

    async def refund_status(self, reversal: Reversal) -> StatusResult: ...

    async def probe(self) -> str:
        """Asks something harmless; `ok`, or what is wrong."""

    def parse_callback(self, callback: Callback) -> CallbackReference | None:
        """None when the notification is not readable, or its signature is wrong."""


@runtime_checkable
class History(Protocol):
    """What a connector also has when its family lists its own movements; `guichet reconcile --fetch` asks for it."""

    async def history(self, since: int, until: int) -> list[Line] | Unknown:
        """Every movement dated between two Instants, whole days; Unknown when the list cannot be had whole."""


@runtime_checkable
class SendsOtpCodes(Protocol):
    """What a connector also has when the operator itself texts the customer the code that `initiate` needs."""

    async def send_code(self, charge: Charge) -> OtpRequestResult:
        """Moves no money, whatever happens. Accepted: the code is on its way. `charge` is a debit to come, unstored."""
