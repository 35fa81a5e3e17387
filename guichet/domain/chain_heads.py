"""Heads of the two hash chains, as they leave the machine and as they come back to be compared.

One line is one JSON object, the same in the log, in the file and in the body of the POST:

    {"event":"ledger.head","at":"2026-11-20T10:15:30.123456Z","database":"…","posting_id":812,"link":31,"digest":"…",
     "act":7,"act_digest":"…"}

`posting_id` is the last posting that the ledger's chain covered, `link` the id of its last link; `act` is the number
of the last entry of the audit log. A chain without a row has 0 and a digest of zeros. Other members are ignored: a log
adds its own.

What is wrong with one of the two hash chains: the audits print it, rows of `ledger_audits` keep it, the back office
says it in the reader's language.

`origin`: who knows a head, another message of these. `chain_fault`: why heads cannot be compared, another one.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from guichet.domain.messages import Code, Message
from guichet.domain.records import Record


class ChainFault(Code):
    ENTRY_MISSING = "chain_fault.entry_missing", "number"
    ENTRY_CHANGED = "chain_fault.entry_changed", "number"
    ENTRIES_MISSING = "chain_fault.entries_missing", "number", "end"
    LEDGER_CUT = "chain_fault.ledger_cut", "end", "origin", "place"
    LEDGER_REWRITTEN_AT = "chain_fault.ledger_rewritten_at", "origin", "digest", "place"
    LEDGER_REWRITTEN = "chain_fault.ledger_rewritten", "origin", "digest"
    LOG_CUT = "chain_fault.log_cut", "end", "origin", "place"
    LOG_REWRITTEN_AT = "chain_fault.log_rewritten_at", "origin", "digest", "place"
    LOG_REWRITTEN = "chain_fault.log_rewritten", "origin", "digest"
    NOT_COMPARABLE = "chain_fault.not_comparable", "chain_fault"
    NO_HEAD = "chain_fault.no_head", "file", "line", "error"
    OTHER_DATABASE = "chain_fault.other_database", "file", "other", "at", "database"
    # Who knows a head.
    TYPED_HEAD = "chain_fault.typed_head"
    OWN_HEAD = "chain_fault.own_head"
    LAST_HEAD = "chain_fault.last_head"
    PUBLISHED_HEAD = "chain_fault.published_head", "at"
    AUDITED_HEAD = "chain_fault.audited_head", "at"


EVENT: Final = "ledger.head"

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class ChainHeads(Record, frozen=True):
    """Where both chains ended at one time. `at` is ISO 8601; `database` is the database's id."""

    event: Literal["ledger.head"]
    at: str
    database: str
    posting_id: _Count
    link: _Count
    digest: _Digest
    act: _Count
    act_digest: _Digest


class KnownHead(Record, frozen=True):
    """A digest that a chain must still contain. `place`: the posting or the entry that it ends with, None if unknown;
    `origin`: who knows it, for the message of a fault ("the head published at …")."""

    digest: str
    place: int | None
    origin: Message


class KnownHeads(Record, frozen=True):
    """The known heads of the ledger's chain and of the audit log's. `fault`: why they cannot all be
    compared."""

    ledger: tuple[KnownHead, ...] = ()
    acts: tuple[KnownHead, ...] = ()
    fault: Message | None = None


class UnreadableHead(ValueError):
    """A line is not a head: `message` says which line, and why."""

    def __init__(self, message: Message) -> None:
        super().__init__(message)
        self.message = message


def read_heads(lines: Iterable[bytes], source: str) -> Iterator[ChainHeads]:
    """The heads of a file, one a line; empty lines are passed over. Raises UnreadableHead: a line that cannot be read
    must not count as compared."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield _DECODE(line)
            except msgspec.DecodeError as error:
                raise UnreadableHead(ChainFault.NO_HEAD(file=source, line=number, error=str(error))) from None


_DECODE: Final = msgspec.json.Decoder(ChainHeads).decode


class ChainFaults(NamedTuple):
    """How one of the chains says that it is shorter than a known head, or lacks one (whose place is known, or not)."""

    cut: ChainFault
    rewritten_at: ChainFault
    rewritten: ChainFault


LEDGER_FAULTS: Final = ChainFaults(ChainFault.LEDGER_CUT, ChainFault.LEDGER_REWRITTEN_AT, ChainFault.LEDGER_REWRITTEN)
LOG_FAULTS: Final = ChainFaults(ChainFault.LOG_CUT, ChainFault.LOG_REWRITTEN_AT, ChainFault.LOG_REWRITTEN)


class HeadComparison:
    """Finds out which known heads a chain does not contain, while somebody reads the chain from its beginning.

    Memory: the known heads, not the chain.
    """

    def __init__(self, known: Iterable[KnownHead], faults: ChainFaults) -> None:
        self._faults = faults
        self._end = 0
        self._missing: dict[str, list[KnownHead]] = {}
        for head in known:
            if head.place != 0:  # The chain was empty then: it contains nothing to be compared.
                self._missing.setdefault(head.digest, []).append(head)

    def reached(self, place: int, digest: str) -> None:
        """The chain has this digest at this posting or entry."""
        self._end = place
        if digest in self._missing:
            others = [head for head in self._missing.pop(digest) if head.place not in (None, place)]
            if others:
                self._missing[digest] = others

    @property
    def fault(self) -> Message | None:
        """About a head that is missing once the whole chain was read; None if there is none."""
        missing = [head for heads in self._missing.values() for head in heads]
        beyond = [(head.place, head) for head in missing if head.place is not None and head.place > self._end]
        if beyond:
            place, head = max(beyond, key=lambda pair: pair[0])
            return self._faults.cut(end=self._end, origin=head.origin, place=place)
        if missing:
            head = min(missing, key=lambda head: head.place or 0)
            if head.place is None:
                return self._faults.rewritten(origin=head.origin, digest=head.digest)
            return self._faults.rewritten_at(origin=head.origin, digest=head.digest, place=head.place)
        return None
