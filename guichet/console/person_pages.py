"""The pages about whoever uses the browser: signing in, factors, passwords, and which merchants they work for."""

from typing import Final

from guichet.accounts.sign_in import SessionState
from guichet.domain.records import Record

#: For whom a page is, by the state of the session; None: for anybody.
_ANYBODY: Final = None
OPEN: Final[tuple[SessionState, ...]] = ("open",)
_SIGNED_IN: Final[tuple[SessionState, ...]] = ("open", "needs_factor", "needs_setup")


class PersonPage(Record, frozen=True):
    """A page at `/console` and `path`, otherwise as `MerchantPage`. `states`: those of a session that may see it;
    anybody else is sent where they must go first."""

    path: str
    states: tuple[SessionState, ...] | None
    module: str
    show: str
    change: str | None = None


PERSON_PAGES: Final = (
    PersonPage("/sign-in", _ANYBODY, "sign_in_page", "show", "sign_in"),
    PersonPage("/sign-out", _SIGNED_IN, "sign_in_page", "leave", "sign_out"),
    # A one-time or recovery code; again before acts that need a fresh one.
    PersonPage("/factor", ("open", "needs_factor"), "factor_pages", "ask", "give"),
    # Another telephone in place of the one before.
    PersonPage("/factor/change", OPEN, "factor_pages", "show_new_telephone", "take_new_telephone"),
    # The browser's answer: it signs in, or is the second factor.
    PersonPage("/passkey", _ANYBODY, "passkey_pages", "show", "answer"),
    # What the script asks the browser, as JSON.
    PersonPage("/passkey/question", _ANYBODY, "passkey_pages", "show", "ask"),
    # The QR code of a telephone, and its first code.
    PersonPage("/factor/setup", ("open", "needs_setup"), "factor_pages", "show_setup", "set_up"),
    # Asks for a link to a new password.
    PersonPage("/password", _ANYBODY, "password_pages", "show_request", "request_link"),
    PersonPage("/password/{secret}", _ANYBODY, "password_pages", "show_new", "choose_new"),
    PersonPage("/invitation/{secret}", _ANYBODY, "password_pages", "show_invitation", "accept_invitation"),
    # Objects to a new approver.
    PersonPage("/objection/{secret}", _ANYBODY, "objection_page", "show", "object_to"),
    # From a mail: leads to the payment's refund.
    PersonPage("/refund/{reference}", OPEN, "payments.refund_page", "find"),
    # The merchants that somebody works for; with one, on to its overview.
    PersonPage("/", OPEN, "home_page", "show"),
    PersonPage("", OPEN, "home_page", "show"),
    PersonPage("/security/password", OPEN, "password_pages", "show_own", "change_own"),
    # Factors and sessions.
    PersonPage("/security", OPEN, "security_page", "show", "change"),
)
#: What would have been mailed.
DEVELOPMENT_PAGES: Final = (PersonPage("/mailbox", _ANYBODY, "mailbox_page", "show"),)
#: Signs in by a link that `guichet demo` printed.
DEMONSTRATION_PAGES: Final = (PersonPage("/sign-in/{secret}", _ANYBODY, "sign_in_page", "sign_in_by_link"),)
