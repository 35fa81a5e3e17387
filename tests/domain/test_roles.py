"""The table of rights: complete, and no role has what it must not have (docs/security.md repeats it for people)."""

import pytest

from guichet.domain.roles import (
    MERCHANT_RIGHTS,
    MERCHANT_ROLES,
    STAFF_RIGHTS,
    STAFF_ROLES,
    STEP_UP_RIGHTS,
    may_as_merchant,
    may_as_staff,
    merchant_grant,
    needs_second_factor,
)
from tests.docs.tables import cells


def test_the_table_of_a_merchants_team_is_the_documented_one() -> None:
    words = {"both": "yes", "test": "test", "none": "–"}
    ours = {right: [words[merchant_grant(role, right)] for role in MERCHANT_ROLES] for right in MERCHANT_RIGHTS}
    assert cells("docs/security.md", "merchant-rights") == ours


def test_the_table_of_the_staff_is_the_documented_one() -> None:
    ours = {right: ["yes" if may_as_staff(role, right) else "–" for role in STAFF_ROLES] for right in STAFF_RIGHTS}
    assert cells("docs/security.md", "staff-rights") == ours


def test_a_right_in_test_only_says_nothing_about_live() -> None:
    assert may_as_merchant("developer", "payments.refund", "test")
    assert not may_as_merchant("developer", "payments.refund", "live")


@pytest.mark.parametrize("role", ["cashier", "developer", "reader"])
def test_who_need_not_have_a_second_factor_moves_no_money_in_live(role: str) -> None:
    moving = {"payments.refund", "keys.change", "team.change"}
    assert not any(may_as_merchant(role, right, "live") for right in MERCHANT_RIGHTS if right in moving)  # type: ignore[arg-type]
    assert not needs_second_factor(None, (role,))  # type: ignore[arg-type]


def test_every_right_that_needs_a_fresh_factor_exists() -> None:
    assert {*MERCHANT_RIGHTS, *STAFF_RIGHTS} >= STEP_UP_RIGHTS
