"""A parsed body as a model, or every fault of it at once, in French (docs/contract.md, "Requests")."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from guichet.domain.errors import InvalidRequest

Model = TypeVar("Model", bound=BaseModel)


def validate(model: type[Model], values: Mapping[str, Any], context: Mapping[str, Any] | None = None) -> Model:
    """`values` as a `model`. Raises InvalidRequest with a French sentence for every fault, under dotted field names."""
    try:
        return model.model_validate(values, context=context)
    except ValidationError as error:
        details: dict[str, list[str]] = {}
        for fault in error.errors(include_url=False):
            field = ".".join(str(part) for part in fault["loc"]) or "body"
            sentence = _sentence(fault["type"], fault.get("ctx", {}), fault["msg"])
            if fault["input"] is None and fault["type"].endswith("_type"):
                sentence = _FRENCH["missing"]
            details.setdefault(field, []).append(sentence)
        raise invalid_request(details) from None


def invalid_request(details: dict[str, list[str]]) -> InvalidRequest:
    """The error for these faults (field → sentences). Its message is the only fault, or says how many there are."""
    sentences = [sentence for field in details.values() for sentence in field]
    if len(sentences) == 1:
        return InvalidRequest(f"{next(iter(details))} : {sentences[0]}", details)
    return InvalidRequest(f"La requête comporte {len(sentences)} erreurs, détaillées champ par champ.", details)


#: pydantic's error types as French sentences; for our own rules see `refuse` (guichet/schemas/request_fields.py).
_FRENCH: Final = {
    "missing": "Ce champ est obligatoire.",
    "int_type": "Un nombre entier est attendu.",
    "string_type": "Une chaîne de caractères est attendue.",
    "bool_type": "true ou false est attendu.",
    "model_type": "Un objet est attendu.",
    "model_attributes_type": "Un objet est attendu.",
    "dict_type": "Un objet est attendu.",
    "string_unicode": "Ce texte contient un caractère interdit.",
    "string_too_long": "{max_length} caractères au maximum.",
    "string_too_short": "Ce champ ne peut pas être vide.",
    "too_long": "{max_length} caractères au maximum.",
    "too_short": "Ce champ ne peut pas être vide.",
    "greater_than_equal": "La valeur minimale est {ge}.",
    "less_than_equal": "La valeur maximale est {le}.",
    "literal_error": "Valeurs acceptées : {expected}.",
}


def _sentence(kind: str, context: Mapping[str, Any], message: str) -> str:
    if template := _FRENCH.get(kind):
        facts = {name: str(value).replace(" or ", " ou ") for name, value in context.items()}
        return template.format(**facts)
    return message
