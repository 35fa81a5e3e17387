"""The share of each owner: its window, and the slots that slow owners hold together."""

from guichet.db.queues.fair_share import FIRST_WINDOW, FairShare

SLOTS = 64
CAP = 16


def started(share: FairShare, name: str) -> int:
    """Starts as many jobs as the share of this owner allows; their number."""
    shares = share.shares()
    free = shares.free.get(name, shares.unlisted_share)
    if name in shares.in_timeout:
        free = min(free, shares.in_timeout_free)
    for _ in range(free):
        share.started(name)
    return free


def end(share: FairShare, name: str, jobs: int = 1, *, success: bool = False, timed_out: bool = False) -> None:
    for _ in range(jobs):
        share.learn(name, success=success, timed_out=timed_out)
        share.ended(name)


def test_a_window_grows_with_each_success_up_to_the_cap() -> None:
    share = FairShare(SLOTS, CAP)
    sizes = []
    for _ in range(CAP):
        jobs = 0
        while more := started(share, "a"):
            jobs += more
        sizes.append(jobs)
        end(share, "a", success=True)
        end(share, "a", jobs - 1)  # Refused: it says nothing about how many the server can take.
    # An idle owner gets FIRST_WINDOW in its first claim, and the rest of its window while at most half of it is taken.
    assert sizes == [2, 2, *range(4, CAP), CAP, CAP]


def test_a_timeout_leaves_one_job_at_once_until_something_is_answered() -> None:
    share = FairShare(SLOTS, CAP)
    for _ in range(8):
        end(share, "a", started(share, "a"), success=True)
    jobs = started(share, "a") + started(share, "a")
    assert jobs > FIRST_WINDOW
    end(share, "a", timed_out=True)
    assert started(share, "a") == 0, "the others are still running"
    end(share, "a", jobs - 1, timed_out=True)
    assert started(share, "a") == 1
    assert started(share, "a") == 0
    end(share, "a", success=True)
    assert started(share, "a") == 2


def test_owners_in_timeout_hold_a_quarter_together() -> None:
    share = FairShare(SLOTS, CAP)
    names = [f"slow{number}" for number in range(SLOTS)]
    for name in names:
        share.started(name)
        end(share, name, timed_out=True)
    assert sum(started(share, name) for name in names) == SLOTS // 4
    assert share.running() == {"answering": 0, "unproven": 0, "in_timeout": SLOTS // 4}
    assert share.shares().in_timeout_free == 0
    end(share, names[0], timed_out=True)
    assert not share.is_full(names[-1]), "the slot that became free is for any of them"


def test_owners_of_which_nothing_is_known_leave_a_quarter_to_those_that_answer() -> None:
    share = FairShare(SLOTS, CAP)
    for _ in range(CAP):
        end(share, "good", started(share, "good"), success=True)
    assert sum(started(share, f"new{number}") for number in range(SLOTS)) == 3 * SLOTS // 4
    assert started(share, "good") > 0
    assert started(share, "one more") == 0


def test_the_last_quarter_is_for_owners_with_few_jobs() -> None:
    """Servers that answer just in time never time out, and still do not fill the process."""
    share = FairShare(SLOTS, CAP)
    for name in "abcdefgh":
        for _ in range(2 * CAP):
            end(share, name, started(share, name), success=True)
    for _ in range(CAP):
        for name in "abcdefgh":
            started(share, name)
    assert 3 * SLOTS // 4 <= sum(share.running().values()) < SLOTS
    assert started(share, "new") == FIRST_WINDOW


def test_nothing_is_kept_of_jobs_that_ended() -> None:
    share = FairShare(SLOTS, CAP)
    for _ in range(3):
        end(share, "a", started(share, "a"), success=True)
        end(share, "b", started(share, "b"), timed_out=True)
    end(share, "b", started(share, "b"))
    assert share.running() == {"answering": 0, "unproven": 0, "in_timeout": 0}
    assert share.shares().free == {}
