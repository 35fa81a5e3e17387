"""Token buckets: as many as the burst at once, then as many as come back."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from guichet.clock import SECOND
from guichet.domain import token_buckets
from guichet.domain.token_buckets import TokenBuckets

#: A key, and the microseconds since the take before.
TAKES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3 * SECOND)), max_size=60)


@given(TAKES, st.integers(1, 5), st.sampled_from((0.5, 1.0, 10.0, 20.0)))
def test_tokens_are_taken_and_come_back(takes: list[tuple[str, int]], burst: int, per_second: float) -> None:
    """The same as counting tokens and fractions of tokens, as the definition does."""
    buckets = TokenBuckets(burst=burst, per_second=per_second)
    left = {key: (Fraction(burst), 0) for key in "ab"}
    now = 0
    for key, passed in takes:
        now += passed
        tokens, since = left[key]
        tokens = min(Fraction(burst), tokens + Fraction(now - since) * Fraction(per_second) / SECOND)
        assert buckets.take(key, now) == (tokens >= 1)
        left[key] = (tokens - (tokens >= 1), now)


def test_the_keys_that_are_remembered_have_a_bound() -> None:
    buckets = TokenBuckets(burst=1, per_second=1)
    most = token_buckets._MOST_KEYS
    assert buckets.take(0, 0)
    assert all(buckets.take(number, 0) for number in range(1, most))
    assert not buckets.take(0, 0), "as many are remembered"
    assert buckets.take(most, 0)
    assert buckets.take(0, 0), "one more, and all before it are forgotten"
    assert not buckets.take(most, 0)
    assert len(buckets._full_at) == 2
