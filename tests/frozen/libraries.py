"""What the libraries in sdks/ take from this project: the types of the API, written in their language out of the frozen
OpenAPI document, and the recorded answers that their fake servers give. Each library has its copies, because each is
packed by itself."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.contract.tables import table
from tests.frozen.recording import FOLDER
from tests.frozen.service import EXAMPLES_FILE

SDKS: Final = Path(__file__).parents[2] / "sdks"
Schema = Mapping[str, Any]
_MADE: Final = "Written by `python -m tests.frozen` from the OpenAPI document."
#: A query's fields that an iterator fills in.
_WALKED: Final = frozenset({"page"})
_WORDS: Final = {
    "python": {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"},
    "typescript": {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"},
    "php": {"string": "string", "integer": "int", "number": "float|int", "boolean": "bool", "null": "null"},
}
_OBJECT: Final = {"python": "dict[str, Any]", "typescript": "Record<string, unknown>", "php": "array<string, mixed>"}
_LIST: Final = {"python": "list[{}]", "typescript": "Array<{}>", "php": "list<{}>"}
#: Parts of the document that no library shows: envelopes and what stands beside the data.
_ENVELOPES: Final = frozenset(
    {"ErrorEnvelope", "Event", "Failure", "IgnoredParameters", "Meta", "RequestWarning", "WalkMeta"}
)


def files() -> dict[Path, str]:
    """Path → what must stand there."""
    document = json.loads((FOLDER / "openapi.json").read_text(encoding="utf-8"))
    schemas = dict(_schemas(document))
    notifications = [name for name in schemas if name.endswith("Notification")]
    recordings = _recordings(document, json.loads(EXAMPLES_FILE.read_text(encoding="utf-8")))
    return {
        SDKS / "python/src/guichet_sdk/types.py": _python(schemas, notifications),
        SDKS / "python/src/guichet_sdk/_sync.py": _synchronous(
            (SDKS / "python/src/guichet_sdk/_async.py").read_text(encoding="utf-8")
        ),
        SDKS / "typescript/src/types.ts": _typescript(schemas, notifications),
        SDKS / "php/src/Types.php": _php(schemas, notifications),
        SDKS / "python/src/guichet_sdk/recordings.json": recordings,
        SDKS / "typescript/recordings.json": recordings,
        SDKS / "php/recordings.json": recordings,
    }


def _schemas(document: Any) -> Iterator[tuple[str, Schema]]:
    """Every named object, and the query of every list."""
    for name, schema in document["components"]["schemas"].items():
        if name not in _ENVELOPES:
            yield name, schema
    for operations in document["paths"].values():
        operation = operations.get("get", {})
        fields = {
            each["name"]: {**each["schema"], "description": each.get("description", "")}
            for each in operation.get("parameters", ())
            if each["in"] == "query" and each["name"] not in _WALKED
        }
        if fields:
            name = "".join(word.capitalize() for word in operation["operationId"].split("_")) + "Query"
            yield name, {"properties": fields, "required": [], "description": operation["summary"] + "."}


def _type(schema: Schema, language: str) -> str:
    """The type's expression; `null` stands last."""
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[1])
    if "anyOf" in schema:
        return _union([_type(each, language) for each in schema["anyOf"]], language)
    if "enum" in schema:
        return _choice(schema["enum"], language)
    if isinstance(schema["type"], list):
        return _union([_type({**schema, "type": each}, language) for each in schema["type"]], language)
    if schema["type"] == "array":
        return _LIST[language].format(_type(schema["items"], language))
    return _OBJECT[language] if schema["type"] == "object" else _WORDS[language][schema["type"]]


def _choice(values: list[str], language: str) -> str:
    quoted = [f"'{value}'" if language == "php" else f'"{value}"' for value in values]
    return f"Literal[{', '.join(quoted)}]" if language == "python" else _union(quoted, language)


def _union(parts: list[str], language: str) -> str:
    return ("|" if language == "php" else " | ").join(parts)


