"""The codes a customer receives by SMS or dials for, shown on the simulated phone."""

import secrets
from typing import Final

from guichet.clock import MINUTE
from guichet_simulator.context import Desk

#: Always wrong, whatever was sent.
BAD_CODE: Final = "000000"
_VALID_FOR: Final = 5 * MINUTE


def send_code(desk: Desk, family: str, phone: str, amount: int | None = None) -> str:
    """Send a single-use code; it replaces the ones before it."""
    code = f"{secrets.randbelow(899_999) + 100_000}"
    desk.store.run("UPDATE messages SET used = 1 WHERE family = ? AND phone = ?", family, phone)
    about = f" pour payer {amount} F" if amount else ""
    body = f"Votre code{about} est {code}. Il est valable 5 minutes."
    values = {"family": family, "phone": phone, "body": body, "code": code, "created_at": desk.clock.now()}
    desk.store.insert("messages", values)
    return code


def code_is_good(desk: Desk, family: str, phone: str, code: str) -> bool:
    """Check a code and use it up.

    Where a code was sent to this phone, only that one is good, once, for five minutes. Where none was (the customer
    dials for it), any code but 000000 is.
    """
    if code == BAD_CODE:
        return False
    sent = desk.store.rows("SELECT * FROM messages WHERE family = ? AND phone = ? ORDER BY id DESC", family, phone)
    if not sent:
        return code.isalnum()
    latest = sent[0]
    if latest["used"] or latest["code"] != code or desk.clock.now() - latest["created_at"] > _VALID_FOR:
        return False
    desk.store.run("UPDATE messages SET used = 1 WHERE id = ?", latest["id"])
    return True
