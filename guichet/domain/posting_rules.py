"""The double-entry rules: which accounts move at each event, and by how much (D22 to D27).

A posting moves a positive amount from one account to another, so the ledger always balances. Each merchant has these
accounts in each environment and currency:

    float:<account>:<wallet>:<currency>
                        our money in a wallet with a provider: the source when it grows, the destination when it shrinks
    wallet              what we owe the merchant
    fees                what the service earned
    rounding            the hundredths that cannot be moved in currencies without decimals (D27)
    suspense            credits that wait for a frozen wallet (D24)
    hold                the wallet's part of a refund that is being disbursed
    provider_fees       what providers charged the service; always kept from a wallet with the provider
    manual_settlement   what two people decided against a provider's answer
    suspense:late       money that a provider moved after the failure was told, until a person decides
    suspense:disputes   what a bank took back and may return, or what a person must still charge to somebody
    receivable          what the merchant owes us for a refund that was paid after its failure was told

The house merchant, which stands for the service itself, has two more (`domain/treasury.py`):

    bank:<name>:<currency>
                        our money with a bank, with the signs of a float
    own_funds           the company's own money that people recorded: opening balances and top-ups less withdrawals

and one for each pair of currencies between which a provider account converts (`treasury/conversions.py`):

    converted:<account>:<wallet>:<paid>:<held>
                        what went from the wallet's float in the currency that was paid into that in the one held
"""

from collections.abc import Sequence
from typing import Final, Literal, get_args

from msgspec import structs

from guichet.clock import Instant
from guichet.domain import events, money
from guichet.domain.events import PAYMENT_SUCCEEDED, REFUND_FAILED, REFUND_SUCCEEDED
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import Environment
from guichet.domain.money import Currency, Hundredths
from guichet.domain.records import Record

WALLET: Final = "wallet"
FEES: Final = "fees"
ROUNDING: Final = "rounding"
SUSPENSE: Final = "suspense"
HOLD: Final = "hold"
MANUAL_SETTLEMENT: Final = "manual_settlement"
LATE_SUSPENSE: Final = "suspense:late"
DISPUTED: Final = "suspense:disputes"
RECEIVABLE: Final = "receivable"
PROVIDER_FEES: Final = "provider_fees"
#: How the names of our wallets with providers begin.
FLOAT: Final = "float:"
#: How the names of our accounts with banks begin.
BANK: Final = "bank:"
OWN_FUNDS: Final = "own_funds"
#: How the names of accounts between two currencies begin.
CONVERTED: Final = "converted:"

WalletStatus = Literal["Actif", "Gelé", "Fermé"]
ACTIVE: Final = "Actif"
FROZEN: Final = "Gelé"
CLOSED: Final = "Fermé"
WALLET_STATUSES: Final[tuple[WalletStatus, ...]] = get_args(WalletStatus)

