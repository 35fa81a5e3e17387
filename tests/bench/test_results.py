"""The table of results: the ratio of paired rounds, its spread, and what stood in the row at the last landing."""

from bench.results import Rows
from bench.rounds import Ratio, paired

LANDED = """\
# What was measured

| Measure | Must reach | Measured | Reached |
|---|---|---|---|
| a POST | ≥ 6 × the usual way | 16.93 × | yes |
| the same | ≥ 1 × a bare handler | 1.27 × | yes |
| the same, with its worker | ≥ 0.7 × a bare handler | 0.87 × | yes |
| another POST | the ratio to a bare handler | 0.77 × |  |
| start to first 201 | seconds | 1.21 s |  |
""".splitlines()


def _last_cell(line: str) -> str:
    return line.split("|")[-2].strip()


def test_a_row_stands_beside_that_of_the_last_landing_whatever_it_must_reach_now() -> None:
    rows = Rows(LANDED)
    steady = Ratio(1.5, 0.02, 1500, 1000)
    rows.ratio("a POST", "the usual way", steady, 5)
    rows.ratio("the same", "a bare handler", steady, 1.4)
    rows.ratio("the same", "a peer that is new", steady, None)
    rows.ratio("the same, with its worker", "a bare handler", steady, 1.0)
    rows.ratio("another POST", "a bare handler", steady, None)
    rows.ratio("the same, with its worker", "a bare handler", steady, None)
    rows.add("start to first 201", "≤ 0.9 s", "0.80 s", True)
    assert list(map(_last_cell, rows.lines)) == ["16.93 ×", "1.27 ×", "", "0.87 ×", "0.77 ×", "", "1.21 s"]


def test_the_results_of_one_landing_are_read_at_the_next() -> None:
    first, second = Rows(LANDED), Rows()
    for rows in (first, second):
        rows.add("start to first 201", "≤ 0.9 s", "0.80 s", True)
    after = Rows(first.lines)
    after.add("start to first 201", "≤ 0.7 s", "0.60 s", True)
    assert (_last_cell(second.lines[0]), _last_cell(after.lines[0])) == ("", "0.80 s")


def test_a_ratio_is_the_median_of_the_rounds_and_a_wide_one_says_so() -> None:
    # The machine was slow in one round: both rates say so, their ratio does not.
    steady = paired([1400, 700, 1400], [1000, 500, 1000])
    wide = paired([1400, 700, 1400], [1000, 600, 800])
    assert (steady.times, steady.spread, steady.mine, steady.other) == (1.4, 0, 1400, 1000)
    assert round(wide.spread, 2) == round((1.75 - 700 / 600) / 1.4, 2)
    rows = Rows()
    rows.ratio("a POST", "a bare handler", steady, 1.4)
    rows.ratio("another POST", "a bare handler", wide, 1.5)
    assert rows.lines == [
        "| a POST | ≥ 1.4 × a bare handler | 1.40 × (1,400/s against 1,000/s) | yes |  |",
        "| another POST | ≥ 1.5 × a bare handler | 1.40 × (1,400/s against 800/s), **spread 42%** | **no** |  |",
    ]
