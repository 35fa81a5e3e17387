"""`guichet providers balances` against the simulator."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

FILE = """
[accounts.mtn_benin]
provider = "mtn"
base_url = "{simulator}/mtn"
target_env = "mtnbenin"
subscription_key = "simulator"
api_user = "user"
api_key = "{key}"
float_alert_below = {{ collection = {bound} }}

[accounts.coris]
provider = "coris"
base_url = "{simulator}/coris/external/v1/api"
client_id = "c"
client_secret = "coris-simulator"
code_pv = "1"
"""


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from tests.cli.conftest import clean_environ

    folder = tmp_path_factory.mktemp("simulator")
    with Cli(clean_environ(folder / "var"), folder).running("simulator", ready="/simulator/phone") as running:
        yield running.address + "/simulator"


def _with_file(cli: Cli, simulator: str, *, bound: str = "0", key: str = "key") -> Cli:
    file = Path(cli.folder) / "providers.toml"
    file.write_text(FILE.format(simulator=simulator, bound=bound, key=key), encoding="utf-8")
    return cli.having(GUICHET_PROVIDERS_FILE=str(file))


def test_balances_are_shown_and_accounts_without_any_are_named(fresh: Cli, simulator: str) -> None:
    rows = _with_file(fresh, simulator)("providers", "balances", "--json").json["balances"]
    shown = {row["provider_account"]: (row["wallet"], row["balance"], row["currency"], row["problem"]) for row in rows}
    assert shown == {"mtn_benin": ("collection", "0", "XOF", None), "coris": (None, None, None, None)}
    assert "mtn_benin" in _with_file(fresh, simulator)("providers", "balances", "mtn_benin").out


def test_a_balance_below_its_bound_is_an_error_for_monitoring(fresh: Cli, simulator: str) -> None:
    done = _with_file(fresh, simulator, bound="500000")("providers", "balances")
    assert done.code == 1
    assert re.search(r"mtn_benin .*collection .*500000 .*too low", done.out)


def test_a_balance_that_cannot_be_read_is_an_error_for_monitoring(fresh: Cli, simulator: str) -> None:
    done = _with_file(fresh, simulator, key="invalid")("providers", "balances", "mtn_benin")
    assert done.code == 1
    assert "cannot be read" in done.out


def test_a_wrong_bound_and_an_unknown_account_are_refused(fresh: Cli, simulator: str) -> None:
    assert "must be a whole amount" in _with_file(fresh, simulator, bound='"much"')("providers", "balances").refusal
    assert "no account nobody" in _with_file(fresh, simulator)("providers", "balances", "nobody").misuse
