"""GUICHET_PROFILE forgotten beside real providers: no command opens the service."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli

COMMANDS = (
    ("serve", "--port", "0"),
    ("serve", "--port", "0", "--workers", "2"),
    ("worker",),
    ("demo",),
    ("listen",),
    ("simulator",),
    ("merchant", "list"),
    ("ledger", "audit"),
    ("providers", "check"),
    ("migrate",),
    ("migrate", "--plan"),
)
ACCOUNT = """
[accounts.{name}]
provider = "{provider}"
base_url = "{base_url}"
{settings}
"""
SETTINGS = {
    "mtn": 'target_env = "{target_env}"\nsubscription_key = "k"\napi_user = "u"\napi_key = {{ env = "MTN_KEY" }}',
    "stripe": "secret_key = {secret_key}",
    "feexpay": 'api_key = "k"\nshop = "s"',
}


def with_account(cli: Cli, provider: str, base_url: str, **settings: str) -> Cli:
    text = ACCOUNT.format(
        name="one", provider=provider, base_url=base_url, settings=SETTINGS[provider].format(**settings)
    )
    path = Path(cli.folder, "providers.toml")
    path.write_text(text)
    return cli.having(GUICHET_PROVIDERS_FILE=str(path))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_runs_in_development_beside_a_real_provider(fresh: Cli, command: tuple[str, ...]) -> None:
    cli = with_account(fresh, "mtn", "https://proxy.momoapi.mtn.com", target_env="mtnbenin")
    assert cli(*command).refusal == (
        "GUICHET_PROFILE is development, but [accounts.one] of GUICHET_PROVIDERS_FILE leads to a real provider "
        "(proxy.momoapi.mtn.com): set GUICHET_PROFILE=production, or use its sandbox or the simulator."
    )
    assert not Path(fresh.environ["GUICHET_HOME"]).exists(), "no database and no key were made"


def test_a_real_account_behind_others_is_found_too(fresh: Cli) -> None:
    cli = with_account(fresh, "mtn", "https://proxy.momoapi.mtn.com", target_env="mtnbenin")
    path = Path(cli.environ["GUICHET_PROVIDERS_FILE"])
    sandbox = 'provider = "mtn"\nbase_url = "https://sandbox.momodeveloper.mtn.com"\ntarget_env = "sandbox"\n'
    path.write_text("[accounts.first]\n" + sandbox + path.read_text())
    assert "[accounts.one]" in cli("merchant", "list").refusal


@pytest.mark.parametrize(
    ("provider", "base_url", "settings"),
    [
        ("mtn", "https://sandbox.momodeveloper.mtn.com", {"target_env": "mtnbenin"}),
        ("mtn", "https://proxy.momoapi.mtn.com", {"target_env": "sandbox"}),
        ("stripe", "https://api.stripe.com", {"secret_key": '"sk_test_1"'}),
        ("stripe", "https://api.stripe.com", {"secret_key": '{ env = "STRIPE_KEY_ELSEWHERE" }'}),
        ("feexpay", "http://127.0.0.1:8900/simulator/feexpay", {}),
        ("feexpay", "http://localhost:9000", {}),
        ("feexpay", "http://[::1]:9000", {}),
        ("feexpay", "http://simulator.internal:8900/simulator/feexpay", {}),
    ],
)
def test_sandboxes_and_simulators_may_be_tried_in_development(
    fresh: Cli, provider: str, base_url: str, settings: dict[str, str]
) -> None:
    assert with_account(fresh, provider, base_url, **settings)("migrate", "--plan").code == 0


def test_a_live_key_of_stripe_is_a_real_provider(fresh: Cli) -> None:
    cli = with_account(fresh, "stripe", "https://api.stripe.com", secret_key='{ env = "STRIPE_KEY" }')
    assert cli("migrate").code == 0
    assert "(api.stripe.com)" in cli.having(STRIPE_KEY="sk_live_1")("merchant", "list").refusal
