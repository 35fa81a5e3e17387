"""The console's cookies."""

from typing import Final

from guichet.accounts.passkeys import CHALLENGE_LASTS
from guichet.accounts.sessions import MAX_AGE
from guichet.clock import SECOND
from guichet.pages.cookies import Cookie

#: Until the browser is closed; the session's row ends sooner.
SESSION: Final = Cookie("guichet-session", None)
DEVICE: Final = Cookie("guichet-device", MAX_AGE // SECOND)
#: What a challenge for a passkey was bound to.
PASSKEY: Final = Cookie("guichet-passkey", CHALLENGE_LASTS // SECOND)
#: What an act just did, for the page that it leads to; browsers give it up when that page does not come.
DONE: Final = Cookie("guichet-done", 60)
