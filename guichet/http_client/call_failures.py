"""What kept a request from being answered, in one sentence for logs and for the staff. It names the host, never the
path, the headers or the body."""

from guichet.domain.sentences import Sentences


class CallFailure(Sentences):
    CLOSED = "the HTTP client is closed"
    URL_UNREADABLE = "unreadable URL"
    NOT_HTTP = "not an http or https URL with a host"
    LINE_BREAK = "a line break in a header"
    USER_IN_URL = "{host}: user information in the URL"
    HTTPS_ONLY = "{host}: https only"
    ADDRESS_REFUSED = "{host}: address refused by the guard"
    NO_RESPONSE = "{host}: no response in time"
    #: Without a connection: the name of the exception, since the time limit's has no message.
    NO_CONNECTION = "{host}: TimeoutError"
    #: In aiohttp's words; what it says otherwise is shown as it is.
    CANNOT_CONNECT = "{host}: Cannot connect to host {address} [{error}]"
