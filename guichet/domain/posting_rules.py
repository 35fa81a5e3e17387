"""The double-entry rules: which accounts move at each event, and by how much (D22 to D27).

A posting moves a positive amount from one account to another, so the ledger always balances. Each merchant has these
accounts in each environment and currency:

    operator:<code>   what an operator owes us (negative when we owe the operator)
    wallet            what we owe the merchant
    fees              what the service earned
    rounding          the hundredths that cannot be moved in currencies without decimals (D27)
    suspense          credits that wait for a frozen wallet (D24)
    hold              the wallet's part of a refund that is being disbursed
    provider_fees     what providers charged the service (D90); always paid out of what an operator owes us
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from guichet.clock import Instant
from guichet.domain import money
from guichet.domain.events import PAYMENT_SUCCEEDED, REFUND_FAILED, REFUND_SUCCEEDED
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency, Hundredths

WALLET: Final = "wallet"
FEES: Final = "fees"
ROUNDING: Final = "rounding"
SUSPENSE: Final = "suspense"
HOLD: Final = "hold"
PROVIDER_FEES: Final = "provider_fees"

WalletStatus = Literal["Actif", "Gelé", "Fermé"]
ACTIVE: Final = "Actif"
FROZEN: Final = "Gelé"
CLOSED: Final = "Fermé"
WALLET_STATUSES: Final[tuple[WalletStatus, ...]] = get_args(WalletStatus)

#: What makes postings: a payment's collection and its release from suspense, a refund's hold and the end of that hold;
#: and, for either, a provider's statement that names its fee.
COLLECTED: Final = PAYMENT_SUCCEEDED
UNSUSPENDED: Final = "suspense.released"
HELD: Final = "refund.requested"
DISBURSED: Final = REFUND_SUCCEEDED
RELEASED: Final = REFUND_FAILED
PAYMENT_CHARGED: Final = "payment.provider_fee"
REFUND_CHARGED: Final = "refund.provider_fee"
PAYMENT_CAUSES: Final = (COLLECTED, UNSUSPENDED, PAYMENT_CHARGED)
REFUND_CAUSES: Final = (HELD, DISBURSED, RELEASED, REFUND_CHARGED)


@dataclass(frozen=True, slots=True)
class Posting:
    """`leg` distinguishes the postings of one cause; the database allows each (cause, subject, leg) once."""

    leg: str
    source: str
    destination: str
    amount: Hundredths


@dataclass(frozen=True, slots=True)
class Movement:
    """The postings of one cause of one subject (a payment or a refund), at one instant."""

    merchant_id: MerchantId
    env: Environment
    currency: Currency
    cause: str
    subject_id: int
    entries: Sequence[Posting]
    created_at: Instant


@dataclass(frozen=True, slots=True)
class Wallet:
    """A wallet and the sum of its postings; `balance` in hundredths."""

    merchant_id: MerchantId
    env: Environment
    currency: Currency
    status: WalletStatus
    balance: Hundredths
    updated_at: Instant


def operator_account(operator: str) -> str:
    return f"operator:{operator}"


def collection(
    operator: str, amount: Hundredths, fee: Hundredths, currency: Currency, *, to_suspense: bool = False
) -> list[Posting]:
    """The postings of a debit: `amount` to the merchant (or to suspense), `fee` to the service, the rest to
    rounding."""
    source = operator_account(operator)
    postings = [Posting("amount", source, SUSPENSE if to_suspense else WALLET, amount)]
    if fee:
        postings.append(Posting("fee", source, FEES, fee))
    return postings + _rounding(source, Hundredths(amount + fee), currency, customer_pays=True)


def suspense_release(amount: Hundredths) -> list[Posting]:
    return [Posting("amount", SUSPENSE, WALLET, amount)]


def refund_hold(amount: Hundredths) -> list[Posting]:
    """Moves the wallet's part of a refund to the hold account when the refund is requested."""
    return [Posting("amount", WALLET, HOLD, amount)]


def refund_release(amount: Hundredths) -> list[Posting]:
    return [Posting("amount", HOLD, WALLET, amount)]


def refund_disbursed(operator: str, amount: Hundredths, fee: Hundredths, currency: Currency) -> list[Posting]:
    """The postings of a disbursed refund: the customer got the held `amount` back, and the fee from the service
    (D22)."""
    destination = operator_account(operator)
    postings = [Posting("amount", HOLD, destination, amount)]
    if fee:
        postings.append(Posting("fee", FEES, destination, fee))
    return postings + _rounding(destination, Hundredths(amount + fee), currency, customer_pays=False)


def provider_fee(operator: str, fee: Hundredths) -> Posting:
    """What a provider charged for one payment or refund, kept from what it owes us; negative when it gave a fee back.

    The wallet does not move: the merchant pays our fee, not the provider's.
    """
    accounts = (PROVIDER_FEES, operator_account(operator))
    source, destination = accounts if fee > 0 else accounts[::-1]
    return Posting("fee", source, destination, Hundredths(abs(fee)))


def _rounding(operator: str, total: Hundredths, currency: Currency, *, customer_pays: bool) -> list[Posting]:
    """The provider moved `total` rounded to the currency's smallest unit; the difference is posted to rounding."""
    difference = money.round_to_currency(total, currency) - total
    if not difference:
        return []
    towards_rounding = (difference > 0) == customer_pays
    source, destination = (operator, ROUNDING) if towards_rounding else (ROUNDING, operator)
    return [Posting("rounding", source, destination, Hundredths(abs(difference)))]


def wallet_movement(postings: Sequence[Posting]) -> Hundredths:
    """The sum that these postings add to the wallet, in hundredths; negative if they take from it."""
    signed = (posting.amount * ((posting.destination == WALLET) - (posting.source == WALLET)) for posting in postings)
    return Hundredths(sum(signed))
