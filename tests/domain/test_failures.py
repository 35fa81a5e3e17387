"""Every internal reason for a refusal has a public code and a sentence for the customer."""

from typing import get_args

import pytest

from guichet.domain.failures import FAILURE_CODES, OUR_FAULTS, REFUSAL_REASONS, Failure, RefusalReason, failure_of
from guichet.incidents.repository import KINDS, MISCONFIGURED_ROUTE


def test_every_reason_is_mapped_and_every_code_is_used() -> None:
    assert list(REFUSAL_REASONS) == list(get_args(RefusalReason))
    assert {failure.code for failure in REFUSAL_REASONS.values()} == set(FAILURE_CODES)


@pytest.mark.parametrize(("reason", "failure"), REFUSAL_REASONS.items(), ids=str)
def test_a_sentence_can_be_shown_to_the_customer(reason: str, failure: Failure) -> None:
    assert failure.message.endswith(".")
    assert "client" not in failure.message
    assert reason not in failure.message
    assert failure_of(reason) == failure


def test_an_unknown_reason_is_a_refusal() -> None:
    for unknown in (None, "", "from_a_newer_version"):
        assert failure_of(unknown) == REFUSAL_REASONS["refused"]


def test_our_faults_are_told_as_an_operator_that_does_not_work() -> None:
    assert {REFUSAL_REASONS[reason].code for reason in OUR_FAULTS} == {"operator_unavailable"}
    assert MISCONFIGURED_ROUTE in KINDS
