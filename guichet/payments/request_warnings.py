"""What the answer to POST /payments warns of (docs/contract.md, "Warnings"). Nothing here refuses a payment.

An ordinary payment has no warning, and finding that out takes a few microseconds: what is known of a country's numbers
is compiled once.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from guichet.context import AppContext
from guichet.domain.catalogue import PaymentMode
from guichet.domain.merchants import Environment
from guichet.domain.money import plain
from guichet.domain.payments import Payment
from guichet.domain.phone_numbers import written_forms
from guichet.domain.warnings import RequestWarning, warning
from guichet.payments.create import CreatedPayment, PaymentRequest

#: White space that nobody sees or types again: at an end, repeated, other than the usual one, or without a width.
_ODD_SPACES: Final = re.compile(r"\A\s|\s\Z|\s\s|[^\S ]|[\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff]")


def request_warnings(
    ctx: AppContext, env: Environment, wanted: PaymentRequest, result: CreatedPayment
) -> list[RequestWarning]:
    """In the order of `domain/warnings.py`."""
    mode, found = result.mode, []
    if not result.created and (differences := " ; ".join(_differences(wanted, mode, result.payment))):
        found.append(warning("replay_differs", differences=differences))
    if wanted.phone_number is not None and not _is_number_of(mode, wanted.phone_number):
        facts = {"country": mode.country, "dial_code": mode.dial_code, "operator": mode.operator}
        found.append(warning("phone_country_mismatch", phone_number=wanted.phone_number, **facts))
    if env == "test" and not ctx.registry.takes_live(mode.operator, wanted.currency):
        found.append(warning("currency_not_accepted_live", operator=mode.operator, currency=wanted.currency))
    if wanted.external_id is not None and _has_odd_spaces(wanted.external_id):
        found.append(warning("external_id_spaces"))
    return found


def _has_odd_spaces(text: str) -> bool:
    """The pattern is slow, and most texts are of letters and digits."""
    return not (text.isprintable() and " " not in text) and _ODD_SPACES.search(text) is not None


def _differences(wanted: PaymentRequest, mode: PaymentMode, payment: Payment) -> Iterator[str]:
    """Each field of the request that the existing payment has otherwise. One telephone's number may be written in two
    ways."""
    compared = {
        "amount": (plain(payment.amount), plain(wanted.amount)),
        "currency": (payment.currency, wanted.currency),
        "operator": (payment.operator, mode.operator),
        "phone_number": (_today(payment.phone_number), _today(wanted.phone_number)),
    }
    for name, (stored, sent) in compared.items():
        if stored != sent:
            yield f"{name} ({stored or 'aucun'} au lieu de {sent or 'aucun'})"


def _today(phone_number: str | None) -> str | None:
    return None if phone_number is None else written_forms(phone_number)[0]


def _is_number_of(mode: PaymentMode, phone_number: str) -> bool:
    """Whether the digits begin with the country code of the mode, and go on for as long as a number there may. True for
    a mode of no country."""
    pattern = None if mode.country_code is None else _numbers_of(mode.country_code)
    if pattern is None or pattern.fullmatch(phone_number):
        return True
    return pattern.fullmatch(written_forms(phone_number)[0]) is not None


@cache
def _numbers_of(country_code: str) -> re.Pattern[str] | None:
    """Lengths and not ranges of numbers: new ranges are opened before a library knows them. None for a country that has
    no numbers of its own."""
    from phonenumbers import PhoneMetadata  # noqa: PLC0415 - sixty modules that the start does not wait for

    metadata = PhoneMetadata.metadata_for_region(country_code, None)
    if metadata is None or metadata.general_desc is None:
        return None
    lengths = "|".join(f"[0-9]{{{length}}}" for length in metadata.general_desc.possible_length)
    return re.compile(f"{metadata.country_code}(?:{lengths})")
