"""`/openapi.json`, `/docs`, `/docs/guide` and `/docs/webhooks`: public, made at the first request, then served as the
same bytes.

`/docs` is rendered from the document and from chapters of the merchant's guides. The pages need no other file, and
their content security policy allows none: the style sheet and the script, which searches and copies, are in the page
and are allowed by their hashes.
"""

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from guichet.api import markdown, merchant_guide
from guichet.api.fields import Field, fields
from guichet.api.json_schema import REF
from guichet.api.openapi import document
from guichet.api.openapi_responses import TAG
from guichet.server.content_encoding import ENCODINGS, choose_encoding, compress_once
from guichet.settings import Settings

_INLINE: Final = re.compile(r"<(style|script)>(.*?)</\1>", re.DOTALL)


def docs(settings: Settings) -> Router:
    """For the root of the server."""
    described = cache(lambda: document(settings))
    routes = [
        Route("/openapi.json", Published(lambda: _json(described())).respond),
        Route("/docs", Published(lambda: _page(_reference(described(), settings.public_url))).respond),
        *(
            Route(f"/docs/{page}", Published(partial(_guide_page, described, page, settings.public_url)).respond)
            for page in merchant_guide.PAGES
        ),
    ]
    return Router(routes, redirect_slashes=False)


class Content:
    """Bytes that do not change while the process lives, in each encoding."""

    def __init__(self, plain: bytes, media_type: str, headers: Mapping[str, str]) -> None:
        self.plain: Final = plain
        self.compressed: Final = {encoding: compress_once(plain, encoding) for encoding in ENCODINGS}
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
    """Serves content with an `ETag`, 304 and compression. It is made at the first request, to keep the start short."""

    def __init__(self, make: Callable[[], Content]) -> None:
        self._make = make
        self._content: Content | None = None

    async def respond(self, request: Request) -> Response:
        if self._content is None:  # In a thread: it takes long enough to delay payments.
            self._content = await asyncio.to_thread(self._make)
        content = self._content
        encoding = choose_encoding(request.headers.get("accept-encoding", ""))
        # A strong tag names the bytes that are sent, so each encoding has its own.
        tag = f'"{content.tag}-{encoding}"' if encoding else f'"{content.tag}"'
        headers = {**content.headers, "ETag": tag}
        if _names_tag(request.headers.get("if-none-match", ""), tag):
            return Response(status_code=304, headers=headers)
        body = content.plain
        if encoding:
            body = content.compressed[encoding]
            headers["Content-Encoding"] = encoding
        headers["Content-Length"] = str(len(body))
        return Response(b"" if request.method == "HEAD" else body, headers=headers, media_type=content.media_type)


def _names_tag(if_none_match: str, tag: str) -> bool:
    """Whether the header lists `tag`, by weak comparison."""
    listed = {part.strip().removeprefix("W/") for part in if_none_match.split(",")}
    return tag in listed or "*" in listed


def _json(described: Mapping[str, Any]) -> Content:
    text = json.dumps(described, ensure_ascii=False, separators=(",", ":"))
    return Content(text.encode(), "application/json", {"Access-Control-Allow-Origin": "*"})


def _page(html: str) -> Content:
    allowed = "".join(f"{kind}-src 'sha256-{_digest(text)}'; " for kind, text in _INLINE.findall(html))
    policy = f"default-src 'none'; {allowed}img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    headers = {"Content-Security-Policy": policy, "Content-Language": "fr", "X-Frame-Options": "DENY"}
    return Content(html.encode(), "text/html; charset=utf-8", headers)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"inline": markdown.inline, "blocks": markdown.blocks, "pretty": _pretty}
    return environment


def _guide_page(described: Callable[[], Mapping[str, Any]], page: str, public_url: str) -> Content:
    text = merchant_guide.guide(page, public_url)
    return _page(
        _environment()
        .get_template("guide.html")
        .render(
            info=described()["info"],
            title=merchant_guide.PAGES[page],
            pages=[entry for entry in merchant_guide.PAGES.items() if entry[0] != page],
            headings=markdown.headings(text),
            guide=text,
        )
    )


def _reference(described: Mapping[str, Any], public_url: str) -> str:
    chapters = merchant_guide.chapters(public_url)
    operations = [
        _operation(described, method, path, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = described["components"]["schemas"]
    sent = {operation["body"] for operation in operations if operation["body"]}
    template = _environment().get_template("docs.html")
    return template.render(
        info=described["info"],
        server=described["servers"][0]["url"],
        headings=markdown.headings(described["info"]["description"]) + markdown.headings(chapters),
        chapters=chapters,
        tags=[
            {
                **tag,
                "anchor": markdown.anchor(tag["name"]),
                "operations": [o for o in operations if o["tag"] == tag["name"]],
            }
            for tag in described["tags"]
            if tag["name"] != TAG
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
        "paged": "meta" in success["schema"]["required"],
        "resource": (data.get("items") or data)["$ref"].removeprefix(REF),
        "examples": {title: example["value"] for title, example in success["examples"].items()},
        "errors": _errors(described, operation),
    }


def _parameters(operation: Mapping[str, Any]) -> list[Field]:
    parameters = operation.get("parameters", [])
    schema = {
        "properties": {p["name"]: {**p["schema"], "description": p["description"]} for p in parameters},
        "required": [p["name"] for p in parameters if p["required"]],
    }
    return fields(schema)


def _errors(described: Mapping[str, Any], operation: Mapping[str, Any]) -> list[dict[str, Any]]:
    responses = described["components"]["responses"]
    errors = []
    for status, response in operation["responses"].items():
        if name := response.get("$ref", "").removeprefix("#/components/responses/"):
            examples = responses[name]["content"]["application/json"]["examples"]
            errors.append({"status": status, "codes": list(examples), "description": responses[name]["description"]})
    return errors


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
