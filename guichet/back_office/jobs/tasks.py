"""What each kind of job is asked with, the function of the command that does it, and its result."""

from typing import Final

import msgspec
from msgspec import Struct

from guichet.back_office.aggregated_merchants import NamedAtWave, NameWaveMerchants, name_wave_merchants
from guichet.back_office.anonymisation import Anonymised, CustomerKeys, anonymise_customer
from guichet.back_office.jobs.statement_comparison import ComparedStatement, CompareStatement, compare_statement
from guichet.clock import Instant
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.audit_log import Actor
from guichet.domain.messages import Answer
from guichet.domain.records import Record
from guichet.domain.staff_jobs import StaffJob, StaffJobKind
from guichet.ledger.margin import Margin, margins
from guichet.providers.account_review import BalanceLine, balance_lines, findings_of, probe_accounts
from guichet.providers.providers_file import ProvidersConfig
from guichet.providers.shared.account_checks import Finding


class AnonymiseCustomer(Struct, frozen=True, tag="anonymise_customer"):
    phone_number: str | None
    email: str | None
    reason: str


class LedgerMargin(Struct, frozen=True, tag="ledger_margin"):
    """Both instants are included."""

    since: Instant
    until: Instant


class ProviderCheck(Struct, frozen=True, tag="provider_check"):
    #: The account's name; None for all.
    account: str | None = None


class ProviderDeepCheck(Struct, frozen=True, tag="provider_deep_check"):
    account: str | None = None


class ProviderBalances(Struct, frozen=True, tag="provider_balances"):
    account: str | None = None


AboutAccounts = ProviderCheck | ProviderDeepCheck | ProviderBalances
Task = AnonymiseCustomer | LedgerMargin | CompareStatement | NameWaveMerchants | AboutAccounts


class Margins(Record, frozen=True):
    since: Instant
    until: Instant
    rows: list[Margin]


class CheckedAccount(Record, frozen=True):
    """`answer`: `ok` or what is wrong, of a check; `findings`: of a deep one."""

    name: str
    provider: str
    base_url: str
    answer: Answer | None = None
    findings: list[Finding] | None = None


class CheckedAccounts(Record, frozen=True):
    """`routes`: for each operator the accounts, in order."""

    accounts: list[CheckedAccount]
    routes: dict[str, list[str]]


class ReadBalances(Record, frozen=True):
    rows: list[BalanceLine]


Result = Anonymised | Margins | CheckedAccounts | ReadBalances | ComparedStatement | NamedAtWave
_RESULTS: Final[dict[StaffJobKind, type[Result]]] = {
    "anonymise_customer": Anonymised,
    "ledger_margin": Margins,
    "provider_check": CheckedAccounts,
    "provider_deep_check": CheckedAccounts,
    "provider_balances": ReadBalances,
    "compare_statement": ComparedStatement,
    "wave_merchants": NamedAtWave,
}


def kind_of(task: Task) -> StaffJobKind:
    kind: StaffJobKind = task.__struct_config__.tag  # type: ignore[assignment]
    return kind


def read_task(text: bytes) -> Task:
    task: Task = msgspec.json.decode(text, type=Task)
    return task


def read_result(kind: StaffJobKind, text: bytes) -> Result:
    return msgspec.json.decode(text, type=_RESULTS[kind])


async def run_task(ctx: AppContext, job: StaffJob, task: Task, actor: Actor) -> Result:
    """Does what the command of the same name does. Doing it again after a worker that died changes nothing else."""
    match task:
        case AnonymiseCustomer():
            customer = CustomerKeys(task.phone_number, task.email)
            return await anonymise_customer(ctx.db, ctx.clock, require(job.merchant_id), customer, actor, task.reason)
        case LedgerMargin():
            by_operator = await margins(ctx.db, task.since, task.until)
            return Margins(task.since, task.until, [*by_operator.values()])
        case CompareStatement():
            return await compare_statement(ctx, task)
        case NameWaveMerchants():
            return await name_wave_merchants(ctx, task)
        case ProviderBalances():
            return ReadBalances(await balance_lines(ctx.registry, ctx.providers, _accounts(ctx.providers, task)))
        case ProviderCheck() | ProviderDeepCheck():
            return await _check(ctx, task)


async def _check(ctx: AppContext, task: ProviderCheck | ProviderDeepCheck) -> CheckedAccounts:
    names = _accounts(ctx.providers, task)
    answers: dict[str, Answer] = {}
    findings: dict[str, list[Finding]] = {}
    if isinstance(task, ProviderDeepCheck):
        findings = await findings_of(ctx.registry, ctx.providers, names, ctx.settings.public_url)
    else:
        answers = await probe_accounts(ctx.registry, names)
    accounts = [
        CheckedAccount(name, account.provider, account.base_url, answers.get(name), findings.get(name))
        for name in names
        for account in (ctx.providers.accounts[name],)
    ]
    return CheckedAccounts(accounts, {code: list(route) for code, route in ctx.providers.routes.items()})


def _accounts(providers: ProvidersConfig, task: AboutAccounts) -> list[str]:
    """None if the account has left the providers' file since."""
    return [name for name in providers.accounts if task.account in (None, name)]
