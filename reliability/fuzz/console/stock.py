"""What two merchants have, in both environments, made by the service's own functions: payments, refunds, links, keys,
webhooks, and what the staff keeps about them.

Everything of a merchant holds its `word`: that of the foreign one must never be seen by the other's team.
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import msgspec
from sqlalchemy import insert

from guichet.accounts import approvals
from guichet.back_office import merchants, money_acts
from guichet.back_office.jobs.statement_comparison import ComparedStatement
from guichet.back_office.merchant_file import add_document, add_note
from guichet.back_office.merchants import create_merchant
from guichet.clock import DAY, HOUR, SECOND
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.db.tables import api_requests, exports, passkeys, reconciliation_runs, staff_jobs
from guichet.domain.accounts import User
from guichet.domain.approvals import ActRequest
from guichet.domain.audit_log import CONSOLE, Actor
from guichet.domain.merchants import ENVS, Caller, Environment, Merchant
from guichet.domain.messages import verbatim
from guichet.domain.money import Hundredths
from guichet.domain.payments import CONFIRMED, REFUSED, Payment, Settlement
from guichet.domain.reconciliation import MISSING_HERE, Finding, Line
from guichet.incidents import repository as incidents
from guichet.links.links import cash_desk_link, create_link, requested_link
from guichet.merchants import api_keys
from guichet.payments import repository
from guichet.payments.create import create_payment
from guichet.payments.settlement import settle_payments
from guichet.refunds.automatic import after_link_payments
from guichet.refunds.request import request_refund
from guichet.schemas.payment import Customer, PaymentBody
from guichet.webhooks import endpoints
from tests.db.rows import EXPORT, PASSKEY, REQUEST, RUN, STAFF_JOB

#: What an address names, by the part of the path before the parameter, and its name: "links/link". Values are as they
#: stand in addresses.
Ids = dict[str, list[str]]
_STAFF: Final = Actor("Paul", "root")
#: Beginnings of cells that a spreadsheet would calculate, and markup, in what customers and merchants may write.
_DANGEROUS: Final = ('=HYPERLINK("http://evil.example")', "+1+1", "@SUM(A1)", "-2+3", "<img src=x onerror=zq7(1)>")

#: What a template would calculate, a terminal obey, and a page show from right to left.
_HOSTILE: Final = "{{6007*7}} \x1b[31m \u202e0005"


@dataclass(frozen=True)
class Stock:
    """`fields`: values of hidden fields by name, such as `key`. `names`: what differs between two runs, by name."""

    merchant: Merchant
    word: str
    by_env: dict[Environment, Ids] = field(default_factory=dict)
    of_staff: Ids = field(default_factory=dict)
    fields: Ids = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    @property
    def base(self) -> str:
        return f"/console/{self.merchant.id}"


async def stock(ctx: AppContext, name: str, word: str, phone_number: str, payments: int) -> Stock:
    """`payments`: in each environment. `phone_number`: every customer's, of MTN Benin."""
    merchant, _ = await create_merchant(ctx, name)
    made = Stock(merchant, word)
    for env in ENVS:
        caller = Caller(merchant, env)
        ids = made.by_env[env] = await _payments(ctx, caller, word, phone_number, payments)
        for kind, values in ids.items():
            made.names.update({f"{word}_{env}_{kind}_{number}": value for number, value in enumerate(values)})
        ids |= await _links(ctx, caller, word)
        await endpoints.configure(
            ctx.db, ctx.vault, merchant.id, env, f"https://{word}.example/hook", ctx.clock.now(), rotate=False
        )
        deliveries = [
            require(await endpoints.queue_test(ctx.db, merchant.id, env, ctx.clock.now(), Actor(word, "console")))
            for _ in range(3)
        ]
        ids["deliveries/reference"] = [each.reference for each in deliveries]
        await _keys(ctx, made, env)
    await _file(ctx, made)
    return made


async def _payments(ctx: AppContext, caller: Caller, word: str, phone_number: str, count: int) -> Ids:
    """One failed, one is refunded, one of live is pending, all others succeeded."""
    catalogue, made = await ctx.catalogues.of(caller.merchant.id), []
    for number in range(count):
        wanted = PaymentBody.model_construct(
            amount=Hundredths((1000 + number) * 100),
            currency="XOF",
            operator="mtn",
            phone_number=phone_number,
            customer=Customer.model_construct(firstname=word, lastname=_DANGEROUS[number % len(_DANGEROUS)]),
            description=f"{_DANGEROUS[number % len(_DANGEROUS)]} {word} {_HOSTILE}",
            external_id=f"{word}-{number}",
            metadata=json.dumps({"note": word}),
        )
        made.append((await create_payment(ctx, caller, wanted)).payment)
    now = ctx.clock.now()
    ended = [
        Settlement(
            payment,
            REFUSED if number == 0 else CONFIRMED,
            catalogue,
            now,
            ctx.registry.float_account(payment, payment),
            failure_reason="expired" if number == 0 else None,
        )
        for number, payment in enumerate(made[:-1] if caller.env == "live" else made)
    ]
    follow = partial(after_link_payments, f"{ctx.settings.public_url}/pay")
    settled = [
        each for each in await settle_payments(ctx.db, ctx.hand_over, follow, ended) if isinstance(each, Payment)
    ]
    await request_refund(ctx, require(await repository.by_id(ctx.db, settled[-1].id)), word, Actor(word, "console"))
    references = [each.reference for each in (*settled[:3], *settled[-1:], made[-1])]
    return {"payments/reference": references, "payments/payment": [str(made[1].id), str(made[-1].id)]}


