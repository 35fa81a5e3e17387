"""The classes of guichet/schemas as JSON Schemas."""

import ast
import inspect
from collections.abc import Iterable, Mapping
from itertools import chain, pairwise
from typing import Any, Final

from pydantic import ConfigDict, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import get_original_bases, is_typeddict

from guichet.schemas.validation import Body

Schema = dict[str, Any]

REF: Final = "#/components/schemas/"


class _SchemaGenerator(GenerateJsonSchema):
    """Writes `null` beside a type rather than as an alternative, no titles, and no default that only means "absent"."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        inner = self.generate_inner(schema["schema"])
        if not isinstance(inner.get("type"), str):
            return self.get_union_of_schemas([inner, {"type": "null"}])
        return {**inner, "type": [inner["type"], "null"]}

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default") is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        """`balance_minor` outgrows the 32 bits that generated Go and Java would give it."""
        return {**super().int_schema(schema), "format": "int64"}

    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """The docstring of a body is for its maintainers, not for merchants."""
        return _without(super().model_schema(schema), "title", "description")

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        return _without(super().typed_dict_schema(schema), "title")

    def normalize_name(self, name: str) -> str:
        return component_name(super().normalize_name(name))


def component_name(class_name: str) -> str:
    """The name of a class of guichet/schemas in the document: `PaymentObject` is documented as `Payment`."""
    return class_name.removesuffix("Object")


def components(classes: Iterable[type[Any]]) -> dict[str, Schema]:
    """Name → schema of these classes (bodies are pydantic models, objects are TypedDicts) and of all they hold."""
    extended = {cls: [base for base in get_original_bases(cls) if is_typeddict(base)] for cls in classes}
    held = dict.fromkeys([*extended, *chain(*extended.values())])
    fields: dict[str, Any] = {f"field_{number}": (cls, ...) for number, cls in enumerate(held)}
    # A TypedDict without a configuration takes that of the model that holds it.
    holder = create_model("Holder", __config__=ConfigDict(use_attribute_docstrings=True), **fields)
    schemas: dict[str, Schema] = holder.model_json_schema(
        ref_template=REF + "{model}", schema_generator=_SchemaGenerator
    )["$defs"]
    for cls, bases in extended.items():
        for base in bases:
            # pydantic reads the docstrings of a TypedDict's own fields only.
            inherited = schemas[component_name(base.__name__)]["properties"]
            schemas[component_name(cls.__name__)]["properties"] |= inherited
    _describe_bodies(schemas, Body)
    for schema in schemas.values():
        for member in schema.get("properties", {}).values():
            _describe_default(member)
    return {name: schemas[name] for name in sorted(schemas) if not name.startswith("_")}


def _describe_bodies(schemas: dict[str, Schema], body: type[Body], inherited: Mapping[str, str] = {}) -> None:
    """Adds the docstrings of the fields of `body` and of its subclasses. pydantic would read them when a class is
    defined, thus at each start, which takes longer than all else that it does with the class."""
    described = {**inherited, **_docstrings(body)}
    properties = schemas.get(component_name(body.__name__), {}).get("properties", {})
    for name in properties.keys() & described.keys():
        properties[name] = dict(sorted({**properties[name], "description": described[name]}.items()))
    for subclass in body.__subclasses__():
        _describe_bodies(schemas, subclass, described)


def _docstrings(body: type[Body]) -> dict[str, str]:
    (definition,) = ast.parse(inspect.getsource(body)).body
    assert isinstance(definition, ast.ClassDef)
    docstrings = {}
    for field, text in pairwise(definition.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(docstring))):
                docstrings[name] = inspect.cleandoc(docstring)
    return docstrings


def reference(documented: type[Any]) -> Schema:
    return {"$ref": REF + component_name(documented.__name__)}


def _describe_default(member: Schema) -> None:
    """Moves a field's default into its description: openapi-typescript makes a field that has one obligatory."""
    if "default" in member:
        default = member.pop("default")
        text = default if isinstance(default, str) else str(default).lower()
        member["description"] = f"{member['description']} Par défaut : `{text}`."


def _without(schema: JsonSchemaValue, *keywords: str) -> JsonSchemaValue:
    return {name: value for name, value in schema.items() if name not in keywords}
