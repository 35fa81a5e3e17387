"""What makes the console an application on a telephone: its manifest, and the service worker that says "offline"."""

import json
from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from guichet.console.console import ROOT, Console
from guichet.console.page_request import ConsoleRequest

_SIZES: Final = (192, 512)
#: The address of the worker stays the same, so that a browser finds a newer one.
_FRESH: Final = {"Cache-Control": "no-cache"}


def installation_routes(console: Console) -> list[Route]:
    """Anybody may read both."""

    def route(path: str, answer: Callable[[ConsoleRequest], Response]) -> Route:
        async def endpoint(request: Request) -> Response:
            return answer(ConsoleRequest(console, request))

        return Route(ROOT + path, endpoint)

    return [route("/manifest.webmanifest", _manifest), route("/offline.js", _worker)]


def _manifest(request: ConsoleRequest) -> Response:
    renderer = request.renderer
    icons = [
        {
            "src": request.base_path + renderer.addresses[f"icon-{size}.png"],
            "sizes": f"{size}x{size}",
            "type": "image/png",
            "purpose": purpose,
        }
        for size in _SIZES
        for purpose in ("any", "maskable")
    ]
    manifest = {
        "id": f"{request.base_path}{ROOT}/",
        "name": "Guichet",
        "short_name": "Guichet",
        "description": request.text("base.say").unescape(),
        "lang": request.language,
        "start_url": request.console_url("/"),
        "scope": f"{request.base_path}{ROOT}/",
        "display": "standalone",
        "theme_color": "#0e4535",
        "background_color": "#f6f8f6",
        "icons": icons,
    }
    return request.respond(json.dumps(manifest).encode(), "application/manifest+json", headers=_FRESH)


def _worker(request: ConsoleRequest) -> Response:
    script = request.renderer.files["offline.js"]
    return request.respond(script.content, script.media_type, headers=_FRESH)
