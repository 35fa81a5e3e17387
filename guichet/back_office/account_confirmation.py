"""Two people confirm that an account, which only its key names, is still the one that a payment or refund was sent to
(`payments/account_identity.py`). All that was sent there under the earlier key is then asked about, and sent again, as
before.

They confirm it of the key that was in the settings when the first one asked: with another one nothing is confirmed.
"""

from guichet.audit_log import entries as audit_log
from guichet.context import AppContext
from guichet.domain.approvals import ActRequest, Arguments
from guichet.domain.audit_log import Act, Actor, ActRefused
from guichet.domain.payments import Payment, Refund
from guichet.domain.refusals import Refusal
from guichet.incidents import repository as incidents
from guichet.payments import account_identity
from guichet.providers.base import Provider
from guichet.providers.shared.fingerprints import only_key_differs


def arguments(ctx: AppContext, subject: Payment | Refund) -> Arguments:
    """What a request for it states: the account, and the fingerprint of its present settings."""
    account = subject.provider_account or ""
    return {"account": account, "fingerprint": ctx.registry.provider(account).fingerprint or ""}


async def confirm(ctx: AppContext, subject: Payment | Refund, act_request: ActRequest, actor: Actor) -> None:
    """Raises ActRefused; also while the provider has never said whose the present key is."""
    account, former, provider = check(ctx, subject, act_request)
    current = await account_identity.current_identity(ctx, provider, account)
    if current is None:
        raise ActRefused(Refusal.ACCOUNT_UNREAD(account=account))
    present, identity = str(provider.fingerprint), current.identity or current.stated
    before = await account_identity.stored(ctx.db, account, former)
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        await account_identity.confirm(
            tx,
            account,
            former=former,
            former_identity=before and before.identity,
            current=present,
            identity=identity,
            now=now,
        )
        await incidents.close_of_account(tx, incidents.ACCOUNT_CHANGED, account, now)
        await audit_log.record(tx, _act(subject, act_request, actor, former), now)


def check(ctx: AppContext, subject: Payment | Refund, act_request: ActRequest) -> tuple[str, str, Provider]:
    """The account, the fingerprint under which the payment or refund was sent there, and the provider. Raises
    ActRefused where the settings say by themselves which account it is, or changed since."""
    account, former = subject.provider_account, subject.account_fingerprint
    if account is None or former is None:
        raise ActRefused(Refusal.NOT_SENT(reference=subject.reference))
    provider = ctx.registry.provider(account)
    present = provider.fingerprint or ""
    if not provider.identified_by_key or not (former == present or only_key_differs(former, present)):
        raise ActRefused(Refusal.ACCOUNT_NAMED(account=account))
    if act_request.arguments.get("account") != account or act_request.arguments.get("fingerprint") != present:
        raise ActRefused(Refusal.SETTINGS_CHANGED(account=account))
    return account, former, provider


def _act(subject: Payment | Refund, act_request: ActRequest, actor: Actor, former: str) -> Act:
    return Act(
        actor=actor,
        action="account.confirmed",
        subject_type=subject.subject_type,
        subject=subject.reference,
        merchant_id=subject.merchant_id,
        reason=act_request.reason,
        before={"fingerprint": former},
        after={"account": subject.provider_account, "fingerprint": act_request.arguments["fingerprint"]},
    )
