"""Where the money of payments and refunds is, and whose."""

from guichet.treasury.position import positions
from tests.fakes.scripted_provider import done
from tests.payments.conftest import LivePayments
from tests.payments.test_refunds import paid, refund_of


async def test_a_payment_is_in_a_wallet_owed_to_its_merchant_and_its_fee_is_ours(live: LivePayments) -> None:
    payment = await paid(live)
    [position] = await positions(live.ctx.db)
    assert position.wallets == {("first", ""): 5088_00}
    assert (position.owed, position.held, position.ours, position.total) == (5000_00, 0, 88_00, 5088_00)
    await refund_of(live, payment)
    [position] = await positions(live.ctx.db)
    assert (position.owed, position.held, position.ours) == (0, 5000_00, 88_00)
    live.first.script("refund", done)
    await live.service.run_worker(5)
    [position] = await positions(live.ctx.db)
    assert (position.wallets, position.owed, position.held, position.ours) == ({("first", ""): 0}, 0, 0, 0)
