"""Makes the calls of cases.json through the installed Python library: one line of JSON in, one out."""

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator, Iterator
from functools import cache
from typing import Any

from guichet_sdk import AsyncGuichet, Guichet, GuichetError, webhooks


def arguments(call: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    named = {f"{name}_" if name == "from" else name: value for name, value in (call["with"] or {}).items()}
    if call["key"] is not None:
        named["idempotency_key"] = call["key"]
    return ([] if call["at"] is None else [call["at"]]), named


@cache
def client_of(options: str, asynchronous: bool) -> Any:
    return (AsyncGuichet if asynchronous else Guichet)(**json.loads(options))


async def answer(call: dict[str, Any], asynchronous: bool) -> Any:
    if call["call"] == "webhooks.unwrap":
        return webhooks.unwrap(base64.b64decode(call["body"]), call["headers"], call["secrets"])
    resource, method = call["call"].split(".")
    positional, named = arguments(call)
    client = client_of(json.dumps(call["client"]), asynchronous)
    found = getattr(getattr(client, resource), method)(*positional, **named)
    if isinstance(found, AsyncIterator):
        return [row async for row in found]
    if isinstance(found, Iterator):
        return list(found)
    return await found if asynchronous else found


def main(runner: asyncio.Runner, asynchronous: bool) -> None:
    for line in sys.stdin:
        try:
            said = {"value": runner.run(answer(json.loads(line), asynchronous))}
        except GuichetError as error:
            facts = {name: getattr(error, name) for name in ("status", "code", "reason", "reference", "request_id")}
            facts["retry_after"] = error.retry_after
            said = {"error": {"type": type(error).__name__, "fields": list(error.details), **facts}}
        except (TypeError, ValueError) as error:
            said = {"error": {"type": "InvalidArgument", "message": str(error)}}
        print(json.dumps(said), flush=True)  # noqa: T201


with asyncio.Runner() as one_loop:
    main(one_loop, "--async" in sys.argv)