#: What makes postings: a payment's collection and its release from suspense, a refund's hold and the end of that hold;
#: then what a provider did after a failure (or a refund's success) had been told, and what a person decided about it;
#: and, for either, a provider's statement that names its fee.
COLLECTED: Final = PAYMENT_SUCCEEDED
UNSUSPENDED: Final = "suspense.released"
HELD: Final = "refund.requested"
DISBURSED: Final = REFUND_SUCCEEDED
RELEASED: Final = REFUND_FAILED
PAID_LATE: Final = "payment.paid_late"
LATE_CREDITED: Final = "payment.late_credited"
LATE_TAKEN_BACK: Final = "payment.late_taken_back"
LATE_RETURNED: Final = "payment.late_returned"
LATE_RETURNED_AGAIN: Final = "payment.late_returned_again"
REFUND_PAID_LATE: Final = "refund.paid_late"
RECEIVABLE_PAID: Final = "refund.receivable_paid"
REFUND_FAILED_LATE: Final = "refund.failed_late"
REFUND_LATE_CREDITED: Final = "refund.late_credited"
REFUND_MADE_GOOD: Final = "refund.made_good"
REFUND_RETURNED: Final = "refund.late_returned"
REFUND_RETURNED_AGAIN: Final = "refund.late_returned_again"
PAYMENT_CHARGED: Final = "payment.provider_fee"
REFUND_CHARGED: Final = "refund.provider_fee"
PAYMENT_CAUSES: Final = (
    COLLECTED,
    UNSUSPENDED,
    PAID_LATE,
    LATE_CREDITED,
    LATE_TAKEN_BACK,
    LATE_RETURNED,
    LATE_RETURNED_AGAIN,
    PAYMENT_CHARGED,
)
REFUND_CAUSES: Final = (
    HELD,
    DISBURSED,
    RELEASED,
    REFUND_PAID_LATE,
    RECEIVABLE_PAID,
    REFUND_FAILED_LATE,
    REFUND_LATE_CREDITED,
    REFUND_MADE_GOOD,
    REFUND_RETURNED,
    REFUND_RETURNED_AGAIN,
    REFUND_CHARGED,
)
#: By subject: into `suspense:late` from the wallet and our fees, and the way back; to the payer, and that once more.
TAKEN_BACK_CAUSES: Final = {"payment": LATE_TAKEN_BACK, "refund": REFUND_MADE_GOOD}
CREDITED_CAUSES: Final = {"payment": LATE_CREDITED, "refund": REFUND_LATE_CREDITED}
RETURNED_CAUSES: Final = {"payment": LATE_RETURNED, "refund": REFUND_RETURNED}
RETURNED_AGAIN_CAUSES: Final = {"payment": LATE_RETURNED_AGAIN, "refund": REFUND_RETURNED_AGAIN}
DISPUTE_OPENED: Final = events.DISPUTE_OPENED
DISPUTE_WON: Final = events.DISPUTE_WON
DISPUTE_CHARGED: Final = "dispute.charged"
DISPUTE_CAUSES: Final = (DISPUTE_OPENED, DISPUTE_WON, DISPUTE_CHARGED)
TREASURY_MOVED: Final = "treasury.moved"


class Posting(Record, frozen=True):
    """`leg` distinguishes the postings of one cause; the database allows each (cause, subject, leg) once."""

    leg: str
    source: str
    destination: str
    amount: Hundredths


class Movement(Record, frozen=True):
    """The postings of one cause of one subject (a payment or a refund), at one instant."""

    merchant_id: MerchantId
    env: Environment
    currency: Currency
    cause: str
    subject_id: int
    entries: Sequence[Posting]
    created_at: Instant


class Wallet(Record, frozen=True):
    """A wallet and the sum of its postings; `balance` in hundredths."""

    merchant_id: MerchantId
    env: Environment
    currency: Currency
    status: WalletStatus
    balance: Hundredths
    updated_at: Instant
    #: `Actif` again, and its suspended credits are not all in the balance yet.
    release_pending: bool = False


def float_account(provider_account: str, wallet: str, currency: str) -> str:
    """`wallet` in the provider's own word, "" where the account has only one (`Provider.collection_wallet`)."""
    return f"{FLOAT}{provider_account}:{wallet}:{currency}"


def wallet_of_float(account: str) -> tuple[str, str]:
    """The provider account, and its own word for the wallet, of a float account."""
    provider_account, _, rest = account.removeprefix(FLOAT).partition(":")
    return provider_account, rest.rpartition(":")[0]


def is_float_of(account: str, provider_account: str, currency: str) -> bool:
    """Whether it is a wallet of this provider account in this currency."""
    return account.startswith(f"{FLOAT}{provider_account}:") and account.endswith(f":{currency}")


def collection(
    account: str, amount: Hundredths, fee: Hundredths, currency: Currency, *, to_suspense: bool = False
) -> list[Posting]:
    """The postings of a debit: from `account` (a float, MANUAL_SETTLEMENT or LATE_SUSPENSE), `amount` goes to the
    merchant (or to suspense), `fee` to the service, the rest to rounding."""
    postings = [Posting("amount", account, SUSPENSE if to_suspense else WALLET, amount)]
    if fee:
        postings.append(Posting("fee", account, FEES, fee))
    return postings + _rounding(account, Hundredths(amount + fee), currency, customer_pays=True)


def suspense_release(amount: Hundredths) -> list[Posting]:
    return [Posting("amount", SUSPENSE, WALLET, amount)]


def refund_hold(amount: Hundredths) -> list[Posting]:
    """Moves the wallet's part of a refund to the hold account when the refund is requested."""
    return [Posting("amount", WALLET, HOLD, amount)]


