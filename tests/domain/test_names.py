"""Names stand in mails to strangers: none holds what a mail program makes a link of."""

import pytest

from guichet.domain.accounts import normal_name
from guichet.domain.merchants import merchant_name


@pytest.mark.parametrize(
    "name",
    [
        "https://evil.example/x", "http:evil", "HTTPS://EVIL", "//evil", "www.evil", "evil.example", "Evil.COM",
        "Awa evil.co.uk Kossou", "awa@evil", "mailto:awa", "203.0.113.7", "evil．example",
        "evil。example", "evil․example",
        "awa＠evil", "evil.рф", "evil.xn--p1ai", "javascript:alert", "https：／／evil", "M.Dossou",
    ],
)  # fmt: skip
def test_a_name_with_an_address_is_refused(name: str) -> None:
    assert normal_name(name) is None
    assert merchant_name(name) is None


@pytest.mark.parametrize(
    "name",
    ["Awa Kossou", "M. Dossou", "Boutique Kora S.A.R.L.", "J.P. N'Guessan", "Kora 2.0", "Chez Awa: pagnes",
     "Ets Kora & Fils",
     "Дом", "Hôtel: Ganvié", "Kora...", "12.50 F"],
)  # fmt: skip
def test_names_of_people_and_merchants_are_accepted(name: str) -> None:
    assert normal_name(name) == name
    assert merchant_name(name) == name
