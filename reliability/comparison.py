"""What a comparison of the books found: differences, and what is still open for a reason."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from guichet.domain.payments import Payment, Refund


@dataclass
class Comparison:
    """`differences`: by kind, in words. `explained`: what is still open, and why, counted."""

    proof_expected: bool = True
    differences: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    explained: Counter[str] = field(default_factory=Counter)
    figures: Counter[str] = field(default_factory=Counter)
    #: Payments and refunds that wait without a reason: the provider may just need to be asked again.
    unexplained: list[Payment | Refund] = field(default_factory=list)
    #: Those that only people can end, and whether the provider moved the money.
    for_staff: list[tuple[Payment | Refund, bool]] = field(default_factory=list)
    #: Payments that failed and that a provider took all the same, without telling so yet.
    taken_untold: list[str] = field(default_factory=list)

    def differs(self, kind: str, detail: str) -> None:
        self.differences[kind].append(detail)

    @property
    def difference_count(self) -> int:
        return sum(map(len, self.differences.values()))


def rendered(found: Comparison, most: int = 10) -> list[str]:
    """The differences in lines, at most `most` of each kind."""
    lines: list[str] = []
    for kind, details in sorted(found.differences.items()):
        lines.append(f"{len(details)} × {kind}")
        lines += [f"    {detail}" for detail in details[:most]]
    return lines


def print_comparison(found: Comparison) -> bool:
    """Prints what is open, and every kind of difference; whether there is none."""
    for reason, count in sorted(found.explained.items()):
        print(f"  {count} × {reason}")
    for line in rendered(found):
        print(line if line.startswith(" ") else f"✗ {line}")
    if not found.difference_count:
        print("✓ The providers’ books, ours and the merchants’ agree: nothing lost, nothing debited twice.")
    return not found.difference_count
