"""The OpenAPI document, with sorted keys."""

import json

from tests.frozen.recording import as_json
from tests.frozen.service import Settings, running_service


async def record(settings: Settings) -> str:
    """`openapi.json`, on a database that has its schema already. The version and the server's address are left out."""
    async with running_service(settings) as service:
        answer = await service.call("GET", "/openapi.json")
    assert answer.status == 200, answer.body
    document = json.loads(answer.body)
    document["info"]["version"] = "{version}"
    return as_json(document, sort_keys=True).replace(service.url, "{base_url}")
