"""Why a payment or a refund may still be open at the end, by the providers' own books; None: it may not."""

from typing import Final

from guichet.domain.payments import Payment, Refund
from reliability.our_books import OurBooks
from reliability.provider_books import ProviderBooks, ProviderTransaction

_PAYDUNYA: Final = "paydunya"
#: Providers that give no proof that a request never arrived, and what they can find again by our reference
#: (docs/providers/README.md, "Lost answers").
_NEVER_PROVEN: Final = frozenset({"feexpay", "sonatel", "stripe", "orange", "coris", _PAYDUNYA})
_NOT_FOUND_AGAIN: Final = frozenset({"orange", "coris", _PAYDUNYA})
#: Scenarios in which a provider states another amount or currency than it moved: nothing may be credited.
_MISSTATED: Final = frozenset({"wrong_amount", "wrong_currency", "hidden_amount"})


def why_payment_waits(
    ours: OurBooks, truth: ProviderBooks, payment: Payment, known: list[ProviderTransaction]
) -> str | None:
    provider = ours.provider(payment)
    here = [each for each in known if each.provider == provider]
    moved = [each for each in here if each.moved]
    if moved and moved[0].scenario in _MISSTATED and "mismatch" in ours.open_incidents.get(payment.reference, ()):
        return f"payment: {moved[0].scenario}, an incident is open, nothing was credited"
    if here and here[-1].state == "pending" and here[-1].scenario in ("never_final", "waits"):
        return f"payment: {here[-1].scenario}, the provider itself has not ended it, no debit"
    if payment.provider_reference is None and provider in _NEVER_PROVEN:
        return _why_unanswered(provider, truth, here, taken="debited" if moved else "no debit")
    if provider == _PAYDUNYA and not here:
        return "payment: its invoice was never charged and stays open for a day, no debit"
    return None


def _why_unanswered(provider: str, truth: ProviderBooks, here: list[ProviderTransaction], *, taken: str) -> str | None:
    if not here:
        return f"payment: lost on its way to {provider}, which gives no proof: staff decide, no debit"
    if provider in _NOT_FOUND_AGAIN:
        return f"payment: the answer of {provider} was lost, which cannot be asked: staff decide, {taken}"
    if all(map(truth.may_be_unlisted, here)):
        return f"payment: the answer of {provider} was lost, whose history is cut off: staff decide, {taken}"
    return None


def why_refund_waits(
    ours: OurBooks, truth: ProviderBooks, refund: Refund, known: list[ProviderTransaction]
) -> str | None:
    kinds = ours.open_incidents.get(refund.reference, set())
    moved = any(each.moved for each in known)
    for kind in ("payee_unconfirmed", "float_empty"):
        if kind in kinds and not moved:
            return f"refund: {kind}, an incident is open, nothing was paid"
    if refund.ambiguous_code is not None and not moved:
        return "refund: refused by a code that may mean our balance, tried once more after ten minutes"
    provider = ours.provider(refund)
    if refund.provider_account is None and not known:
        return "refund: no account can pay it back"
    unanswered = refund.provider_reference is None and provider in _NEVER_PROVEN
    if not known and (unanswered or provider == _PAYDUNYA):
        end = "it is sent again after ten minutes" if provider == _PAYDUNYA else "which gives no proof: staff decide"
        return f"refund: lost on its way to {provider}, {end}, nothing was paid"
    if unanswered and all(map(truth.may_be_unlisted, known)):
        paid = "paid" if moved else "nothing was paid"
        return f"refund: the answer of {provider} was lost, whose history is cut off: staff decide, {paid}"
    return None
