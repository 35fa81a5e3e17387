"""The catalogue: payment modes, the fee rule and the debit bounds (docs/contract.md, "Resources", "Limits").

The modes come from a file (`guichet/data/catalogue.toml`, or the one that `GUICHET_CATALOGUE_FILE` names). Changes that
staff make with `guichet mode` are applied over it: first those for all merchants, then those for one merchant.
"""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Final, Literal, get_args

from msgspec import Raw, structs

from guichet.domain import money
from guichet.domain.errors import InvalidRequest
from guichet.domain.ids import MerchantId, PaymentModeId
from guichet.domain.money import Currency, Hundredths
from guichet.domain.records import Record

PaymentModeType = Literal["mobile_money", "card", "bank_transfer", "e_wallet", "other"]
MODE_TYPES: Final[tuple[PaymentModeType, ...]] = get_args(PaymentModeType)
#: The values of the filter `type` of `GET /payment-modes`; modes of the type `other` are listed, but have no filter.
FILTER_TYPES: Final = MODE_TYPES[:-1]
MOBILE_MONEY: Final = "mobile_money"
CARD: Final = "card"

#: Fee rates are ten-thousandths of a percent: 1.75 % is 17 500.
RATE_PLACES: Final = 4
_RATE_UNIT: Final = 100 * 10**RATE_PLACES

#: Bounds of a Mobile Money debit (amount + fee), in hundredths of the currency's unit.
MIN_DEBIT: Final = Hundredths(10_00)
MAX_DEBIT: Final = Hundredths(1_000_000_00)


class PaymentMode(Record, frozen=True):
    """A payment mode as one merchant sees it. `fee_fixed` is in hundredths, `fee_percent` in ten-thousandths of %."""

    id: PaymentModeId
    operator: str
    name: str
    type: PaymentModeType
    country: str | None
    country_code: str | None
    dial_code: str | None
    fee_percent: int
    fee_fixed: Hundredths
    requires_otp: bool
    requires_return_url: bool
    logo: str | None
    active: bool
    #: How the customer obtains the code, by language; None if no code is needed or it is not known how.
    otp_hint: Mapping[str, str] | None
    #: False until the operator has confirmed the hint (docs/providers/README.md, "Codes by SMS").
    otp_hint_verified: bool
    #: A provider sends the code by text message on request (`payments/otp_codes.py`).
    sends_code: bool = False

    @property
    def is_card(self) -> bool:
        return self.type == CARD


class ModeOverride(Record, frozen=True):
    """What staff changed with `guichet mode`. None keeps the catalogue's value; `merchant_id` None means all
    merchants."""

    merchant_id: MerchantId | None
    operator: str
    active: bool | None = None
    fee_percent: int | None = None
    fee_fixed: Hundredths | None = None


#: Fields that a mode requires, each with the sentence for the mode's name.
_PHONE_NUMBER: Final = ("phone_number", "Le numéro de téléphone est obligatoire pour un paiement Mobile Money.")
_CARD_FIELDS: Final = (
    ("customer.firstname", "Le prénom du client est obligatoire pour un paiement par carte."),
    ("customer.lastname", "Le nom du client est obligatoire pour un paiement par carte."),
    ("customer.email", "L'adresse e-mail du client est obligatoire pour un paiement par carte."),
)


class Quote(Record, frozen=True):
    mode: PaymentMode
    amount: Hundredths
    fee_amount: Hundredths

    @property
    def total_amount(self) -> Hundredths:
        return Hundredths(self.amount + self.fee_amount)


