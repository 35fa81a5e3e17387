"""What kept a request from being answered, for logs and for the staff. It names the host, never the
path, the headers or the body."""

from guichet.domain.messages import Code


class CallFailure(Code):
    CLOSED = "call_failure.closed"
    URL_UNREADABLE = "call_failure.url_unreadable"
    NOT_HTTP = "call_failure.not_http"
    LINE_BREAK = "call_failure.line_break"
    USER_IN_URL = "call_failure.user_in_url", "host"
    HTTPS_ONLY = "call_failure.https_only", "host"
    ADDRESS_REFUSED = "call_failure.address_refused", "host"
    NO_RESPONSE = "call_failure.no_response", "host"
    #: Without a connection: the name of the exception, since the time limit's has no message.
    NO_CONNECTION = "call_failure.no_connection", "host"
    #: In aiohttp's words; what it says otherwise is shown as it is.
    CANNOT_CONNECT = "call_failure.cannot_connect", "host", "address", "error"
