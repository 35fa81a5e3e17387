"""What a telephone shows."""

import pyotp

from guichet.clock import SECOND, Instant


def code_of(seed: str, now: Instant, steps: int = 0) -> str:
    """The one-time code at this moment, or so many codes later."""
    return pyotp.TOTP(seed).generate_otp(now // (30 * SECOND) + steps)
