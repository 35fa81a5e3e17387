"""Fair shares: how many jobs of each owner (a merchant) may run at once in this process, learned from what its jobs do
(docs/decisions.md, "Fair webhooks").

- An owner has a window of jobs at once. It starts at FIRST_WINDOW, grows by one with each success up to a cap, and
  falls to one when a job times out.
- Owners whose last job timed out hold a quarter of all slots at most, together.
- Those, and owners of which nothing is known yet, hold three quarters at most, together.
- The last quarter of the slots is for owners that have fewer than FIRST_WINDOW jobs running: an owner whose server
  answers late, but always just in time, fills three quarters at most.

So an owner whose jobs are answered always finds a slot, however many others hang. All this is in memory and may be
lost: a new process learns it again with at most FIRST_WINDOW slow jobs of each owner.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

#: Jobs at once of an owner of which nothing is known yet.
FIRST_WINDOW: Final = 2


@dataclass(slots=True)
class _Owner:
    window: int = FIRST_WINDOW
    running: int = 0
    #: Whether its last job timed out; None as long as none has ended.
    timed_out: bool | None = None


class Shares(NamedTuple):
    """What a claim may take. `free`: jobs by owner; `unlisted_share`: jobs of each owner that it does not name;
    `in_timeout`: the owners of which a claim takes at most `in_timeout_free` jobs together."""

    free: dict[str, int]
    unlisted_share: int
    in_timeout: list[str]
    in_timeout_free: int


class FairShare:
    """The windows of all owners, and the slots that they hold. Its memory grows with the number of owners served."""

    def __init__(self, slots: int, cap: int) -> None:
        """`slots`: jobs of all owners at once. `cap`: the largest window."""
        self._cap = cap
        self._quarter = slots // 4
        self._limit = slots - self._quarter
        self._owners: dict[str, _Owner] = {}
        #: Owners with running jobs or in timeout: all others may have FIRST_WINDOW jobs in one claim.
        self._noted: set[str] = set()
        self._running = 0
        self._running_unproven = 0
        self._running_in_timeout = 0

    def shares(self) -> Shares:
        """Cost: the owners that have running jobs or are in timeout; all that are known while unproven ones hold all
        that they may."""
        crowded = self._running_unproven + self._running_in_timeout >= self._limit
        named = self._owners if crowded else self._noted
        free = {name: self._free(self._owners[name]) for name in named}
        in_timeout = [name for name in self._noted if self._owners[name].timed_out]
        return Shares(free, 0 if crowded else FIRST_WINDOW, in_timeout, self._in_timeout_free())

    def is_full(self, name: str) -> bool:
        """Whether no more jobs of this owner may be claimed now."""
        return self._free(self._owners.get(name) or _Owner()) == 0

    def reserve(self, name: str) -> bool:
        """Counts a job that starts without a claim; False if it may not. Its owner's server must be known to answer,
        and a claim made now must still find all that it may take: half of the owner's window, one claim's slots."""
        owner, claimed = self._owners.get(name) or _Owner(), self._cap // 2
        proven = owner.timed_out is False and owner.window >= claimed
        if not proven or owner.running >= owner.window // 2 or self._running >= self._limit - claimed:
            return False
        self.started(name)
        return True

    def started(self, name: str) -> None:
        owner = self._owners.get(name)
        if owner is None:
            owner = self._owners[name] = _Owner()
        self._noted.add(name)
        owner.running += 1
        self._running += 1
        self._count(owner, 1)

    def ended(self, name: str) -> None:
        owner = self._owners[name]
        owner.running -= 1
        self._running -= 1
        self._count(owner, -1)
        if not owner.running and not owner.timed_out:
            self._noted.discard(name)

    def learn(self, name: str, *, success: bool, timed_out: bool) -> None:
        """What a job of this owner that is about to end says about its server. `timed_out`: it used up all of its time,
        whatever it said."""
        owner = self._owners[name]
        if timed_out:
            owner.window = 1
        elif success:
            owner.window = min(owner.window + 1, self._cap)
        if owner.timed_out is not timed_out:  # Its running jobs count elsewhere from now on.
            self._count(owner, -owner.running)
            owner.timed_out = timed_out
            self._count(owner, owner.running)

    def running(self) -> dict[str, int]:
        """Running jobs by what is known of their owners: `answering`, `unproven`, `in_timeout`."""
        unproven, in_timeout = self._running_unproven, self._running_in_timeout
        return {
            "answering": self._running - unproven - in_timeout,
            "unproven": unproven,
            "in_timeout": in_timeout,
        }

    def _free(self, owner: _Owner) -> int:
        # Half of a window is claimed at a time: one query for each job that ends would cost more than the jobs.
        if owner.running > owner.window // 2:
            return 0
        window = owner.window
        if self._running >= self._limit:
            window = min(window, FIRST_WINDOW)
        if owner.timed_out:
            window = min(window, owner.running + self._in_timeout_free())
        elif owner.timed_out is None and self._running_unproven + self._running_in_timeout >= self._limit:
            return 0
        return max(0, window - owner.running)

    def _in_timeout_free(self) -> int:
        return max(0, self._quarter - self._running_in_timeout)

    def _count(self, owner: _Owner, jobs: int) -> None:
        if owner.timed_out is None:
            self._running_unproven += jobs
        elif owner.timed_out:
            self._running_in_timeout += jobs
