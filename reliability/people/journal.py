"""What the people of a trial asked the console for: compared with its tables and its audit log (`books.py`)."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from guichet.domain.ids import MerchantId
from guichet.domain.staff_jobs import StaffJobKind


@dataclass
class Deed:
    """An act that somebody asked for: `action` as the audit log calls it, `about` what names it there and in its table.

    It was done `least` times, as answers or a second look said, and `most` times if each form without an answer did it.
    """

    action: str
    about: str
    who: str
    least: int = 0
    most: int = 0


@dataclass(frozen=True, slots=True)
class WantedExport:
    """An export that was confirmed: who may download it."""

    email: str
    path: str


@dataclass(frozen=True, slots=True)
class ForgottenCustomer:
    """Whom a form anonymises. `paid`: references of their payments that were acknowledged before it was sent."""

    merchant_id: MerchantId
    phone_number: str
    paid: frozenset[str]


@dataclass(frozen=True, slots=True)
class AskedJob:
    """A job of the staff that somebody was shown. `facts`: what the audit log must say of it. `at_rest`: nothing was
    killed and no money moved any more."""

    kind: StaffJobKind
    path: str
    who: str
    facts: Mapping[str, str]
    forgets: ForgottenCustomer | None
    at_rest: bool


@dataclass
class PeopleJournal:
    deeds: dict[tuple[str, str], Deed] = field(default_factory=dict)
    #: Exports by their own address (`/console/<merchant>/<env>/exports/<id>/file`): downloads that came whole.
    downloads: Counter[str] = field(default_factory=Counter)
    #: Jobs of the staff by their number.
    jobs: dict[int, AskedJob] = field(default_factory=dict)
    #: By the evidence that was typed: every anonymisation that was asked for, answered or not.
    forgotten: dict[str, ForgottenCustomer] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    #: What must never happen, in words.
    faults: list[str] = field(default_factory=list)

    def deed(self, action: str, about: str, who: str) -> Deed:
        return self.deeds.setdefault((action, about), Deed(action, about, who))

    def done(self, action: str, about: str, who: str) -> None:
        """Something that was done once, for sure."""
        deed = self.deed(action, about, who)
        deed.least = deed.most = 1
