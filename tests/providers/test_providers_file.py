"""The providers' file: every error stops the start with one sentence that names the line."""

from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from guichet.clock import SystemClock
from guichet.http_client import HttpClient
from guichet.merchants.catalogue_file import load_catalogue
from guichet.provider_accounts import live_providers
from guichet.providers.provider_types import is_real
from guichet.providers.providers_file import NO_PROVIDERS, ProvidersFileError, read_providers_file
from guichet.providers.shared.client import ProviderAccount
from guichet.settings import Settings, SettingsError, load
from guichet.simulated_providers import mounted_simulator

CODES = ("mtn", "wave_ci")
GOOD = """
[accounts.aggregator]
provider = "feexpay"
base_url = "https://api.example"
api_key = { env = "FEEXPAY_KEY" }
shop = "shop1"

[routes]
mtn = ["aggregator"]
"""


def _read(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> None:
    path = tmp_path / "providers.toml"
    path.write_text(text, encoding="utf-8")
    operators = read_providers_file(path, {"FEEXPAY_KEY": "fp_x"} if environ is None else environ, CODES)
    operators.registry(SystemClock(), HttpClient())


def test_a_valid_file_is_read_without_showing_secrets(tmp_path: Path) -> None:
    path = tmp_path / "providers.toml"
    path.write_text(GOOD)
    operators = read_providers_file(path, {"FEEXPAY_KEY": "fp_very_secret"}, CODES)
    assert operators.routes == {"mtn": ("aggregator",)}
    assert operators.accounts["aggregator"].settings["api_key"] == "fp_very_secret"
    assert "fp_very_secret" not in repr(operators)


@pytest.mark.parametrize(
    ("wrong", "right", "line", "says"),
    [
        ('provider = "feexpay"', 'provider = "feexpai"', 3, "must be one of"),
        ('provider = "feexpay"', "", 2, "provider must be one of"),
        ('base_url = "https://api.example"', 'base_url = "api.example"', 4, "http or https"),
        ('base_url = "https://api.example"', 'base_url = "https://[api"', 4, "http or https"),
        ('base_url = "https://api.example"', 'base_url = "https://api.example:port"', 4, "http or https"),
        ('shop = "shop1"', "", 2, "shop is missing"),
        ('shop = "shop1"', 'shop = "shop1"\ncolour = "red"', 7, "colour is unknown"),
        ('shop = "shop1"', 'shop = ["shop1"]', 6, "must be a text"),
        ('mtn = ["aggregator"]', 'mtn = ["aggregator", "aggregator"]', 9, "different account names"),
        ('mtn = ["aggregator"]', 'mtn = ["nobody"]', 9, "leads to nobody"),
        ('mtn = ["aggregator"]', 'mtn = "aggregator"', 9, "must be a list"),
        ('mtn = ["aggregator"]', 'mtn = [["aggregator"]]', 9, "must be a list of account names"),
        ('mtn = ["aggregator"]', 'orange = ["aggregator"]', 9, "not an operator code"),
        ("[routes]", "[rutes]", 8, "only [accounts.NAME] and [routes]"),
        ("[accounts.aggregator]", "[accounts.sandbox]", 2, "reserved"),
    ],
)
def test_an_error_names_its_line(tmp_path: Path, wrong: str, right: str, line: int, says: str) -> None:
    assert wrong in GOOD
    with pytest.raises(ProvidersFileError) as refused:
        _read(tmp_path, GOOD.replace(wrong, right))
    assert says in str(refused.value)
    assert f"providers.toml, line {line}:" in str(refused.value)


def test_a_missing_secret_is_named_without_showing_others(tmp_path: Path) -> None:
    with pytest.raises(ProvidersFileError, match=r"line 5: .*FEEXPAY_KEY, which is not in the environment"):
        _read(tmp_path, GOOD, {})


def test_refused_provider_settings_name_their_account(tmp_path: Path) -> None:
    mtn = '\n[accounts.mars]\nprovider = "mtn"\nbase_url = "https://m.example"\ntarget_env = "mars"\n'
    with pytest.raises(ProvidersFileError, match=r"line 2: \[accounts.mars\] target_env must be one of"):
        _read(tmp_path, mtn + 'subscription_key = "a"\napi_user = "b"\napi_key = "c"\n')


def test_a_toml_syntax_error_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(ProvidersFileError, match="line 2"):
        _read(tmp_path, "\n[accounts\n")


@pytest.mark.parametrize(("text", "says"), [(b"accounts = 3", "must be a table"), (b"\xff", "cannot be read")])
def test_what_is_no_providers_file_at_all_is_refused(tmp_path: Path, text: bytes, says: str) -> None:
    path = tmp_path / "providers.toml"
    path.write_bytes(text)
    with pytest.raises(ProvidersFileError, match=says):
        read_providers_file(path, {}, CODES)


def test_production_refuses_simulated_providers_unless_allowed(tmp_path: Path) -> None:
    file = tmp_path / "providers.toml"
    file.write_text(
        GOOD.replace("https://api.example", "https://rehearsal.example/simulator/feexpay").replace(
            '{ env = "FEEXPAY_KEY" }', '"fp_x"'
        )
    )
    environ = {
        "GUICHET_HOME": str(tmp_path),
        "GUICHET_PROFILE": "production",
        "GUICHET_PUBLIC_URL": "https://rehearsal.example",
        "GUICHET_SECRET_KEYS": Fernet.generate_key().decode(),
        "GUICHET_PROVIDERS_FILE": str(file),
    }
    production = load(environ)
    with pytest.raises(SettingsError, match="GUICHET_ALLOW_SIMULATOR"):
        live_providers(production)
    assert mounted_simulator(production, SystemClock(), NO_PROVIDERS) is None
    allowed = load({**environ, "GUICHET_ALLOW_SIMULATOR": "yes"})
    assert live_providers(allowed).simulated == ["aggregator"]
    assert mounted_simulator(allowed, SystemClock(), live_providers(allowed)) is not None


def test_without_a_file_development_has_the_simulator_and_production_no_provider(tmp_path: Path) -> None:
    environ = {"GUICHET_HOME": str(tmp_path), "GUICHET_SECRET_KEYS": Fernet.generate_key().decode()}
    production = {**environ, "GUICHET_PROFILE": "production", "GUICHET_PUBLIC_URL": "https://pay.example"}
    assert live_providers(load(production)) == NO_PROVIDERS
    codes = {mode.operator for mode in load_catalogue(None).modes}
    assert set(live_providers(load(environ)).routes) == codes


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (
            'provider = "wave"\nbase_url = "https://api.sandbox.wave.example"\ncountry = "sn"\napi_key = "k"',
            "api.sandbox.wave.example is a sandbox",
        ),
        (
            'provider = "mtn"\nbase_url = "https://momo.example"\ntarget_env = "sandbox"\nsubscription_key = "s"\n'
            'api_user = "u"\napi_key = "k"',
            'target_env = "sandbox"',
        ),
        (
            'provider = "orange"\nbase_url = "https://api.orange.com"\ncountry = "dev"\nclient_id = "i"\n'
            'client_secret = "s"\nmerchant_key = "m"',
            'country = "dev" is the sandbox',
        ),
        (
            'provider = "coris"\nbase_url = "https://testbed.corismoney.com/external/v1/api"\nclient_id = "i"\n'
            'client_secret = "s"\ncode_pv = "1"',
            "testbed.corismoney.com is a sandbox",
        ),
        (
            'provider = "stripe"\nbase_url = "https://api.stripe.com"\nsecret_key = "sk_test_1"',
            "secret_key is a test key",
        ),
    ],
)
def test_production_refuses_sandboxes(tmp_path: Path, table: str, reason: str) -> None:
    """A payment that succeeds in a sandbox moved no money, and would be credited."""
    file = tmp_path / "providers.toml"
    file.write_text(f"[accounts.one]\n{table}\n")
    environ = {
        "GUICHET_HOME": str(tmp_path),
        "GUICHET_SECRET_KEYS": Fernet.generate_key().decode(),
        "GUICHET_PROVIDERS_FILE": str(file),
    }
    assert list(live_providers(load(environ)).accounts) == ["one"], "the development profile may try it"
    production = {**environ, "GUICHET_PROFILE": "production", "GUICHET_PUBLIC_URL": "https://pay.example"}
    with pytest.raises(SettingsError) as refusal:
        live_providers(load(production))
    assert str(refusal.value) == (
        f"providers.toml, line 1: [accounts.one] {reason}, which the production profile refuses."
    )


