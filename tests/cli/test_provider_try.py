"""`guichet providers try`: a real payment and its refund, here through the simulator beside a running server."""

import json
import re
import signal
import urllib.request
from typing import Any

import pytest

from tests.cli.conftest import Cli, until
from tests.patience import PATIENCE

FAST = ("--every", "0.05", "--yes")


def _simulator(cli: Cli, path: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(f"{cli.environ['GUICHET_PUBLIC_URL']}/simulator/control{path}", data) as answer:
        return json.load(answer)


def _force(cli: Cli, family: str, scenario: str, call: str = "debit") -> None:
    _simulator(cli, "/next", {"family": family, "scenario": scenario, "call": call, "after": 0.1})


def _books(cli: Cli, reference: str) -> dict[str, Any]:
    [row] = _simulator(cli, f"/transactions?reference={reference}")["books"]
    return {name: row[name] for name in ("debits", "debited", "credits", "credited")}


def test_a_payment_is_made_and_given_back(development: Cli) -> None:
    _force(development, "mtn", "succeeds")
    _force(development, "mtn", "succeeds", "credit")
    done = development("providers", "try", "mtn_benin", "--phone", "2290197000000", *FAST)
    assert done.code == 0, done
    payment, refund = re.findall(r"^\d\. (?:Payment|Refund) ([0-9a-f-]{36}):", done.out, re.MULTILINE)
    assert "✓ The provider states 100 XOF" in done.out
    assert _books(development, payment) == {"debits": 1, "debited": "100", "credits": 0, "credited": "0"}
    assert _books(development, refund) == {"debits": 0, "debited": "0", "credits": 1, "credited": "100"}
    unmatched = development("incidents", "--json").json["unmatched_callbacks"]
    assert any(payment in callback["path"] for callback in unmatched), "its callback arrived at our address"


@pytest.mark.parametrize(
    ("account", "family", "phone", "more"),
    [
        ("wave_senegal", "wave", "221771230000", ()),
        ("pawapay", "pawapay", "2290197000000", ("--operator", "mtn")),
        ("feexpay", "feexpay", "2290197000000", ("--operator", "moov")),
        ("stripe", "stripe", None, ("--operator", "VISA")),
        ("fedapay", "fedapay", "22898000000", ("--operator", "moov_tg")),
    ],
)
def test_other_providers_go_the_same_way(
    development: Cli, account: str, family: str, phone: str | None, more: tuple[str, ...]
) -> None:
    _force(development, family, "succeeds")
    _force(development, family, "succeeds", "credit")
    payer = ("--phone", phone) if phone else ()
    tried = development("providers", "try", account, *payer, *more, *FAST, "--json").json
    assert tried["ok"] is True
    assert [(each["what"], each["state"]) for each in tried["movements"]] == [
        ("payment", "succeeded"),
        ("refund", "succeeded"),
    ]


def test_an_account_without_refunds_says_so(development: Cli) -> None:
    _force(development, "orange", "succeeds")
    done = development("providers", "try", "orange_mali", "--phone", "22371230000", *FAST)
    assert done.code == 0, done
    assert "The customer confirms on this page: http" in done.out
    assert "This account cannot refund" in done.out


def test_a_code_is_texted_where_the_provider_does_so(development: Cli) -> None:
    phone = "2290197000055"
    asked = development("providers", "try", "coris", "--phone", phone, *FAST)
    assert "0. Asking for a code by text message" in asked.out
    assert (asked.code, "Payment" in asked.out) == (1, False), "nobody typed the code, so nothing was debited"
    with urllib.request.urlopen(f"{development.environ['GUICHET_PUBLIC_URL']}/simulator/phone") as page:
        [code] = re.findall(rf"est (\d{{6}})\.[^<]*<br>\s*<small>[^<]*{phone}", page.read().decode())
    done = development("providers", "try", "coris", "--phone", phone, "--otp", code, *FAST)
    assert (done.code, "This account cannot refund" in done.out) == (0, True), done


def test_a_refusal_and_a_wrong_amount_end_without_a_refund(development: Cli) -> None:
    _force(development, "mtn", "rejected")
    refused = development("providers", "try", "mtn_benin", "--phone", "2290197000000", *FAST)
    assert (refused.code, "The payment failed. refused" in refused.out, "Refund" in refused.out) == (1, True, False)
    _force(development, "mtn", "wrong_amount")
    wrong = development("providers", "try", "mtn_benin", "--phone", "2290197000000", *FAST)
    assert (wrong.code, "nothing is given back automatically" in wrong.out, "Refund" in wrong.out) == (1, True, False)


def test_a_refund_that_is_refused_is_told(development: Cli) -> None:
    _force(development, "mtn", "succeeds")
    _force(development, "mtn", "refused", "credit")
    done = development("providers", "try", "mtn_benin", "--phone", "2290197000000", *FAST)
    assert done.code == 1
    assert "The refund failed" in done.out
    assert "! The customer still has to get 100 XOF back, by hand." in done.out


def test_what_is_open_is_told_when_the_time_is_over(development: Cli) -> None:
    done = development("providers", "try", "mtn_benin", "--phone", "2290197000000", *FAST, "--wait", "1")
    [reference] = re.findall(r"^1\. Payment ([0-9a-f-]{36}):", done.out, re.MULTILINE)
    assert done.code == 1
    assert f"! The payment {reference} is open at mtn_benin" in done.out


def test_an_interrupted_try_tells_what_is_open(development: Cli) -> None:
    with development.start("providers", "try", "mtn_benin", "--phone", "2290197000000", *FAST) as child:
        assert child.stdout is not None
        first = child.stdout.readline()
        [reference] = re.findall(r"^1\. Payment ([0-9a-f-]{36}):", first)
        until(lambda: _simulator(development, f"/transactions?reference={reference}")["transactions"])
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130, (out, err)
    assert f"! The payment {reference} is open at mtn_benin" in out
    assert "Traceback" not in err


def test_nothing_is_debited_without_a_yes_or_with_half_an_order(development: Cli) -> None:
    asked = development("providers", "try", "mtn_benin", "--phone", "2290197009999")
    assert (asked.code, asked.out) == (1, "")
    assert "Take 100 XOF from the customer 2290197009999 by mtn through mtn_benin" in re.sub(r"\s+", " ", asked.err)
    held = _simulator(development, "/transactions?family=mtn")["transactions"]
    assert "2290197009999" not in [transaction["phone"] for transaction in held]
    assert "--phone is needed" in development("providers", "try", "mtn_benin", *FAST).misuse
    assert "--operator must be one of" in development("providers", "try", "pawapay", "--phone", "229", *FAST).misuse
    wrong = development("providers", "try", "mtn_benin", "--operator", "moov", "--phone", "229", *FAST)
    assert "--operator must be one of mtn" in wrong.misuse
