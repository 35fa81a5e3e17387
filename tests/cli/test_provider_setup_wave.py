"""`guichet providers setup wave-merchants` against the simulator, on both databases."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, clean_environ
from tests.patience import PATIENCE

FILE = """
[accounts.wave_senegal]
provider = "wave"
base_url = "{simulator}/wave"
country = "sn"
api_key = "wave_sn_prod_1"
aggregated_merchants = {aggregates}

[routes]
wave_sn = ["wave_senegal"]
"""
SETUP = ("providers", "setup", "wave-merchants")


@pytest.fixture
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("simulator")
    with Cli(clean_environ(folder / "var"), folder).running("simulator", ready="/simulator/phone") as running:
        yield running.address + "/simulator"


def _with_file(cli: Cli, simulator: str, aggregates: str = "true") -> Cli:
    file = Path(cli.folder) / "providers.toml"
    file.write_text(FILE.format(simulator=simulator, aggregates=aggregates), encoding="utf-8")
    return cli.having(GUICHET_PROVIDERS_FILE=str(file))


def _call(simulator: str, method: str, path: str, body: object = None) -> Any:
    headers = {"Authorization": "Bearer wave_sn_prod_1", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{simulator}{path}", data, headers, method=method)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def _names(simulator: str) -> list[str]:
    return [row["name"] for row in _call(simulator, "GET", "/wave/v1/aggregated_merchants")["items"]]


def test_each_active_merchant_is_made_once(cli: Cli, simulator: str) -> None:
    command = _with_file(cli, simulator)
    for name in ("Awa", "Binta", "Coumba"):
        cli("merchant", "create", name)
    cli("merchant", "status", 3, "suspended")
    first = command(*SETUP, "--yes")
    assert (first.code, _names(simulator)) == (0, ["Awa (1)", "Binta (2)"]), first
    assert "2 aggregated merchants were made" in first.out

    assert "0 aggregated merchants were made" in command(*SETUP, "--yes").out
    cli("merchant", "create", "Dior")
    [made] = command(*SETUP, "--account", "wave_senegal", "--yes", "--json").json["aggregated_merchants"]
    assert (made["merchant_id"], made["name"], made["made"]) == (4, "Dior (4)", True)
    assert _names(simulator) == ["Awa (1)", "Binta (2)", "Dior (4)"]


@pytest.mark.both_databases
def test_one_that_was_made_before_a_crash_is_found_again(cli: Cli, simulator: str) -> None:
    command = _with_file(cli, simulator)
    cli("merchant", "create", "Awa")
    made = {"name": "Awa (1)", "business_type": "other", "business_description": "x"}
    wave_id = _call(simulator, "POST", "/wave/v1/aggregated_merchants", made)["id"]
    done = command(*SETUP, "--yes")
    assert wave_id in done.out
    assert (_names(simulator), "0 aggregated merchants were made" in done.out) == (["Awa (1)"], True)


def test_the_incident_of_a_missing_one_is_closed_by_making_it(cli: Cli, simulator: str) -> None:
    command = _with_file(cli, simulator)
    key = cli("merchant", "create", "Awa", "--json").json["keys"]["live"]
    order = {"amount": 5000, "operator": "wave_sn", "phone_number": "221771239001"}
    with command.running("serve") as server:
        assert server.call("POST", "/v1/payments", key, order)[0] == 500
        [incident] = command("incidents", "--json").json["incidents"]
        assert incident["kind"] == "missing_aggregated_merchant"
        assert command(*SETUP, "--yes").code == 0
        assert command("incidents", "--json").json["incidents"] == []
        status, answer = server.call("POST", "/v1/payments", key, order)
        assert (status, answer["data"]["status"]) == (201, "pending")


def test_nothing_is_made_without_a_yes(fresh: Cli, simulator: str) -> None:
    command = _with_file(fresh, simulator)
    fresh("merchant", "create", "Awa")
    assert command(*SETUP).code == 1
    assert _names(simulator) == []


def test_only_an_aggregators_account_is_set_up(fresh: Cli, simulator: str) -> None:
    command = _with_file(fresh, simulator, "false")
    assert "aggregated_merchants = true" in command(*SETUP, "--yes").misuse
    assert "wave_senegal is no Wave account" in command(*SETUP, "--account", "wave_senegal", "--yes").misuse
