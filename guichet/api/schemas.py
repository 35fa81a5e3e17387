"""The models of `bodies` and `resources` as JSON Schemas, and an example of whatever a schema describes."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from guichet.schemas.requests import Body

Schema = dict[str, Any]

REF: Final = "#/components/schemas/"
_NO_DEFAULT: Final[tuple[object, ...]] = (None, "", {})


class _Contract(GenerateJsonSchema):
    """`null` beside a type rather than as an alternative, no titles, and no default that only means "absent"."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        inner = self.generate_inner(schema["schema"])
        if not isinstance(inner.get("type"), str):
            return self.get_union_of_schemas([inner, {"type": "null"}])
        return {**inner, "type": [inner["type"], "null"]}

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default") in _NO_DEFAULT and schema.get("default") is not False:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def components(models: list[type[BaseModel]]) -> dict[str, Schema]:
    """Name → schema of these models and of all they hold."""
    _, generated = models_json_schema(
        [(model, "validation") for model in models], ref_template=REF + "{model}", schema_generator=_Contract
    )
    found: dict[str, Schema] = generated["$defs"]
    # The docstrings of bodies speak to those who maintain them, not to merchants.
    internal = {model.__name__ for model in _family(Body)}
    for name, schema in found.items():
        schema.pop("title", None)
        if name in internal:
            schema.pop("description", None)
    return dict(sorted(found.items()))


def reference(model: type[BaseModel]) -> Schema:
    return {"$ref": REF + model.__name__}


def example(schema: Mapping[str, Any], known: Mapping[str, Schema]) -> Any:
    """What the schema's own examples make together; optional fields are left out."""
    if examples := schema.get("examples"):
        return examples[0]
    if "const" in schema:
        return schema["const"]
    if ref := schema.get("$ref"):
        return example(known[ref.removeprefix(REF)], known)
    if choices := schema.get("anyOf"):
        return example(choices[0], known)
    if schema.get("type") == "object":
        fields = schema.get("properties", {})
        return {name: example(fields[name], known) for name in fields if name in schema.get("required", ())}
    if schema.get("type") == "array":
        return [example(schema["items"], known)]
    raise LookupError(f"nothing says what an example of {schema} is")


def _family(model: type[BaseModel]) -> list[type[BaseModel]]:
    return [model, *(member for child in model.__subclasses__() for member in _family(child))]
