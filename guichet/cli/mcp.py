"""`guichet mcp`: a merchant's account as tools for programs that talk (docs/mcp.md)."""

import asyncio
import os
from importlib import import_module
from typing import Annotated

import typer

from guichet.cli.errors import fail

app = typer.Typer()


@app.command(epilog="Example: `guichet mcp --url http://127.0.0.1:8000/v1`")
def mcp(
    url: Annotated[str, typer.Option(help="Base address of the API, ending in /v1.")] = "http://127.0.0.1:8000/v1",
) -> None:
    """Offer the API of a running server to a program that speaks the Model Context Protocol, over stdin and stdout.

    The key is that of the variable MERCHANT_API_KEY. With a test key it offers everything; with a live key what reads,
    payment links and checkout sessions, and proposals of refunds that a person confirms in the console.
    """
    key = os.environ.get("MERCHANT_API_KEY", "")
    if not key.startswith("sk_"):
        fail("MERCHANT_API_KEY must be a secret key, which begins with sk_test_ or sk_live_.")
    try:
        server = import_module("guichet.cli.mcp_server")
    except ImportError:
        fail("guichet mcp needs PyPI's mcp, which is not installed: run `make mcp` or `pip install 'guichet[mcp]'`.")
    asyncio.run(server.serve(url.rstrip("/"), key))
