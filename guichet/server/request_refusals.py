"""What a client is answered whose request breaks a limit of the port: the contract's error envelope."""

from http import HTTPStatus
from typing import Final

from guichet.domain.errors import InvalidRequest
from guichet.domain.records import Record
from guichet.schemas.envelope import failure
from guichet.server.connection_limits import MAX_BODY, MAX_HEAD, MAX_HEADERS, MAX_TARGET


class Refusal(Record, frozen=True):
    """`reason`: how `/metrics` counts it."""

    reason: str
    status: HTTPStatus
    message: str

    def response(self, headers: list[tuple[bytes, bytes]]) -> bytes:
        """The whole response, after which the connection is closed. `headers`: those of every response."""
        body = failure(InvalidRequest(self.message))
        lines = [f"HTTP/1.1 {self.status.value} {self.status.phrase}".encode()]
        lines += [name + b": " + value for name, value in headers if name.lower() != b"connection"]
        lines += [b"content-type: application/json", b"content-length: %d" % len(body), b"connection: close"]
        return b"\r\n".join([*lines, b"", body])


MALFORMED: Final = Refusal("malformed", HTTPStatus.BAD_REQUEST, "La requête n'est pas du HTTP valide.")
#: Never sent: an answer would be taken for that of an earlier request.
PIPELINED: Final = Refusal("pipelined", HTTPStatus.BAD_REQUEST, "Trop de requêtes ont été envoyées à la suite.")
HEAD_TIME: Final = Refusal(
    "head_time", HTTPStatus.REQUEST_TIMEOUT, "Les en-têtes de la requête n'ont pas été reçus à temps."
)
BODY_TIME: Final = Refusal("body_time", HTTPStatus.REQUEST_TIMEOUT, "Le corps de la requête n'a pas été reçu à temps.")
BODY_SIZE: Final = Refusal(
    "body_size",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    f"Le corps de la requête dépasse {MAX_BODY // 1024} Kio.",
)
TARGET_SIZE: Final = Refusal(
    "target_size", HTTPStatus.REQUEST_URI_TOO_LONG, f"L'adresse de la requête dépasse {MAX_TARGET // 1024} Kio."
)
HEAD_SIZE: Final = Refusal(
    "head_size",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    f"Les en-têtes de la requête dépassent {MAX_HEAD // 1024} Kio ou le nombre de {MAX_HEADERS}.",
)
