"""References: UUIDs of version 4's form that rise with time."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from guichet.clock import Instant, SystemClock, later
from guichet.db.references import new_reference

INSTANTS = st.integers(0, 4_102_444_800_000_000).map(Instant)  # until 2100


@given(INSTANTS)
def test_references_have_the_form_of_uuid_version_4(now: Instant) -> None:
    reference = new_reference(now)
    parsed = UUID(reference)
    assert str(parsed) == reference
    assert (parsed.version, parsed.variant) == (4, UUID(int=1 << 63 | 4 << 76).variant)


@given(INSTANTS, st.integers(1000, 10**12))
def test_later_references_sort_after_earlier_ones(now: Instant, duration: int) -> None:
    assert new_reference(now) < new_reference(later(now, duration))


def test_references_of_one_instant_differ() -> None:
    now = SystemClock().now()
    assert len({new_reference(now) for _ in range(100_000)}) == 100_000
