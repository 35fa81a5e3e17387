"""The pages that customers see: a link's, a payment's in each state, a card's in test, one that does not exist."""

from urllib.parse import urlsplit

from tests.frozen.webhooks import CARD
from tests.frozen_pages.normalised import Placeholders, read
from tests.frozen_pages.world import World


async def hosted(world: World, language: str) -> str:
    lines: list[str] = []
    headers = {"Accept-Language": language}

    async def get(title: str, path: str) -> str:
        answer = await world.running.call("GET", path, None, headers)
        text = answer.body.decode()
        lines.extend(["", f"=== {title} {answer.status} {answer.headers.get('Location', '')}", *read(text)[0]])
        return text

    async def post(title: str, path: str, form: str) -> str:
        sent = {**headers, "Content-Type": "application/x-www-form-urlencoded"}
        answer = await world.running.call("POST", path, form.encode(), sent)
        place = answer.headers.get("Location", "")
        lines.extend(["", f"=== {title} {answer.status} {place}", *read(answer.body.decode())[0]])
        return urlsplit(place).path

    test, live = world.merchant, world.merchant.live
    link = {"amount": 5000, "description": "Cotisation", "return_url": "https://boutique.example/merci"}
    path = urlsplit((await live.post("/payment-links", link)).data["url"]).path
    await get("a link", path)
    await post("a link, an empty form", path, "operator=mtn&phone_number=")
    await post("a link, a wrong number", path, "operator=mtn&phone_number=12")
    for ending in ("9001", "9003", "9006", "9009"):
        paid = await post(f"paid {ending}", path, f"operator=mtn&phone_number=019700{ending}")
        for title in ("just after", "ten seconds later", "an hour later") if paid else ():
            await get(title, paid)
            await world.turn(10 if title == "just after" else 3600)
    for outcome in ("succeeded", "failed"):
        card = await test.post("/payments", {**CARD, "return_url": "https://boutique.example/merci"})
        path = urlsplit(card.data["payment_url"]).path
        await get("a card", path)
        await post(f"a card, {outcome}", path, f"outcome={outcome}")
        await world.turn(5)
        await get("a card afterwards", path)
    for path in ("/pay/x/y", "/checkout/x", "/nothing", "/"):
        await get(path, path)
    return Placeholders()("\n".join(lines).strip()) + "\n"
