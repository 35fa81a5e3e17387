"""The codes that a customer receives by SMS or dials for. The simulated phone shows the messages."""

import secrets
from typing import Final

from guichet.clock import MINUTE
from guichet_simulator.context import SimulatorContext

#: Always wrong, whatever was sent.
BAD_CODE: Final = "000000"
_VALID_FOR: Final = 5 * MINUTE


def send_code(ctx: SimulatorContext, provider: str, phone: str, amount: int | None = None) -> str:
    """Send a code that can be used once; earlier codes become invalid. `amount` in main units."""
    code = f"{secrets.randbelow(899_999) + 100_000}"
    ctx.store.run("UPDATE messages SET used = 1 WHERE provider = ? AND phone = ?", provider, phone)
    about = f" pour payer {amount} F" if amount else ""
    body = f"Votre code{about} est {code}. Il est valable 5 minutes."
    values = {"provider": provider, "phone": phone, "body": body, "code": code, "created_at": ctx.clock.now()}
    ctx.store.insert("messages", values)
    return code


def consume_code(ctx: SimulatorContext, provider: str, phone: str, code: str) -> bool:
    """Whether the code is right; a right code that was sent becomes invalid.

    When a code was sent to this phone, only the last one is right, once, for five minutes. When none was sent (the
    customer dials for it), every code but 000000 is right.
    """
    if code == BAD_CODE:
        return False
    sent = ctx.store.rows("SELECT * FROM messages WHERE provider = ? AND phone = ? ORDER BY id DESC", provider, phone)
    if not sent:
        return code.isalnum()
    last = sent[0]
    if last["used"] or last["code"] != code or ctx.clock.now() - last["created_at"] > _VALID_FOR:
        return False
    ctx.store.run("UPDATE messages SET used = 1 WHERE id = ?", last["id"])
    return True
