"""The forms of one number."""

import pytest

from guichet.domain.phone_numbers import written_forms


@pytest.mark.parametrize(
    ("phone_number", "forms"),
    [
        ("2290197000045", ("2290197000045", "22997000045")),
        ("22997000045", ("2290197000045", "22997000045")),
        ("229970000", ("229970000", "229970000")),
        ("2290297000045", ("2290297000045", "2290297000045")),
        ("2250101020304", ("2250101020304", "2250101020304")),
    ],
)
def test_a_number_of_benin_has_two_forms(phone_number: str, forms: tuple[str, str]) -> None:
    assert written_forms(phone_number) == forms
