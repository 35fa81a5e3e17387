"""`guichet simulator`: the simulated provider APIs in a server of their own."""

from typing import Annotated

import typer

from guichet.cli.console import console
from guichet.cli.errors import fail
from guichet.cli.process import run_process
from guichet.cli.provider_accounts import load_providers
from guichet.cli.runner import load_settings
from guichet.clock import SystemClock
from guichet.server.http_server import Server
from guichet.server.listener import bind_socket, start_listening
from guichet.server.processes import on_stop
from guichet.simulated_providers import serves_simulator
from guichet.simulated_providers import simulator as create_simulator

app = typer.Typer()


@app.command(epilog="Example: `guichet simulator --port 8900`")
def simulator(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8900,
    at_root: Annotated[
        str | None, typer.Option(help="Provider to serve at the root too, for clients that take no base path.")
    ] = None,
) -> None:
    """Serve the simulated provider APIs alone, with the simulated phone at /simulator/phone."""
    settings = load_settings()
    providers = load_providers(settings)
    if not serves_simulator(settings):
        fail("The production profile does not serve the simulator unless GUICHET_ALLOW_SIMULATOR is yes.")
    address = f"http://{host}:{port}/simulator"
    try:
        app = create_simulator(settings, SystemClock(), providers, address, at_root)
    except ValueError as error:
        fail(f"--at-root: {error}.")

    async def main() -> None:
        with bind_socket(host, port) as listener:
            async with app.router.lifespan_context(app):
                server = Server(app)
                on_stop(server.handle_exit)
                start_listening(listener)
                console.print(f"Simulated phone: {address}/phone")
                await server.serve([listener])

    run_process(main())