def refund_release(amount: Hundredths) -> list[Posting]:
    return [Posting("amount", HOLD, WALLET, amount)]


def refund_disbursed(
    account: str, amount: Hundredths, fee: Hundredths, currency: Currency, *, held_in: str = HOLD
) -> list[Posting]:
    """The postings of a refund that `account` disbursed: the customer got the held `amount` back, and the fee from the
    service (D22). `held_in`: RECEIVABLE when the hold had been released before."""
    postings = [Posting("amount", held_in, account, amount)]
    if fee:
        postings.append(Posting("fee", FEES, account, fee))
    return postings + _rounding(account, Hundredths(amount + fee), currency, customer_pays=False)


def into_late_suspense(account: str, total: Hundredths) -> list[Posting]:
    """A provider moved `total` towards us after the opposite had been told."""
    return [Posting("total", account, LATE_SUSPENSE, total)]


def numbered(postings: Sequence[Posting], time: int) -> list[Posting]:
    """The postings of a cause that happens again for one subject: the database allows each leg once. `time`: how often
    it happened before."""
    return [structs.replace(posting, leg=f"{posting.leg}/{time}") if time else posting for posting in postings]


def late_taken_back(amount: Hundredths, fee: Hundredths, currency: Currency, *, time: int) -> list[Posting]:
    """Late money that had been credited, or a refund that is made good, waits to go to the payer: the wallet gives
    `amount`, the service the fee. `time`: how often it happened before."""
    credited = collection(LATE_SUSPENSE, amount, fee, currency)
    back = [structs.replace(posting, source=posting.destination, destination=posting.source) for posting in credited]
    return numbered(back, time)


def late_returned(account: str, total: Hundredths) -> list[Posting]:
    """Late money went back to the payer."""
    return [Posting("total", LATE_SUSPENSE, account, total)]


def returned_again(account: str, total: Hundredths, request_id: int) -> Posting:
    """Late money went back once more, by another request, after people had decided without the provider's answer about
    this one."""
    return Posting(f"total/{request_id}", MANUAL_SETTLEMENT, account, total)


def receivable_paid(account: str, amount: Hundredths) -> list[Posting]:
    """The merchant paid what it owed us: from its WALLET, or in another way (MANUAL_SETTLEMENT)."""
    return [Posting("amount", account, RECEIVABLE, amount)]


def dispute_opened(account: str, amount: Hundredths) -> list[Posting]:
    """The provider took the disputed amount back."""
    return [Posting("amount", DISPUTED, account, amount)]


def dispute_won(account: str, amount: Hundredths) -> list[Posting]:
    """The provider returned it."""
    return [Posting("amount", account, DISPUTED, amount)]


def dispute_charged(merchant_part: Hundredths, service_part: Hundredths) -> list[Posting]:
    """A lost dispute is borne by the merchant's wallet and by the service's fees."""
    parts = [Posting("amount", WALLET, DISPUTED, merchant_part), Posting("fee", FEES, DISPUTED, service_part)]
    return [part for part in parts if part.amount]


def provider_fee(account: str, fee: Hundredths) -> Posting:
    """What a provider charged for one payment or refund, kept from the float `account`; negative when it gave a fee
    back.

    The wallet does not move: the merchant pays our fee, not the provider's.
    """
    accounts = (PROVIDER_FEES, account)
    source, destination = accounts if fee > 0 else accounts[::-1]
    return Posting("fee", source, destination, Hundredths(abs(fee)))


def _rounding(account: str, total: Hundredths, currency: Currency, *, customer_pays: bool) -> list[Posting]:
    """The provider moved `total` rounded to the currency's smallest unit; the difference is posted to rounding."""
    difference = money.round_to_currency(total, currency) - total
    if not difference:
        return []
    towards_rounding = (difference > 0) == customer_pays
    source, destination = (account, ROUNDING) if towards_rounding else (ROUNDING, account)
    return [Posting("rounding", source, destination, Hundredths(abs(difference)))]


def wallet_movement(postings: Sequence[Posting]) -> Hundredths:
    """The sum that these postings add to the wallet, in hundredths; negative if they take from it."""
    signed = (posting.amount * ((posting.destination == WALLET) - (posting.source == WALLET)) for posting in postings)
    return Hundredths(sum(signed))
