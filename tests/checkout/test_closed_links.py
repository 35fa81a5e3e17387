"""Payment links that cannot be paid: closed, expired, of a suspended merchant, or unknown."""

from typing import Any

import pytest

from guichet.back_office.merchants import set_status
from guichet.clock import MINUTE, earlier, iso, later
from guichet.domain.audit_log import Actor
from guichet.domain.posting_rules import WalletStatus
from guichet.ledger import wallets
from tests.checkout.checkout_fixture import CheckoutFixture


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"starts_at": "2099-01-01T00:00:00Z"}, 403, "pas encore ouvert"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, 410, "a expiré"),
    ],
)
async def test_a_link_outside_its_dates_is_closed(
    checkout: CheckoutFixture, fields: dict[str, Any], status: int, words: str
) -> None:
    open_path = await checkout.link()
    form = (await checkout.get(open_path)).form("mtn") | {"phone_number": "0197000045"}
    path = await checkout.link(**fields)
    for answer in (await checkout.get(path), await checkout.post(path, form)):
        assert answer.status == status
        assert words in answer.text
    assert not checkout.operator.charges


async def test_a_link_within_its_dates_is_open(checkout: CheckoutFixture) -> None:
    now = checkout.ctx.clock.now()
    path = await checkout.link(starts_at=iso(earlier(now, MINUTE)), expires_at=iso(later(now, 5 * MINUTE)))
    assert (await checkout.get(path)).status == 200


async def test_links_of_a_suspended_merchant_or_a_frozen_wallet_are_closed(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    form = (await checkout.get(path)).form("mtn") | {"phone_number": "0197000045"}
    await _set_wallet(checkout, "Gelé")
    for answer in (await checkout.get(path), await checkout.post(path, form)):
        assert answer.status == 409
        assert "en pause" in answer.text
    await _set_wallet(checkout, "Actif")
    await set_status(checkout.ctx.db, checkout.ctx.clock, checkout.merchant_id, "suspended", Actor("Awa", "awa"))
    for answer in (await checkout.get(path), await checkout.post(path, form)):
        assert answer.status == 403
        assert "ne peut pas encaisser" in answer.text
    assert not checkout.operator.charges
    await set_status(checkout.ctx.db, checkout.ctx.clock, checkout.merchant_id, "active", Actor("Awa", "awa"))
    assert (await checkout.post(path, form)).status == 303


async def test_unknown_paths_are_404_and_wrong_methods_405(checkout: CheckoutFixture) -> None:
    path = await checkout.link()
    waiting = await checkout.waiting(path)
    other = await checkout.link()
    token = waiting.rpartition("/")[2]
    swapped, fragments = path.swapcase(), "".join(path.split("/")[2:])
    for unknown in (
        "/pay/" + "A" * 22 + "/" + "B" * 22,
        "/pay",
        "/pay/",
        "/pay/x",
        path + "/x",
        path[:-1],
        path + "/qr/x",
        path.replace("/pay/", "/pay//"),
        f"{other}/{token}",
        f"{other}/{token}/status",
        "/pay/%00/%ff",
        f"/checkout/{token}",
        "/checkout/x",
        "/pay/assets/pages.css",
        "/pay/" + "/".join(reversed(path.split("/")[2:])),
        "/pay" + swapped[4:],
        f"/pay/{fragments[:21]}/{fragments[21:]}",
    ):
        answer = await checkout.get(unknown)
        assert answer.status == 404, unknown
        assert "existe pas" in answer.text
    for method, known in (("PUT", path), ("DELETE", path), ("POST", waiting), ("POST", path + "/qr")):
        answer = await checkout.send(method, known)
        assert answer.status == 405
        assert "GET" in answer.headers["Allow"]
        assert answer.headers["Content-Type"].startswith("text/html")


async def _set_wallet(checkout: CheckoutFixture, status: WalletStatus) -> None:
    async with checkout.ctx.db.transaction() as tx:
        await wallets.set_wallet_status(tx, checkout.merchant_id, "live", "XOF", status, checkout.ctx.clock.now())
