"""`guichet providers setup mtn-sandbox` and `sonatel-callback` against the simulator."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, clean_environ

SONATEL = """
[accounts.sonatel]
provider = "sonatel"
base_url = "{simulator}/sonatel"
client_id = "c"
client_secret = "s"
merchant_code = "123456"
{secret}
"""


@pytest.fixture
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("simulator")
    with Cli(clean_environ(folder / "var"), folder).running("simulator", ready="/simulator/phone") as running:
        yield running.address + "/simulator"


def _mtn(cli: Cli, simulator: str, *more: str, key: str = "subscription-1") -> tuple[Cli, list[str]]:
    base = ("--base-url", f"{simulator}/mtn", "--callback-host", "pay.example.com")
    return cli.having(MTN_SUBSCRIPTION_KEY=key), ["providers", "setup", "mtn-sandbox", *base, *more]


def test_an_api_user_of_mtns_sandbox_is_made_and_usable(fresh: Cli, simulator: str) -> None:
    command, arguments = _mtn(fresh, simulator, "--yes", "--json")
    made = command(*arguments).json
    file = Path(fresh.folder) / "providers.toml"
    file.write_text(
        f'[accounts.try]\nprovider = "mtn"\nbase_url = "{simulator}/mtn"\ntarget_env = "sandbox"\n'
        f'subscription_key = "subscription-1"\napi_user = "{made["api_user"]}"\napi_key = "{made["api_key"]}"\n'
    )
    checking = fresh.having(GUICHET_PROVIDERS_FILE=str(file), GUICHET_PUBLIC_URL="https://pay.example.com")
    findings = checking("providers", "check", "--deep", "--json").json["accounts"]["try"]
    states = {found["subject"]: (found["state"], found["sentence"]) for found in findings}
    assert states["callback host"] == ("ok", "pay.example.com")
    assert states["collection keys"][0] == "ok"


def test_the_lines_for_the_file_are_printed_once(fresh: Cli, simulator: str) -> None:
    command, arguments = _mtn(fresh, simulator, "--product", "disbursement", "--yes")
    done = command(*arguments)
    assert re.search(r'^disbursement_api_user = "[0-9a-f-]{36}"$', done.out, re.MULTILINE), done
    assert re.search(r'^disbursement_api_key = "[0-9a-f]{32}"$', done.out, re.MULTILINE)
    assert "subscription-1" not in done.out + done.err, "what is known already is not repeated"


def test_an_interrupted_setup_goes_on_with_the_same_user(fresh: Cli, simulator: str) -> None:
    command, arguments = _mtn(fresh, simulator, "--yes", "--json")
    first = command(*arguments).json
    again = command(*arguments, "--api-user", first["api_user"]).json
    assert (again["api_user"], again["api_key"] != first["api_key"]) == (first["api_user"], True)


def test_what_mtn_refuses_is_said(fresh: Cli, simulator: str) -> None:
    command, arguments = _mtn(fresh, simulator, "--yes", key="invalid")
    done = command(*arguments)
    assert done.code == 1
    assert re.search(r"did not make the API user: 401 .*--api-user [0-9a-f-]{36}", done.err)
    assert "is no UUID" in command(*arguments, "--api-user", "me").misuse
    assert "--product" in command(*arguments, "--product", "cards").misuse


def test_nothing_is_made_without_a_yes(fresh: Cli, simulator: str) -> None:
    command, arguments = _mtn(fresh, simulator)
    done = command(*arguments)
    assert (done.code, done.out) == (1, "")
    assert "Make the API user" in done.err
    assert "Nothing was done" in done.err
    assert "Traceback" not in done.err


def _sonatel(cli: Cli, simulator: str, secret: str = 'webhook_secret = "s3cret"') -> Cli:
    file = Path(cli.folder) / "providers.toml"
    file.write_text(SONATEL.format(simulator=simulator, secret=secret), encoding="utf-8")
    return cli.having(GUICHET_PROVIDERS_FILE=str(file), GUICHET_PUBLIC_URL="https://pay.example.com")


def test_sonatels_callback_is_registered_once(fresh: Cli, simulator: str) -> None:
    command = _sonatel(fresh, simulator)
    check = ("providers", "check", "--deep", "--json")
    assert command(*check).code == 1
    first = command("providers", "setup", "sonatel-callback", "--yes", "--json").json
    assert first == {
        "provider_account": "sonatel",
        "callback_url": "https://pay.example.com/providers/sonatel/callback",
        "registered_now": True,
    }
    assert "was registered already" in command("providers", "setup", "sonatel-callback", "--yes").out
    assert command(*check).code == 0


def test_sonatels_callback_needs_a_secret_and_an_account(fresh: Cli, simulator: str) -> None:
    setup = ("providers", "setup", "sonatel-callback", "--yes")
    assert "has no webhook_secret" in _sonatel(fresh, simulator, "")(*setup).misuse
    assert "--account must be one of sonatel" in _sonatel(fresh, simulator)(*setup, "--account", "other").misuse
