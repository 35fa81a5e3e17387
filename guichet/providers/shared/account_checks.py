"""What `guichet providers check --deep` finds out about an account: findings, and what providers share to make them."""

from collections.abc import Collection
from typing import Literal, Protocol, runtime_checkable

from guichet.domain.messages import Amount, Answer, Message, verbatim
from guichet.domain.records import Record
from guichet.providers.base import Unknown
from guichet.providers.capabilities import FloatBalance
from guichet.providers.shared.account_findings import AccountFinding, AccountSubject
from guichet.providers.shared.client import ProviderAccount, ProviderResponse

#: `unchecked`: nothing is known to be wrong, but a person must look, or there is nothing to check.
FindingState = Literal["ok", "wrong", "unchecked"]


class Finding(Record, frozen=True):
    """One thing that was looked at, and what there is to say about it."""

    subject: Message
    state: FindingState
    message: Message


class AccountSetup(Record, frozen=True):
    """The account, the operators whose routes lead to it, and our own address."""

    account: ProviderAccount
    operators: Collection[str]
    public_url: str

    @property
    def callback_addresses(self) -> tuple[str, str]:
        """Either may be entered where the provider has one address: of all accounts of its type, or of this one."""
        names = (self.account.provider, self.account.name)
        return (f"{self.public_url}/providers/{names[0]}/callback", f"{self.public_url}/providers/{names[1]}/callback")


@runtime_checkable
class ChecksAccount(Protocol):
    """A provider that tells about its account through calls that move no money."""

    async def check_account(self, setup: AccountSetup) -> list[Finding]: ...


def ok(subject: Message, message: Message) -> Finding:
    return Finding(subject, "ok", message)


def wrong(subject: Message, message: Message) -> Finding:
    return Finding(subject, "wrong", message)


def unchecked(subject: Message, message: Message) -> Finding:
    return Finding(subject, "unchecked", message)


def no_call(subject: Message, message: Message) -> Finding:
    return unchecked(subject, AccountFinding.NO_CALL(why=message))


def answered(subject: Message, result: ProviderResponse, message: Message) -> Finding:
    """`message` after a 2xx; else what came back."""
    return ok(subject, message) if result.ok else wrong(subject, verbatim(result.raw))


def probed(answer: Answer, message: Message) -> Finding:
    """`message` after a probe that was answered `ok`; else what came back."""
    subject = AccountSubject.CREDENTIALS()
    return ok(subject, message) if answer == "ok" else wrong(subject, verbatim(answer))


def balances_read(balances: list[FloatBalance] | Unknown) -> Finding:
    if isinstance(balances, Unknown):
        return wrong(AccountSubject.BALANCES(), verbatim(balances.raw))
    if not balances:
        return ok(AccountSubject.BALANCES(), AccountFinding.NO_BALANCE())
    return ok(AccountSubject.BALANCES(), AccountFinding.BALANCES(balances=[_balance(balance) for balance in balances]))


def _balance(float_balance: FloatBalance) -> Message | Amount:
    balance = Amount(float_balance.amount, float_balance.currency)
    return AccountFinding.BALANCE_OF(wallet=float_balance.wallet, balance=balance) if float_balance.wallet else balance


def callback_address_is_ours(subject: Message, address: object, setup: AccountSetup) -> Finding:
    """The address that the provider has is one of ours."""
    our_address = setup.callback_addresses[0]
    if not isinstance(address, str) or not address:
        return wrong(subject, AccountFinding.ADDRESS_UNSET(address=our_address))
    if address.rstrip("/") in setup.callback_addresses:
        return ok(subject, AccountFinding.ADDRESS_SET(address=address))
    return wrong(subject, AccountFinding.ADDRESS_WRONG(other=address, address=our_address))