def _said(schema: Schema) -> str:
    """The first sentence of a description, on one line."""
    text = " ".join(str(schema.get("description", "")).split()).replace("*/", "")
    return re.split(r"(?<=[.;]) (?=[A-ZÀ-Ý`])", text)[0].rstrip(" ;")


def _python(schemas: Mapping[str, Schema], notifications: list[str]) -> str:
    """TypedDicts. `from` is a keyword of Python, so its field is `from_`."""
    lines = [f'"""The types of the API. {_MADE}"""', "", "from typing import Any, Literal, NotRequired, TypedDict"]
    for name, schema in sorted(schemas.items(), key=lambda item: _depth(item[1], schemas)):
        lines += ["", "", f"class {name}(TypedDict):", f'    """{_said(schema) or name}"""', ""]
        for field, each in schema["properties"].items():
            expression = _type(each, "python")
            if field not in schema.get("required", ()):
                expression = f"NotRequired[{expression}]"
            lines.append(f"    {field}{'_' * (field == 'from')}: {expression}")
            if said := _said(each):
                lines.append(f'    """{said}"""')
    return "\n".join([*lines, "", "", f"Event = {' | '.join(notifications)}", ""])


def _depth(schema: Schema, schemas: Mapping[str, Schema]) -> int:
    """How many levels of named objects stand below: Python wants them first."""
    named = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schema))
    return max((1 + _depth(schemas[name], schemas) for name in named), default=0)


def _typescript(schemas: Mapping[str, Schema], notifications: list[str]) -> str:
    lines = [f"// The types of the API. {_MADE}"]
    for name, schema in schemas.items():
        lines += ["", *([f"/** {said} */"] if (said := _said(schema)) else []), f"export interface {name} {{"]
        for field, each in schema["properties"].items():
            if said := _said(each):
                lines.append(f"  /** {said} */")
            optional = "" if field in schema.get("required", ()) else "?"
            lines.append(f"  {field}{optional}: {_type(each, 'typescript')};")
        lines.append("}")
    return "\n".join([*lines, "", f"export type Event = {' | '.join(notifications)};", ""])


def _php(schemas: Mapping[str, Schema], notifications: list[str]) -> str:
    lines = ["<?php", "", "declare(strict_types=1);", "", "namespace Guichet;", "", "/**"]
    lines += [f" * The shapes of the API's arrays, for PHPStan, Psalm and editors. {_MADE}", " *"]
    for name, schema in schemas.items():
        shape = ", ".join(
            f"{field}{'' if field in schema.get('required', ()) else '?'}: {_type(each, 'php')}"
            for field, each in schema["properties"].items()
        )
        lines.append(f" * @phpstan-type {name} array{{{shape}}}")
    lines.append(f" * @phpstan-type Event {'|'.join(notifications)}")
    return "\n".join([*lines, " */", "interface Types", "{", "}", ""])


def _synchronous(source: str) -> str:
    """The synchronous Python client, out of the asynchronous one."""
    for pattern, by in (
        (r'^""".*?"""', f'"""The synchronous client. {_MADE.replace("the OpenAPI document", "_async.py")}"""'),
        (r"\bAsync(?=[A-Z])|\b(async|await) ", ""),
        (r"\basyncio\b", "time"),
        (r"\baclose\b", "close"),
        (r"__a(enter|exit|iter)__", r"__\1__"),
    ):
        source = re.sub(pattern, by, source, flags=re.DOTALL)
    return source


def _recordings(document: Any, examples: Any) -> str:
    """The first recorded answer of each endpoint, each error by its code, and each event by its name."""
    answers = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if recorded := examples["answers"].get(operation.get("operationId")):
                status = next(int(code) for code in operation["responses"] if code.startswith("2"))
                answers[f"{method.upper()} {path}"] = {"status": status, "body": next(iter(recorded.values()))}
    statuses = {row["Code"]: int(row["HTTP"]) for row in table("errors")}
    errors = {code: {"status": statuses[code], "body": body} for code, body in examples["errors"].items()}
    events = {name: recorded["body"] for name, recorded in examples["webhooks"].items()}
    return json.dumps({"answers": answers, "errors": errors, "events": events}, ensure_ascii=False, indent=1) + "\n"
