"""Fields that no body has, but that are refused: who sends one expects that another amount is moved.

Any other unknown field is ignored (docs/contract.md, "Requests"). A figure that says what happens anyway is accepted:
the total of a refund, the fee of a payment. Everything else is a fault of that field
(docs/decisions.md, "Stated figures").
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from guichet.domain.money import Currency, Hundredths, plain, to_hundredths


class Misread(NamedTuple):
    """Why a field is refused, and the values that ask for nothing else than what happens."""

    sentence: str
    harmless: tuple[object, ...] = (None, False)


_ENVIRONMENT: Final = Misread("C'est la clé qui choisit l'environnement : retirez ce champ.", (None,))
_MAIN_UNIT: Final = Misread("Les montants sont dans l'unité principale : envoyez amount seulement.", (None,))
_FEES_ON_TOP: Final = Misread("Les frais s'ajoutent toujours à amount et sont payés par le client : retirez ce champ.")
_REFUND_IS_TOTAL: Final = Misread("Le remboursement est toujours total : retirez ce champ.")

PAYMENT: Final = {
    "amount_minor": _MAIN_UNIT,
    "fees_included": _FEES_ON_TOP,
    "capture": Misread("Le client est toujours débité dès qu'il valide : retirez ce champ.", (None, True)),
    "livemode": _ENVIRONMENT,
    "test": _ENVIRONMENT,
}
LINK: Final = {
    "amount_minor": _MAIN_UNIT,
    "fees_included": _FEES_ON_TOP,
    "fee_amount": Misread(
        "Les frais dépendent du moyen de paiement que choisira le client : retirez ce champ.", (None,)
    ),
    "total_amount": Misread("Le total dépend du moyen de paiement que choisira le client : envoyez amount.", (None,)),
}
SESSION: Final = LINK | {"livemode": _ENVIRONMENT, "test": _ENVIRONMENT}
REFUND: Final = {
    "amount_minor": _REFUND_IS_TOTAL._replace(harmless=(None,)),
    "partial": _REFUND_IS_TOTAL,
    "percent": _REFUND_IS_TOTAL._replace(harmless=(None,)),
    "phone_number": Misread("L'argent est rendu à qui a payé : retirez ce champ.", (None,)),
}
#: What a body of a refund may call the amount that goes back.
REFUND_FIGURES: Final = ("amount", "total_amount")
#: What a body of a payment may state beside `amount`.
PAYMENT_FIGURES: Final = frozenset(("fee_amount", "total_amount"))


def misread_faults(known: Mapping[str, Misread], values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Field → sentence for every misread field of a body."""
    return {name: [known[name].sentence] for name in known.keys() & values.keys() if _asks(known[name], values[name])}


def _asks(known: Misread, value: object) -> bool:
    return not any(value is harmless for harmless in known.harmless)


def differs(values: Mapping[str, Any], name: str, *amounts: Hundredths) -> bool:
    """Whether the body states an amount under this name that is none of `amounts`."""
    value = values.get(name)
    if value is None:
        return False
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    return not is_number or to_hundredths(value) not in amounts


def payment_faults(
    values: Mapping[str, Any], fee: Hundredths, total: Hundredths, currency: Currency
) -> dict[str, list[str]]:
    """Field → sentence where a body of POST /payments states another fee or total than will be debited."""
    faults = {}
    if differs(values, "fee_amount", fee):
        faults["fee_amount"] = [
            f"Les frais de ce paiement sont de {plain(fee)} {currency}, payés par le client : retirez ce champ."
        ]
    if differs(values, "total_amount", total):
        faults["total_amount"] = [
            f"Le client sera débité de {plain(total)} {currency} : envoyez dans amount ce que vous encaissez."
        ]
    return faults