async def _links(ctx: AppContext, caller: Caller, word: str) -> Ids:
    wanted = {"amount": 2500, "description": f"<b>zq7 {word}</b> {_HOSTILE}", "external_id": f"lien-{word}"}
    new_link = requested_link(ctx.clock, ctx.settings, caller, json.dumps(wanted).encode())
    link = await create_link(ctx.db, caller, new_link)
    sale = {"amount": 1500, "description": f"caisse {word} {_HOSTILE}", "external_id": f"caisse-{word}"}
    desk = await create_link(ctx.db, caller, cash_desk_link(ctx.clock, ctx.settings, caller, json.dumps(sale).encode()))
    return {"links/link": [str(link.link.id)], "cash-desk/link": [str(desk.link.id)]}


async def _keys(ctx: AppContext, made: Stock, env: Environment) -> None:
    now = ctx.clock.now()
    async with ctx.db.transaction() as tx:
        for _ in range(2):
            await api_keys.add(tx, made.merchant.id, env, api_keys.new_key(env), None, now)
    keys = [each for each in await api_keys.list_of(ctx.db, made.merchant.id) if each.env == env]
    made.fields.setdefault("key", []).extend(str(each.id) for each in keys)
    row = {**REQUEST, "merchant_id": made.merchant.id, "env": env, "key_id": keys[0].id, "at": now}
    await ctx.db.write(insert(api_requests).values(**row))


async def _file(ctx: AppContext, made: Stock) -> None:
    """What the staff has about the merchant."""
    merchant, word, now = made.merchant, made.word, ctx.clock.now()
    await add_note(ctx.db, ctx.clock, merchant.id, f"{word} <script>zq7(2)</script>", _STAFF, after=0)
    document = await add_document(ctx, merchant.id, f"{word}.pdf", b"%PDF-1.7 x", _STAFF)
    [reference, *_] = made.by_env["live"]["payments/reference"]
    await incidents.report(
        ctx.db,
        merchant_id=merchant.id,
        env="live",
        kind=incidents.MISMATCH,
        subject_type="payment",
        reference=reference,
        provider_account="mtn_benin",
        detail=verbatim(f"{word} {_HOSTILE}"),
        now=now,
    )
    day = now // DAY * DAY
    await ctx.db.write(insert(reconciliation_runs).values(**{**RUN, "provider_account": word, "day": day}))
    made.of_staff.update(
        {
            "merchants/merchant": [str(merchant.id)],
            "wallets/merchant": [str(merchant.id)],
            "documents/document": [str(document.id)],
            "incidents/reference": [reference],
            "deliveries/reference": made.by_env["live"]["deliveries/reference"],
            "payments/payment": made.by_env["live"]["payments/payment"],
            "reconciliation/day": [datetime.fromtimestamp(day / SECOND, UTC).date().isoformat()],
            "day/account": [word],
        }
    )


async def approval(ctx: AppContext, made: Stock, asker: User) -> None:
    """Adds an act that waits for another person: it would open a wallet again in which nothing is."""
    why = "Contrôle terminé"
    await merchants.change_status(ctx.db, ctx.clock, made.merchant.id, "XAF", "Gelé", _STAFF, why)
    wanted = ActRequest("wallet.reopen", money_acts.wallet_subject(made.merchant.id, "XAF"), {}, why)
    request = await approvals.ask(ctx, wanted, asker, CONSOLE)
    made.of_staff["approvals/request"] = [str(request.id)]


async def comparison(ctx: AppContext, made: Stock, asker: User) -> None:
    """Adds a provider's statement that was compared; nothing of it is ours."""
    now = ctx.clock.now()
    line = Line(2, "payment", (made.word, _HOSTILE, *_DANGEROUS), Hundredths(500), None, "succeeded", now)
    compared = ComparedStatement(None, now, 1, counts={MISSING_HERE: 1}, found=[Finding(MISSING_HERE, line, None)])
    result = ctx.vault.encrypt_bytes(msgspec.json.encode(compared))
    ended = {"status": "done", "due_at": None, "parameters": None, "finished_at": now, "result": result}
    row = {**STAFF_JOB, "kind": "compare_statement", "user_id": asker.id, "request_hash": made.word, **ended}
    made.of_staff["statement/job"] = [await _row(ctx, insert(staff_jobs).values(**row).returning(staff_jobs.c.id))]


async def own_things(ctx: AppContext, made: Stock, user: User, session: int) -> None:
    """Adds what only the person may end or remove: the session, and a passkey."""
    row = {**PASSKEY, "user_id": user.id, "credential_id": made.word, "created_at": ctx.clock.now()}
    key = await _row(ctx, insert(passkeys).values(**row).returning(passkeys.c.id))
    made.fields.update({"user": [str(user.id)], "session": [str(session)], "passkey": [key]})


async def export(ctx: AppContext, made: Stock, user: User) -> None:
    """Adds a file that only this person may download."""
    now = ctx.clock.now()
    mine = {
        **EXPORT,
        "merchant_id": made.merchant.id,
        "user_id": user.id,
        "created_at": now,
        "expires_at": now + 20 * HOUR,
    }
    for env in ENVS:
        row = {**mine, "env": env, "since": now - DAY, "until": now, "status": "direct", "due_at": None}
        made.by_env[env]["exports/number"] = [await _row(ctx, insert(exports).values(**row).returning(exports.c.id))]


async def _row(ctx: AppContext, statement: Any) -> str:
    return str(require(await ctx.db.write(statement))[0])
