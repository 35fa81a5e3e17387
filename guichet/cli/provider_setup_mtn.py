"""`guichet providers setup mtn-sandbox`: an API user and its key in MTN's sandbox."""

from typing import Annotated, Final
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import typer

from guichet.bootstrap import USER_AGENT
from guichet.cli.arguments import Json
from guichet.cli.console import error_console, print_json
from guichet.cli.errors import CommandError
from guichet.cli.provider_setup import Yes, confirm, step
from guichet.cli.runner import load_settings, run_async
from guichet.http_client import HttpClient
from guichet.providers.mtn.checks import SANDBOX_ADDRESS, ApiUsers
from guichet.providers.shared.client import ProviderClient
from guichet.settings import Settings

_PRODUCTS: Final = {"collection": "", "disbursement": "disbursement_"}


def mtn_sandbox(
    subscription_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            envvar="MTN_SUBSCRIPTION_KEY",
            help="The primary key of the product, from momodeveloper.mtn.com. Asked for when it is not given.",
        ),
    ] = None,
    product: Annotated[str, typer.Option(metavar="|".join(_PRODUCTS), help="Whose key it is.")] = "collection",
    callback_host: Annotated[
        str | None, typer.Option(metavar="HOST", help="By default the host of GUICHET_PUBLIC_URL.")
    ] = None,
    api_user: Annotated[
        str | None, typer.Option(metavar="UUID", help="Make a new key for this API user instead of a new user.")
    ] = None,
    base_url: Annotated[str, typer.Option(metavar="URL", help="Address of the sandbox.")] = SANDBOX_ADDRESS,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Make an API user and its key in MTN's sandbox, and print the lines for the providers' file.

    The key is shown once: MTN does not tell it again, but a new one can be made with --api-user.
    """
    if product not in _PRODUCTS:
        raise typer.BadParameter(f"--product {' or --product '.join(_PRODUCTS)} is expected.")
    settings, user = load_settings(), api_user or str(uuid4())
    if not _is_uuid(user):
        raise typer.BadParameter(f"{user} is no UUID.")
    host = callback_host or urlsplit(settings.public_url).hostname or ""
    known = subscription_key or typer.prompt("Primary key of the product", hide_input=True, err=True)
    confirm(f"Make the API user {user} at {base_url}, with callbacks to the host {host}?", yes=yes)
    key = run_async(_make(settings, base_url, known, user, host))
    prefix = _PRODUCTS[product]
    lines = {f"{prefix}api_user": user, f"{prefix}api_key": key}
    if as_json:
        print_json({"product": product, "callback_host": host, **lines})
        return
    step("Put these into the account of the providers' file (secrets better as { env = … }); they are shown once:")
    for name, value in {"provider": "mtn", "base_url": base_url, "target_env": "sandbox", **lines}.items():
        step(f'{name} = "{value}"')
    step(f'{prefix}subscription_key = {{ env = "MTN_SUBSCRIPTION_KEY" }}')


async def _make(settings: Settings, base_url: str, subscription_key: str, user: str, host: str) -> str:
    """The key of the user. Each step is told before it is done, so that nothing that was made is lost."""
    http_client = HttpClient(ca_file=settings.egress_ca_file, loopback=settings.development, user_agent=USER_AGENT)
    try:
        users = ApiUsers(ProviderClient(http_client, base_url), subscription_key)
        error_console.print(f"1. API user {user} with the callback host {host}…")
        if problem := await users.create(user, host):
            raise CommandError(f"MTN did not make the API user: {problem}. Try again with --api-user {user}.")
        error_console.print("2. Its key…")
        key, result = await users.create_key(user)
        if key is None:
            raise CommandError(f"MTN made no key: {result.raw}. Try again with --api-user {user}.")
        return key
    finally:
        await http_client.aclose()


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False
