"""The ways in which one telephone's number is written as digits with the country code."""

from typing import Final

#: Numbers of Bénin have ten national digits since 2024, of which the first two are new; some people and providers still
#: use the last eight (docs/providers/README.md, rule 9).
_BENIN: Final = "229"
_BENIN_NEW_DIGITS: Final = "01"
_OLD_LENGTH: Final = 8


def written_forms(phone_number: str) -> tuple[str, str]:
    """The number as it is dialled today, and in its other form; the same number twice if it has no other.

    `phone_number`: digits, country code first.
    """
    today = _BENIN + _BENIN_NEW_DIGITS
    if phone_number.startswith(_BENIN) and len(phone_number) == len(_BENIN) + _OLD_LENGTH:
        return today + phone_number[len(_BENIN) :], phone_number
    if phone_number.startswith(today) and len(phone_number) == len(today) + _OLD_LENGTH:
        return phone_number, _BENIN + phone_number[len(today) :]
    return phone_number, phone_number
