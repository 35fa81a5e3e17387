"""The fields of a schema as the documentation page shows them: dotted name, type and bounds, in French."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from guichet.api.json_schema import REF
from guichet.domain.records import Record
from guichet.schemas.object_fields import OPEN_ENUM

_TYPES: Final = {
    "string": "texte",
    "number": "nombre",
    "integer": "entier",
    "boolean": "booléen",
    "object": "objet",
    "array": "tableau",
    "null": "null",
}
_FORMATS: Final = {"date-time": "date", "uuid": "UUID", "uri": "URL", "email": "e-mail"}


class Field(Record, frozen=True):
    """`values` are the accepted or known values; `resource` is the schema that the field links to."""

    name: str
    type: str
    required: bool
    rules: tuple[str, ...]
    values: tuple[str, ...]
    default: str | None
    resource: str | None
    description: str


def fields(schema: Mapping[str, Any], unfold: Mapping[str, Any] | None = None) -> list[Field]:
    """The fields of an object schema. `unfold` (name → schema) is for a request body: the fields of nested objects are
    listed too, under dotted names, and optional fields are not called nullable, since null means absent."""
    rows: list[Field] = []
    for name, member in schema.get("properties", {}).items():
        resource = _resource(member)
        nested = unfold.get(resource) if unfold is not None and resource else None
        field = _field(name, member, name in schema.get("required", ()), None if nested else resource)
        if unfold is not None and not field.required:
            field = structs.replace(field, type=field.type.removesuffix(" ou null"))
        rows.append(field)
        if nested:
            rows += [structs.replace(inner, name=f"{name}.{inner.name}") for inner in fields(nested, unfold)]
    return rows


def _field(name: str, schema: Mapping[str, Any], required: bool, resource: str | None) -> Field:
    values = schema.get("enum") or schema.get(OPEN_ENUM) or ()
    default = schema.get("default")
    return Field(
        name=name,
        type=_type(schema),
        required=required,
        rules=tuple(_rules(schema)),
        values=tuple(_json(value) for value in values if value is not None),
        default=None if default is None else _json(default),
        resource=resource,
        description=schema.get("description", ""),
    )


def _resource(schema: Mapping[str, Any]) -> str | None:
    for choice in [schema, schema.get("items", {}), *schema.get("anyOf", ())]:
        if ref := choice.get("$ref"):
            return str(ref).removeprefix(REF)
    return None


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return "objet"
    if choices := schema.get("anyOf"):
        return " ou ".join(_type(choice) for choice in choices)
    kinds = schema["type"]
    names = [_TYPES[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    if known := _FORMATS.get(schema.get("format", "")):
        names[0] = known
    if "items" in schema:
        names[0] = f"tableau de {_type(schema['items'])}s"
    return " ou ".join(names)


def _rules(schema: Mapping[str, Any]) -> list[str]:
    rules = []
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        rules.append(f"de {_grouped(low)} à {_grouped(high)}")
    elif low is not None:
        rules.append(f"au moins {_grouped(low)}")
    if longest := schema.get("maxLength"):
        shortest = schema.get("minLength")
        rules.append(f"{f'de {shortest} à ' if shortest else ''}{longest} caractères{'' if shortest else ' au plus'}")
    return rules


def _grouped(value: int) -> str:
    """With narrow no-break spaces between thousands."""
    return f"{value:,}".replace(",", "\u202f")


def _json(value: object) -> str:
    return value if isinstance(value, str) else str(value).lower()