def _in_production(tmp_path: Path, account: str) -> Settings:
    file = tmp_path / "providers.toml"
    file.write_text(f"[accounts.one]\n{account}\n")
    environ = {
        "GUICHET_HOME": str(tmp_path),
        "GUICHET_SECRET_KEYS": Fernet.generate_key().decode(),
        "GUICHET_PROVIDERS_FILE": str(file),
        "GUICHET_PROFILE": "production",
        "GUICHET_PUBLIC_URL": "https://pay.example",
    }
    return load(environ)


FEEXPAY = 'provider = "feexpay"\nbase_url = "https://{host}/v2"\napi_key = "k"\nshop = "s"'


@pytest.mark.parametrize(
    "host",
    [
        "test.bank.example",
        "api-test.bank.example",
        "test2.bank.example",
        "api.testbed.example",
        "staging.bank.example",
        "preprod-api.bank.example",
        "demo.bank.example",
        "uat1-api.bank.example",
        "UAT.bank.example",
        "my-sandbox.example",
    ],
)
def test_production_refuses_a_host_that_reads_like_a_test_environment(tmp_path: Path, host: str) -> None:
    account = FEEXPAY.format(host=host)
    with pytest.raises(SettingsError, match="reads like a test environment"):
        live_providers(_in_production(tmp_path, account))
    allowed = f'{account}\nlive_host = "{host.lower()}"'
    assert list(live_providers(_in_production(tmp_path, allowed)).accounts) == ["one"]