class Catalogue:
    """The modes of one merchant, active or not, by operator code and by id."""

    def __init__(self, modes: Iterable[PaymentMode]) -> None:
        self.modes = tuple(modes)
        self._by_operator = {mode.operator.casefold(): mode for mode in self.modes}
        self._by_id: dict[int, PaymentMode] = {mode.id: mode for mode in self.modes}

    def with_overrides(self, overrides: Iterable[ModeOverride]) -> "Catalogue":
        """The catalogue with the overrides applied: first those for all merchants, then those of the merchant.

        A mode that is closed for all merchants stays closed for each of them.
        """
        changed = dict(self._by_operator)
        for override in sorted(overrides, key=lambda o: o.merchant_id is not None):
            key = override.operator.casefold()
            if mode := changed.get(key):
                changed[key] = _overridden(mode, override)
        return Catalogue(changed[mode.operator.casefold()] for mode in self.modes)

    def by_operator(self, operator: str) -> PaymentMode | None:
        """The mode with this operator code, active or not. Codes are case-insensitive."""
        return self._by_operator.get(operator.casefold())

    def name_of(self, operator: str) -> str:
        """`MTN MoMo · Côte d’Ivoire`; the code of an operator that is no longer in the catalogue."""
        mode = self.by_operator(operator)
        if mode is None:
            return operator
        return f"{mode.name} · {mode.country}".replace("'", "’") if mode.country else mode.name

    def active(self) -> list[PaymentMode]:
        return [mode for mode in self.modes if mode.active]

    def choose(self, operator: str | None, payment_mode_id: int | None) -> PaymentMode:
        """The active mode that a request names.

        Raises InvalidRequest about the faulty field, or about both when they name different modes (D1).
        """
        by_operator = self._by_operator.get(operator.casefold()) if operator is not None else None
        by_id = self._by_id.get(payment_mode_id) if payment_mode_id is not None else None
        details: dict[str, list[str]] = {}
        if operator is not None and not (by_operator and by_operator.active):
            details["operator"] = ["Cet opérateur est inconnu ou n'est pas ouvert sur votre compte."]
        if payment_mode_id is not None and not (by_id and by_id.active):
            details["payment_mode_id"] = ["Ce moyen de paiement est inconnu ou n'est pas ouvert sur votre compte."]
        if not details and by_operator and by_id and by_operator.id != by_id.id:
            both = ["L'opérateur et le moyen de paiement désignent deux choses différentes : n'en envoyez qu'un."]
            details = {"operator": both, "payment_mode_id": both}
        mode = by_operator or by_id
        if details or mode is None:
            raise InvalidRequest("Moyen de paiement inconnu ou inactif.", details)
        return mode


def _overridden(mode: PaymentMode, override: ModeOverride) -> PaymentMode:
    active = mode.active if override.active is None else override.active
    if override.merchant_id is not None:
        active = active and mode.active
    return structs.replace(
        mode,
        active=active,
        fee_percent=mode.fee_percent if override.fee_percent is None else override.fee_percent,
        fee_fixed=mode.fee_fixed if override.fee_fixed is None else override.fee_fixed,
    )


def quote(mode: PaymentMode, amount: Hundredths) -> Quote:
    """fee = amount × fee_percent / 100 + fee_fixed, half up to the hundredth (D4)."""
    proportional = (amount * mode.fee_percent + _RATE_UNIT // 2) // _RATE_UNIT
    return Quote(mode, amount, Hundredths(proportional + mode.fee_fixed))


def check_debit(quoted: Quote, currency: Currency) -> None:
    """Raises InvalidRequest if a Mobile Money debit is out of bounds."""
    if details := debit_faults(quoted, currency):
        raise InvalidRequest(details["amount"][0], details)


def debit_faults(quoted: Quote, currency: Currency) -> dict[str, list[str]]:
    """Field → sentences for a Mobile Money debit outside 10 to 1 000 000 of the currency's unit; empty for any other.
    Other modes have no such bounds."""
    total = quoted.total_amount
    if quoted.mode.type != MOBILE_MONEY or MIN_DEBIT <= total <= MAX_DEBIT:
        return {}
    message = (
        f"Le total débité ({money.plain(total)} {currency}, frais compris) doit être compris entre "
        f"{money.plain(MIN_DEBIT)} et {money.plain(MAX_DEBIT)} {currency} pour un paiement Mobile Money."
    )
    return {"amount": [message]}


def mode_faults(
    mode: PaymentMode, value_of: Callable[[str], object], quoted: Quote | None, currency: Currency
) -> dict[str, list[str]]:
    """What this mode forbids in a request, field → sentences: a field that it requires and that has no value, a debit
    that is out of bounds.

    `value_of`: the value of a field by its name in the contract, valid or not. `quoted` is None while the amount or
    currency is faulty itself.
    """
    required = list(_CARD_FIELDS) if mode.is_card else [_PHONE_NUMBER] if mode.type == MOBILE_MONEY else []
    if mode.requires_otp:
        required.append(("otp", "{} demande un code de validation (otp)."))
    if mode.requires_return_url:
        required.append(("return_url", "{} demande une adresse de retour (return_url)."))
    faults = {field: [sentence.format(mode.name)] for field, sentence in required if not value_of(field)}
    return faults if quoted is None else faults | debit_faults(quoted, currency)


def percent(rate: int) -> Raw:
    """A fee rate (ten-thousandths of a percent) as JSON number text, in percent."""
    return Raw(f"{Decimal(rate).scaleb(-RATE_PLACES).normalize():f}".encode())
