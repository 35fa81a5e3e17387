"""`metadata` of a request's body: any JSON object, kept byte for byte (docs/contract.md, "Requests"; D8, D46)."""

from typing import Annotated, Any, Final

from pydantic import BeforeValidator, ValidationInfo

from guichet.schemas.json_codec import has_bad_text, raw_has_bad_text, raw_member
from guichet.schemas.validation import invalid_request, refuse

_BAD_TEXT: Final = "Un texte de cet objet contient un caractère interdit."


def _without_bad_text(value: object, info: ValidationInfo) -> object:
    """The context says `suspect` when the body has an escape that could be bad text (`has_suspect_escape`)."""
    if info.context and info.context.get("suspect") and has_bad_text(value):
        raise refuse(_BAD_TEXT)
    return value


Metadata = Annotated[dict[str, Any] | None, BeforeValidator(_without_bad_text)]


def metadata_text(body: bytes, metadata: dict[str, Any] | None, *, suspect: bool) -> str | None:
    """The JSON text of the body's member, to be stored; None when the validated body has none.

    Raises InvalidRequest if a repeated key hides bad text in it.
    """
    if metadata is None:
        return None
    text = raw_member(body, "metadata")
    if suspect and text is not None and raw_has_bad_text(text):
        raise invalid_request({"metadata": [_BAD_TEXT]})
    return text
