"""Customers who pay a merchant's payment links on the hosted pages, by the forms that a browser would send."""

import random
import re
from collections import deque
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from reliability.api_client import ApiClient
from reliability.journal import Journal, LinkPayment
from reliability.merchant import Merchant
from reliability.orders import scenario_digits

_TOKEN: Final = re.compile(rb'name="token" value="([^"]+)"')
#: Operators of the forms and the dial codes of their numbers.
_OPERATORS: Final = (("mtn", "229"), ("moov", "229"), ("mtn_ci", "225"), ("togocom_tg", "228"), ("moov_bf", "226"))
#: A customer who is told to wait (429) goes away.
_AWAY: Final = (500, 502, 503, 504)
_MAX_USES: Final = 40
_AMOUNT: Final = 1500
#: Links that people made in the console, of which customers pay the latest: how many, and how often (in hundredths).
_OFFERED: Final = 20
_OFFERED_SHARE: Final = 30


@dataclass(frozen=True, slots=True)
class _Link:
    merchant: int
    id: int
    path: str


@dataclass
class LinkCustomers:
    api: ApiClient
    merchants: list[Merchant]
    journal: Journal
    seed: int
    _links: list[_Link] = field(default_factory=list)
    _offered: deque[_Link] = field(default_factory=lambda: deque(maxlen=_OFFERED))

    def offer(self, merchant: Merchant, link_id: int, path: str) -> None:
        """One more link, which somebody made in the console and may close again."""
        self._offered.append(_Link(merchant.number, link_id, path))

    async def create_links(self) -> None:
        """Two links for each merchant: one for ever, one for a number of uses."""
        for merchant in self.merchants:
            for kind in ({"type": "permanent"}, {"type": "limité", "max_uses": _MAX_USES}):
                body = {"amount": _AMOUNT, "description": "Panier", "external_id": str(kind["type"]), **kind}
                answer, repeated = [
                    await self.api.call("POST", "/v1/payment-links", merchant.key, json=body) for _ in range(2)
                ]
                assert answer is not None, "nobody answers"
                assert answer.status == 201, answer
                assert repeated is not None
                assert repeated.data["id"] == answer.data["id"], "a repeated request made another link"
                self._links.append(_Link(merchant.number, answer.data["id"], urlsplit(answer.data["url"]).path))

    async def pay(self, number: int) -> None:
        """One customer opens a link and sends its form until somebody answers, always with the same token."""
        drawn = random.Random(f"{self.seed}/link/{number}")
        offered = self._offered and drawn.randrange(100) < _OFFERED_SHARE
        link = drawn.choice(self._offered if offered else self._links)
        page = await self.api.call("GET", link.path)
        token = _TOKEN.search(page.body) if page is not None else None
        if token is None:
            self.journal.counts["links closed"] += 1
            return
        operator, dial = drawn.choice(_OPERATORS)
        phone = f"{dial}77{drawn.randrange(1000):03}{scenario_digits(drawn)}"
        form = {"token": token[1].decode(), "operator": operator, "phone_number": phone}
        answer = await self.api.call("POST", link.path, form=form, again=_AWAY)
        if answer is None or answer.status != 303:
            self.journal.counts["link forms refused"] += 1
            return
        self.journal.link_payments.append(LinkPayment(link.merchant, link.id, form["token"].partition(".")[0]))
        await self.api.call("GET", urlsplit(answer.headers["Location"]).path)
