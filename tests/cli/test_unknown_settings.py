"""A name that begins with GUICHET_ and is no setting is refused."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli

COMMANDS = (("serve", "--port", "0"), ("worker",), ("migrate",), ("doctor",), ("merchant", "list"), ("demo",))
#: As Kubernetes sets them for services called guichet and guichet-worker.
KUBERNETES = {
    "GUICHET_SERVICE_HOST": "10.0.0.1",
    "GUICHET_SERVICE_PORT": "8000",
    "GUICHET_SERVICE_PORT_HTTP": "8000",
    "GUICHET_PORT": "tcp://10.0.0.1:8000",
    "GUICHET_PORT_8000_TCP": "tcp://10.0.0.1:8000",
    "GUICHET_PORT_8000_TCP_ADDR": "10.0.0.1",
    "GUICHET_WORKER_SERVICE_HOST": "10.0.0.2",
    "GUICHET_WORKER_PORT": "tcp://10.0.0.2:18000",
}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_refuses_it_and_names_the_nearest_one(fresh: Cli, command: tuple[str, ...]) -> None:
    mistyped = fresh.having(GUICHET_TRUSTED_PROXY="127.0.0.1/32")
    assert mistyped(*command).refusal == ("GUICHET_TRUSTED_PROXY is unknown; did you mean GUICHET_TRUSTED_PROXIES?")
    assert not Path(fresh.environ["GUICHET_HOME"]).exists()


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("GUICHET_PROFIL", "GUICHET_PROFILE"),
        ("GUICHET_SECRET_KEY", "GUICHET_SECRET_KEYS"),
        ("GUICHET_METRIC_PORT", "GUICHET_METRICS_PORT"),
    ],
)
def test_a_mistyped_name_comes_before_what_is_missing_without_it(fresh: Cli, name: str, nearest: str) -> None:
    production = fresh.having(GUICHET_PROFILE="production", **{name: "production"})
    assert production("serve").refusal == f"{name} is unknown; did you mean {nearest}?"


def test_a_name_that_resembles_none_is_refused_too(fresh: Cli) -> None:
    refusal = fresh.having(GUICHET_API_KEY="sk_live_1")("merchant", "list").refusal
    assert refusal == "GUICHET_API_KEY is unknown; every setting is in docs/admin-guide.md."


def test_secrets_of_the_providers_file_and_names_of_kubernetes_are_let_through(fresh: Cli) -> None:
    file = fresh.folder / "providers.toml"
    file.write_text(
        '[accounts.feexpay]\nprovider = "feexpay"\nbase_url = "http://127.0.0.1:9/simulator/feexpay"\n'
        'api_key = { env = "GUICHET_FEEXPAY_KEY" }\nshop = "s"\n'
    )
    cli = fresh.having(GUICHET_PROVIDERS_FILE=str(file), GUICHET_FEEXPAY_KEY="k", **KUBERNETES)
    assert cli("migrate").code == 0
    assert cli("check-config").code == 0
    assert "GUICHET_FEEXPAY_KEYS is unknown" in cli.having(GUICHET_FEEXPAY_KEYS="k")("migrate").refusal
