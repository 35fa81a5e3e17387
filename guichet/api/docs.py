"""`/openapi.json` and `/docs`: public, built when first asked for, served as bytes.

The page is rendered from the document and nothing else. It needs no script and no other file, and its policy allows
none: the one style sheet travels inside, allowed by its hash.
"""

import asyncio
import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from guichet.api import markdown
from guichet.api.fields import Field, fields
from guichet.api.openapi import document
from guichet.api.schemas import REF
from guichet.domain.errors import MethodNotAllowed
from guichet.server.json_response import error_response
from guichet.settings import Settings

_STYLE: Final = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_REFUSED: Final = re.compile(r"q=0(\.0{0,3})?")


def routes(settings: Settings) -> list[BaseRoute]:
    """What is mounted at the root of the server."""
    described = cache(lambda: document(settings))
    return [
        Route("/openapi.json", Published(lambda: _json(described()))),
        Route("/docs", Published(lambda: _page(described()))),
    ]


class Content:
    """Bytes that do not change while the process lives."""

    def __init__(self, plain: bytes, media_type: str, headers: Mapping[str, str]) -> None:
        self.plain: Final = plain
        self.compressed: Final = gzip.compress(plain, 9, mtime=0)
        self.tag: Final = hashlib.sha256(plain).hexdigest()[:24]
        self.headers: Final = {
            "Cache-Control": "no-cache",
            "Vary": "Accept-Encoding",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            **headers,
        }
        self.media_type: Final = media_type


class Published:
    """Content with `ETag`, `304`, gzip if asked. It is made for the first who asks: no start waits for it."""

    def __init__(self, make: Callable[[], Content]) -> None:
        self._make = make
        self._content: Content | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._content is None:  # It takes long enough to hold payments up.
            self._content = await asyncio.to_thread(self._make)
        await self._answer(self._content, scope["method"], Headers(scope=scope))(scope, receive, send)

    def _answer(self, content: Content, method: str, asked: Headers) -> Response:
        if method not in ("GET", "HEAD"):
            refusal = error_response(MethodNotAllowed())
            refusal.headers["Allow"] = "GET, HEAD"
            return refusal
        zipped = _accepts_gzip(asked.get("accept-encoding", ""))
        # Two representations, two strong tags.
        tag = f'"{content.tag}-gz"' if zipped else f'"{content.tag}"'
        headers = {**content.headers, "ETag": tag}
        if _names(asked.get("if-none-match", ""), tag):
            return Response(status_code=304, headers=headers)
        body = content.compressed if zipped else content.plain
        if zipped:
            headers["Content-Encoding"] = "gzip"
        headers["Content-Length"] = str(len(body))
        return Response(b"" if method == "HEAD" else body, headers=headers, media_type=content.media_type)


def _names(header: str, tag: str) -> bool:
    """`If-None-Match` compares weakly."""
    listed = {part.strip().removeprefix("W/") for part in header.split(",")}
    return tag in listed or "*" in listed


def _accepts_gzip(header: str) -> bool:
    for part in header.split(","):
        name, _, quality = part.partition(";")
        if name.strip().lower() == "gzip":
            return not _REFUSED.fullmatch(quality.replace(" ", "").lower())
    return False


def _json(described: Mapping[str, Any]) -> Content:
    text = json.dumps(described, ensure_ascii=False, separators=(",", ":"))
    return Content(text.encode(), "application/json", {"Access-Control-Allow-Origin": "*"})


# --- the page ---------------------------------------------------------------------------------------------------------


def _page(described: Mapping[str, Any]) -> Content:
    html = _rendered(described)
    found = _STYLE.search(html)
    assert found is not None
    digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    headers = {"Content-Security-Policy": policy, "Content-Language": "fr", "X-Frame-Options": "DENY"}
    return Content(html.encode(), "text/html; charset=utf-8", headers)


def _rendered(described: Mapping[str, Any]) -> str:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"inline": markdown.inline, "blocks": markdown.blocks, "pretty": _pretty}
    operations = [
        _operation(described, method, path, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = described["components"]["schemas"]
    sent = {operation["body"] for operation in operations if operation["body"]}
    return environment.get_template("docs.html").render(
        info=described["info"],
        server=described["servers"][0]["url"],
        headings=markdown.headings(described["info"]["description"]),
        tags=[
            {
                **tag,
                "anchor": markdown.anchor(tag["name"]),
                "operations": [o for o in operations if o["tag"] == tag["name"]],
            }
            for tag in described["tags"]
        ],
        events=[_event(name, hook["post"]) for name, hook in described["webhooks"].items()],
        resources=[
            {"name": name, "description": schema.get("description", ""), "fields": fields(schema)}
            for name, schema in schemas.items()
            if name not in sent and name != "Customer"
        ],
    )


def _operation(described: Mapping[str, Any], method: str, path: str, operation: Mapping[str, Any]) -> dict[str, Any]:
    schemas = described["components"]["schemas"]
    status = next(code for code in operation["responses"] if code.startswith("2"))
    success = operation["responses"][status]["content"]["application/json"]
    data = success["schema"]["properties"]["data"]
    body = operation.get("requestBody")
    name = body["content"]["application/json"]["schema"]["$ref"].removeprefix(REF) if body else None
    return {
        "id": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "tag": operation["tags"][0],
        "summary": operation["summary"],
        "description": operation["description"],
        "parameters": _parameters(operation),
        "body": name,
        "body_fields": fields(schemas[name], schemas) if name else [],
        "samples": operation["x-codeSamples"],
        "status": status,
        "many": "items" in data,
        "paged": "meta" in success["schema"]["properties"],
        "resource": (data.get("items") or data)["$ref"].removeprefix(REF),
        "example": success["example"],
        "errors": _errors(described, operation),
    }


def _parameters(operation: Mapping[str, Any]) -> list[Field]:
    found = operation.get("parameters", [])
    schema = {
        "properties": {p["name"]: {**p["schema"], "description": p["description"]} for p in found},
        "required": [p["name"] for p in found if p["required"]],
    }
    return fields(schema)


def _errors(described: Mapping[str, Any], operation: Mapping[str, Any]) -> list[dict[str, Any]]:
    responses = described["components"]["responses"]
    found = []
    for status, response in operation["responses"].items():
        if name := response.get("$ref", "").removeprefix("#/components/responses/"):
            examples = responses[name]["content"]["application/json"]["examples"]
            found.append({"status": status, "codes": list(examples), "description": responses[name]["description"]})
    return found


def _event(name: str, hook: Mapping[str, Any]) -> dict[str, Any]:
    content = hook["requestBody"]["content"]["application/json"]
    return {
        "name": name,
        "id": hook["operationId"],
        "description": hook["description"],
        "headers": hook["parameters"],
        "resource": content["schema"]["$ref"].removeprefix(REF),
        "example": content["example"],
    }


def _pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
