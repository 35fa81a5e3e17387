"""`guichet providers check --deep` over the accounts of the development profile, whose simulator a server runs."""

import re

from tests.cli.conftest import Cli
from tests.ports import free_port


def test_the_accounts_of_the_development_profile_are_right(development: Cli) -> None:
    accounts = development("providers", "check", "--deep", "--json").json["accounts"]
    assert {"mtn_benin", "wave_senegal", "pawapay", "feexpay", "sonatel", "stripe", "coris"} <= accounts.keys()
    assert [found for findings in accounts.values() for found in findings if found["state"] == "wrong"] == []
    states = {found["subject"]: found["state"] for found in accounts["sonatel"]}
    assert states["registered callback"] == states["list of transactions"] == "ok"


def test_each_account_has_a_table_and_a_wrong_one_is_an_error(development: Cli) -> None:
    done = development("providers", "check", "wave_senegal", "--deep")
    assert done.code == 0
    assert re.search(r"✓ .*key and signature", done.out)
    assert re.search(r"– .*registered callback .*cannot be checked by a call", done.out)
    elsewhere = development.having(GUICHET_PUBLIC_URL=f"http://127.0.0.1:{free_port()}")
    wrong = elsewhere("providers", "check", "stripe", "--deep")
    assert wrong.code == 1
    assert "✗" in wrong.out


def test_a_check_of_one_account_calls_only_that_one(development: Cli) -> None:
    accounts = development("providers", "check", "coris", "--json").json["accounts"]
    assert [row["provider_account"] for row in accounts] == ["coris"]
