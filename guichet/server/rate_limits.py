"""Every rate limit of requests, as data (docs/contract.md, "Limits"; D40)."""

from typing import Final

from guichet.clock import DAY, MINUTE
from guichet.domain.records import Record
from guichet.settings import Settings

#: An address may ask for known pages this many times as often as for unknown ones: a waiting page asks by itself.
KNOWN_PAGES: Final = 20


class RateLimit(Record, frozen=True):
    """At most `requests` for one key (an address, a phone number) in any `window` microseconds; 0 requests: no limit at
    all."""

    name: str
    requests: int
    window: int = MINUTE


#: Callbacks of providers, by address; a provider sends a few for each payment.
CALLBACKS: Final = RateLimit("callbacks", 3000)
#: Codes by text message that one phone number may be sent, whoever asks for them.
OTP_CODES_PER_PHONE: Final = RateLimit("otp-phone", 3, window=10 * MINUTE)
#: And that one address may ask for: more, since an address may stand for a whole town, but not enough to try numbers.
OTP_CODES_PER_ADDRESS: Final = RateLimit("otp-address", 10, window=10 * MINUTE)
#: And that may be asked for on one link, whatever the address.
OTP_CODES_PER_LINK: Final = RateLimit("otp-link", 60, window=10 * MINUTE)
#: Against somebody who has a telephone buzz all day.
OTP_CODES_PER_PHONE_A_DAY: Final = RateLimit("otp-phone-day", 12, window=DAY)


def api_limit(settings: Settings) -> RateLimit:
    return RateLimit("api", settings.rate_limit)


def pages_limit(settings: Settings) -> RateLimit:
    return RateLimit("checkout", settings.page_rate_limit * KNOWN_PAGES)


def console_limit(settings: Settings) -> RateLimit:
    """Pages of the console, by address. Sign-ins have limits of their own (`console/sign_in_limits.py`)."""
    return RateLimit("console", settings.page_rate_limit * KNOWN_PAGES)


def unknown_pages_limit(settings: Settings) -> RateLimit:
    """Hosted pages that do not exist, by address.

    Tokens hold 131 bits or more and cannot be guessed; this keeps anybody from trying. Whole towns share one address
    behind a mobile network, so what is counted strictly is what an honest customer does not do.
    """
    return RateLimit("checkout-unknown", settings.page_rate_limit)
