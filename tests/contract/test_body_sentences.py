"""What a merchant reads about a length is French, whichever layer of a field counted it."""

import pytest

from tests.service_fixture import ServiceFixture

SENTENCES = {
    "description": ("d" * 256, "255 caractères au maximum."),
    "operator": ("o" * 33, "32 caractères au maximum."),
    "callback_url": ("https://shop.example/" + "a" * 255, "255 caractères au maximum."),
    "external_id": ("", "Ce champ ne peut pas être vide."),
}


@pytest.mark.parametrize("field", SENTENCES)
async def test_an_error_about_a_length_is_in_french(shared_service: ServiceFixture, field: str) -> None:
    value, sentence = SENTENCES[field]
    merchant = await shared_service.merchant()
    body = {"amount": 5000, "operator": "mtn", "phone_number": "22997001234", field: value}
    answer = await merchant.post("/payments", body)
    assert answer.status == 422
    assert answer.error["details"] == {field: [sentence]}
