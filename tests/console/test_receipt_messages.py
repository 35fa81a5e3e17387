"""The receipt in a message to the customer: one text message, and a longer one with the address of their page."""

import html
import re
from urllib.parse import unquote

import pytest

from guichet.pages.sms import ONE_PART, gsm_text
from tests.console.conftest import ConsoleFixture
from tests.console.links_payer import hosted_path, pay


def address(text: str, scheme: str) -> str:
    [found] = re.findall(rf'href="({re.escape(scheme)}[^"]*)"', text)
    return unquote(html.unescape(found).partition("=")[2])


@pytest.mark.parametrize(
    "name", ["Ko", "Établissements Kora & Fils, « Pagnes et œuvres » de Porto-Novo — 1ʳᵉ boutique"]
)
async def test_the_text_message_has_one_part(sqlite_console: ConsoleFixture, name: str) -> None:
    console = sqlite_console
    merchant = await console.merchant(name)
    cashier = await console.joined("awa@example.com", merchant, "cashier")
    await cashier.get(f"/console/{merchant.id}/test/cash-desk")
    page = await cashier.submit("amount", amount="900 000")
    hosted, sale = hosted_path(page), page.path
    paid = await pay(console.browser(), hosted, "0197000000")
    sale_page = await cashier.get(sale)
    [receipt] = re.findall(r'href="([^"]+/receipt)"', sale_page.text)
    text = (await cashier.get(receipt)).text
    sms, whatsapp = address(text, "sms:"), address(text, "https://wa.me/")
    assert len(sms) <= ONE_PART
    assert gsm_text(sms) == sms, "one other character would leave 70"
    for part in ("915 750 F CFA", "15 750 F CFA", "MTN MoMo", gsm_text(name[:20])):
        assert part in sms
    [reference] = set(re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", sms))
    assert reference in text
    assert whatsapp.endswith(paid.path), "the customer's own page"
    assert "0197000000" not in sms + whatsapp


def test_letters_that_text_messages_do_not_have() -> None:
    assert (
        gsm_text("Reçu : 5\u202f088\u00a0F\u00a0CFA, l’œuvre «Bê» €12 ✓")
        == 'Recu : 5 088 F CFA, l\'oeuvre "Be" EUR12 ?'
    )
    assert gsm_text("Déjà payé à Ñandù") == "Déjà payé à Ñandù"