@pytest.mark.parametrize("host", ["latest.bank.example", "contest.example", "demonstrate.example", "testing.example"])
def test_production_takes_a_host_that_only_contains_such_a_word(tmp_path: Path, host: str) -> None:
    assert live_providers(_in_production(tmp_path, FEEXPAY.format(host=host))).routes == {}


def test_a_live_host_is_that_of_the_address_and_admits_no_known_sandbox(tmp_path: Path) -> None:
    with pytest.raises(ProvidersFileError, match=r"line 6: \[accounts.one\] live_host must be the host of base_url"):
        live_providers(_in_production(tmp_path, FEEXPAY.format(host="a.example") + '\nlive_host = "b.example"'))
    coris = 'provider = "coris"\nbase_url = "https://testbed.corismoney.com/external/v1/api"\nclient_id = "i"\n'
    coris += 'client_secret = "s"\ncode_pv = "1"\nlive_host = "testbed.corismoney.com"'
    with pytest.raises(SettingsError, match="is a sandbox"):
        live_providers(_in_production(tmp_path, coris))


def test_development_takes_a_host_for_real_that_only_reads_like_a_test_environment() -> None:
    account = ProviderAccount("one", "feexpay", "https://demo.bank.example", {})
    assert is_real(account)
    assert not is_real(ProviderAccount("one", "coris", "https://testbed.corismoney.com", {}))
    assert is_real(ProviderAccount("one", "feexpay", "https://sandbox.bank.example", {}, "sandbox.bank.example"))


WAVE = '[accounts.dakar]\nprovider = "wave"\nbase_url = "https://api.wave.com"\napi_key = "k"\n'


@pytest.mark.parametrize(
    ("more", "refused"),
    [
        ('country = "sn"\n[routes]\nwave_ci = ["dakar"]', "line 7: [routes] wave_ci leads to dakar, which serves only"),
        ('country = "ml"\n[routes]', "line 1: [accounts.dakar] country must be one of ci, sn, bf."),
        (
            'country = "ci"\naggregated_merchants = "true"',
            "line 1: [accounts.dakar] aggregated_merchants must be true or false.",
        ),
        (
            'country = "ci"\naggregated_merchants = true\naggregated_merchant_id = "am-1"',
            "line 1: [accounts.dakar] aggregated_merchants and aggregated_merchant_id exclude each other.",
        ),
        ("", "line 1: [accounts.dakar] country is missing."),
    ],
)
def test_an_account_of_wave_is_of_one_country(tmp_path: Path, more: str, refused: str) -> None:
    with pytest.raises(ProvidersFileError) as refusal:
        _read(tmp_path, WAVE + more)
    assert refused in str(refusal.value)


def test_a_route_to_an_account_of_another_country_is_refused(tmp_path: Path) -> None:
    account = '[accounts.m]\nprovider = "mtn"\nbase_url = "https://momo.example"\ntarget_env = "mtnivorycoast"\n'
    keys = 'subscription_key = "s"\napi_user = "u"\napi_key = "k"\n[routes]\nmtn = ["m"]'
    with pytest.raises(ProvidersFileError, match="leads to m, which serves only mtn_ci"):
        _read(tmp_path, account + keys)
