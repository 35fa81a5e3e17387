"""The comparison of a provider's statement with our ledger, as `guichet reconcile` makes it."""

import asyncio
import hashlib
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final, Literal

from msgspec import Struct, field

from guichet.clock import DAY, Instant, later
from guichet.context import AppContext
from guichet.domain.messages import Answer
from guichet.domain.payments import SUBJECT_TYPES, SubjectType
from guichet.domain.reconciliation import MATCHED, Finding
from guichet.domain.records import Record
from guichet.ledger.provider_statement import ProviderStatement, StatementFormat, read_statement
from guichet.ledger.reconciliation_runs import KEPT
from guichet.providers.account_review import NoHistory, UnreadableHistory, histories_of

#: Bytes of a file that the page takes, and its lines.
MAX_STATEMENT: Final = 5 * 1024 * 1024
MAX_LINES: Final = 100_000


class StatementFile(Struct, frozen=True):
    """A file that somebody uploaded. `size`: bytes before it was compressed; `sha256`: of those, in hexadecimal."""

    compressed: bytes
    size: int
    sha256: str

    @classmethod
    def of(cls, content: bytes) -> "StatementFile":
        """5 MiB take a third of a second."""
        return cls(zlib.compress(content), len(content), hashlib.sha256(content).hexdigest())

    def content(self) -> bytes:
        return zlib.decompress(self.compressed)


class CompareStatement(Struct, frozen=True, tag="compare_statement"):
    """`account`: a provider or the name of an account. `file`: None to ask the provider for its history. `columns`,
    `words`: what the person said of the file (`StatementFormat`). `only`: None to compare payments and refunds. Without
    `since` and `until`, both included, the period is that of the file."""

    account: str
    file: StatementFile | None
    columns: dict[str, str]
    words: dict[str, str]
    only: SubjectType | None
    since: Instant | None
    until: Instant | None

    def written(self, provider: str) -> StatementFormat:
        return StatementFormat(provider, self.columns, self.words)


class NothingCompared(Record, frozen=True):
    """`account_gone`: it has left the providers' file since; `no_history`: its provider lists nothing;
    `unreadable_history`: `raw` is what the provider answered."""

    reason: Literal["account_gone", "no_history", "unreadable_history"]
    account: str
    raw: Answer = ""


class ComparedStatement(Record, frozen=True):
    """`lines`: of the statement, without those that are ignored. `counts`: findings by outcome; `found`: the first
    KEPT that do not match. `problem`: why there is none of these."""

    since: Instant | None
    until: Instant | None
    lines: int = 0
    ignored: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    found: list[Finding] = field(default_factory=list)
    problem: NothingCompared | None = None


async def compare_statement(ctx: AppContext, task: CompareStatement) -> ComparedStatement:
    """Nothing is written, so it may be done again. Raises UnreadableStatement."""
    from guichet.ledger.reconciliation import reconcile  # noqa: PLC0415 - a worker rarely compares

    nothing = partial(ComparedStatement, task.since, task.until)
    accounts = ctx.providers.accounts_of(task.account)
    if not accounts:
        return nothing(problem=NothingCompared("account_gone", task.account))
    try:
        statement = await _statement(ctx, task, accounts)
    except NoHistory as error:
        return nothing(problem=NothingCompared("no_history", error.provider_account))
    except UnreadableHistory as error:
        return nothing(problem=NothingCompared("unreadable_history", error.provider_account, error.raw))
    since, until = task.since or statement.since, task.until or statement.until
    kinds = [kind for kind in SUBJECT_TYPES if task.only in (None, kind)]
    counts: Counter[str] = Counter()
    mismatches: list[Finding] = []
    async for finding in reconcile(ctx.db, statement.lines, accounts, since, until, kinds, lambda _: None):
        counts[finding.outcome] += 1
        if finding.outcome != MATCHED and len(mismatches) < KEPT:
            mismatches.append(finding)
    return ComparedStatement(since, until, len(statement.lines), statement.ignored, dict(counts), mismatches)


async def _statement(ctx: AppContext, task: CompareStatement, accounts: Sequence[str]) -> ProviderStatement:
    if task.file is not None:
        content = await asyncio.to_thread(task.file.content)
        return await read_statement(content, task.written(ctx.providers.accounts[accounts[0]].provider))
    return await fetched_statement(ctx, accounts, task.since or ctx.clock.now(), task.until)


async def fetched_statement(
    ctx: AppContext, accounts: Sequence[str], since: Instant, until: Instant | None
) -> ProviderStatement:
    """What these accounts list of the period, at most until tomorrow. Raises NoHistory, UnreadableHistory."""
    now = ctx.clock.now()
    until = min(until or now, later(now, DAY))
    lines = await histories_of(ctx.registry, accounts, since, until, ctx.settings.callback_url)
    return ProviderStatement(lines, 0, since, until)
