"""Creates a payment, from the API or from a payment link (docs/contract.md, "Requests").

The row is inserted first; the provider is called afterwards, outside any transaction. Our reference is therefore stored
before the request is sent: after a crash the payment is pending and the worker polls it. No debit is unknown here.
A provider may need longer than the request may wait (`payments/initiation.py`).
"""

import re
from collections.abc import Iterator
from functools import cache, partial
from importlib import resources
from typing import Final

from msgspec import structs

from guichet.clock import MINUTE, Instant, later
from guichet.context import AppContext
from guichet.db.engine import Transaction
from guichet.db.lost_answers import repeat_when_lost
from guichet.db.references import new_reference
from guichet.domain.catalogue import PaymentMode, Quote, mode_faults, quote
from guichet.domain.errors import Conflict, InvalidRequest
from guichet.domain.failures import OUR_FAULTS
from guichet.domain.ids import LinkId, PaymentId
from guichet.domain.merchants import Caller, Environment, Merchant, random_text
from guichet.domain.money import plain
from guichet.domain.payment_links import PaymentLink
from guichet.domain.payments import DEFAULT_COUNTRY, DEFAULT_DESCRIPTION, Payment
from guichet.domain.phone_numbers import written_forms
from guichet.domain.records import Record
from guichet.domain.sandbox_scenarios import MOBILE_MONEY_ONLY, SCENARIO
from guichet.merchants import idempotency
from guichet.merchants import limits as merchant_limits
from guichet.merchants.idempotency import IdempotencyKey
from guichet.payments import attempts, pending, repository
from guichet.payments.initiation import initiate_within_request, initiation_lease, refusal_of
from guichet.providers.registry import charge_for, encode_provider_data
from guichet.schemas.envelope import RequestWarning, warning
from guichet.schemas.payment import Customer, PaymentBody
from guichet.schemas.validation import invalid_request

TOKEN_LENGTH: Final = 32
_NOBODY: Final = Customer.model_construct()
#: White space that nobody sees or types again: at an end, repeated, other than the usual one, or without a width.
_ODD_SPACES: Final = re.compile(r"\A\s|\s\Z|\s\s|[^\S ]|[\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff]")


class LinkUse(Record, frozen=True):
    """A payment through a link. `checkout_token` was chosen by the hosted page: submitting the page again finds the
    same payment. `instead_of`: the one from whose waiting page it was begun."""

    link: PaymentLink
    checkout_token: str
    instead_of: Payment | None = None


class CreatedPayment(Record, frozen=True):
    """`created` is False when the payment existed already: this call debited nobody."""

    payment: Payment
    mode: PaymentMode
    created: bool


async def create_payment(
    ctx: AppContext,
    caller: Caller,
    request: PaymentBody,
    link_use: LinkUse | None = None,
    key: IdempotencyKey | None = None,
) -> CreatedPayment:
    """The new payment, `pending`, or the one that already holds the request's external_id, checkout_token or `key`.

    Raises InvalidRequest (payment mode, missing fields, bounds; OverMerchantLimit), Conflict (wallet not `Actif`, link
    used up, key of another request), TooManyPrompts (through links only). Raises PaymentFailed (refused at initiation)
    and ServerError (no route of ours works) when the payment is stored as `failed`.
    """
    catalogue = await ctx.catalogues.of(caller.merchant.id)
    quoted = _check_request(catalogue.choose(request.operator, request.payment_mode_id), request)
    route = ctx.registry.routes(caller.env, quoted.mode.operator)
    payment = _new_payment(ctx, caller, request, link_use, quoted, route[0])
    charge = charge_for(payment, ctx.settings.public_url, request.otp)
    provider = ctx.registry.provider(route[0])
    known_at = None if provider.remote else provider.first_poll_at(charge)
    first_poll_at = payment.next_poll_at if known_at is None else known_at
    # A test payment whose result is known at once is polled here, without a claim, where a worker runs: as after a
    # claim, it is due when the lease ends.
    polled_here = caller.env == "test" and ctx.hand_over.worker is not None and first_poll_at == payment.created_at
    next_poll_at = payment.next_poll_at if polled_here else first_poll_at
    stored = await repeat_when_lost(ctx.db, partial(_store, ctx, caller.merchant, payment, next_poll_at, key))
    if stored is None:
        stored = await _find_stored(ctx, payment, key)
        # Our own row, as we wrote it: its INSERT happened, and the answer was lost.
        if (stored.reference, stored.lease_expires_at) != (payment.reference, payment.lease_expires_at):
            return CreatedPayment(await _answer_again(ctx, stored), quoted.mode, created=False)
    initiated = await initiate_within_request(ctx, stored, charge, route)
    if polled_here:
        from guichet.payments.polling import poll_soon  # noqa: PLC0415 - a server listens without

        poll_soon(ctx, initiated)
    return CreatedPayment(initiated, quoted.mode, created=True)


def _check_request(mode: PaymentMode, request: PaymentBody) -> Quote:
    """The amounts of the payment. Raises InvalidRequest with everything that the mode forbids."""
    quoted = quote(mode, request.amount)
    faults = mode_faults(mode, request.value_of, quoted, request.currency)
    if faults and "amount" not in faults:
        raise InvalidRequest(f"Il manque des informations pour payer avec {mode.name}.", faults)
    if len(faults) == 1:
        raise InvalidRequest(faults["amount"][0], faults)
    if faults:
        raise invalid_request(faults)
    if mode.is_card and request.test_scenario in MOBILE_MONEY_ONLY:
        raise invalid_request({"test_scenario": [f"Le scénario {request.test_scenario} n'existe qu'en Mobile Money."]})
    return quoted


def _new_payment(
    ctx: AppContext,
    caller: Caller,
    request: PaymentBody,
    link_use: LinkUse | None,
    quoted: Quote,
    provider_account: str,
) -> Payment:
    """Its values stand in the order of the fields: named, Python makes a dict of them, 3 % of a creation."""
    now, provider = ctx.clock.now(), ctx.registry.provider(provider_account)
    link = None if link_use is None else link_use.link
    customer, scenario = request.customer or _NOBODY, request.test_scenario
    # The customer of a test link goes on to the page of the test cards as to a provider's.
    redirects = scenario == "redirect" or (caller.env == "test" and link is not None and quoted.mode.is_card)
    # In test the page that stands for the provider's; in live the way back from the provider's to the merchant's.
    needs_page = request.return_url is not None if caller.env == "live" else quoted.mode.is_card or redirects
    token = link_use.checkout_token if link_use else random_text(TOKEN_LENGTH) if needs_page else None
    lease = initiation_lease(now, provider)
    payment = Payment(
        PaymentId(0),
        caller.merchant.id,
        caller.env,
        new_reference(now),
        request.external_id,
        "pending",
        quoted.amount,
        quoted.fee_amount,
        quoted.total_amount,
        request.currency,
        DEFAULT_DESCRIPTION if request.description is None else request.description,
        quoted.mode.operator,
        request.phone_number,
        customer.firstname,
        customer.lastname,
        customer.email,
        customer.address,
        customer.country or (DEFAULT_COUNTRY if quoted.mode.is_card else None),
        request.return_url,
        request.callback_url,
        request.metadata,
        None if link is None else link.id,
        token,
        now,  # created_at
        now,  # updated_at
        provider_account,
        None,  # provider_reference
        encode_provider_data({SCENARIO: scenario}) if scenario else None,
        f"{ctx.settings.public_url}/checkout/{token}" if redirects else None,
        None,  # failure_reason
        # If the initiation never returns. The lease keeps others from polling the payment while it is running.
        lease,  # next_poll_at
        0,  # poll_count
        lease if provider.remote else None,  # lease_expires_at
        provider.fingerprint,
    )
    if caller.merchant.daily_limit is not None and caller.env == "live":
        day = merchant_limits.day_of(caller.merchant, now, ctx.settings.time_zone)
        payment = structs.replace(payment, counted_day=day)
    if link_use is None:
        return payment
    before = link_use.instead_of
    return structs.replace(
        payment,
        link_reserved_until=later(now, ctx.settings.link_reservation_minutes * MINUTE),
        link_external_id=link_use.link.external_id,
        attempt_of=None if before is None else attempts.first_of(before),
        session_reference=link_use.link.session_reference,
    )


async def _store(
    ctx: AppContext,
    merchant: Merchant,
    payment: Payment,
    next_poll_at: Instant | None,
    key: IdempotencyKey | None,
) -> Payment | None:
    """Inserts the payment; None when one with the same unique key or idempotency key exists, or when it is live and its
    wallet is not `Actif`. Raises Conflict if the link has no use left or another attempt is open, TooManyPrompts, and
    OverMerchantLimit."""
    limited = payment.env == "live" and (merchant.payment_limit, merchant.daily_limit) != (None, None)
    if payment.link_id is None and not limited:
        return await repository.create(ctx.db, payment, next_poll_at, key)
    async with ctx.db.transaction() as tx:
        if not await idempotency.claim(tx, key, payment.reference, payment.created_at):
            return None
        stored = await repository.insert_new(tx, payment, next_poll_at)
        if stored is None:
            await idempotency.release(tx, key)
            return None
        given_up = 0 if stored.attempt_of is None else await attempts.take_place(ctx, tx, stored)
        if limited:
            await merchant_limits.check(tx, merchant, stored)
        if stored.link_id is not None:
            await _reserve_use(ctx, tx, stored, stored.link_id, given_up)
    return stored


async def _reserve_use(ctx: AppContext, tx: Transaction, payment: Payment, link_id: LinkId, given_up: int) -> None:
    """`given_up`: uses that earlier attempts of the same customer held."""
    from guichet.links import prompt_limits  # noqa: PLC0415 - a server listens without
    from guichet.links import repository as links  # noqa: PLC0415
    from guichet.payments import checkout_sessions  # noqa: PLC0415

    if given_up:
        await links.release_uses(tx, link_id, given_up)
    if not await links.reserve_use(tx, link_id, payment.created_at):
        raise Conflict("Ce lien de paiement a atteint son nombre maximal d'utilisations.", reason="link_used_up")
    if payment.session_reference is not None:
        await checkout_sessions.check_open(ctx, tx, payment)
    await prompt_limits.check(tx, ctx.settings, payment)


async def _find_stored(ctx: AppContext, payment: Payment, key: IdempotencyKey | None) -> Payment:
    """The payment that holds a unique key of `payment` already. Raises Conflict if there is none: the wallet is not
    `Actif`; and if `key` is that of another request. Raises PaymentFailed if the payment of this key was refused."""
    stored = None
    if payment.external_id is not None:
        stored = await repository.by_external_id(ctx.db, payment.merchant_id, payment.env, payment.external_id)
    if stored is None and payment.checkout_token is not None:
        stored = await repository.by_token(ctx.db, payment.checkout_token)
    if stored is None:
        created = await idempotency.find(ctx.db, key)
        reference = payment.reference if created is None else created
        stored = await repository.by_reference(ctx.db, payment.merchant_id, payment.env, reference)
        # A route of ours that did not work is told once: every repetition of a 500 would be answered with another one.
        if created and stored and stored.refused_at_initiation and stored.failure_reason not in OUR_FAULTS:
            raise refusal_of(stored)
    if stored is None:
        raise Conflict(
            "Le portefeuille du marchand n'accepte pas de mouvement pour le moment.", reason="wallet_not_active"
        )
    return stored


async def _answer_again(ctx: AppContext, stored: Payment) -> Payment:
    # The first request may have been answered 500 because no standby confirmed its commit. Wait for the standby here
    # too, or a repeated request could be acknowledged before the first one is durable.
    await ctx.db.wait_for_replication()
    if stored.status == "pending" and stored.lease_expires_at is not None and not stored.answered_pending:
        stored = await pending.record_answered_pending(ctx.db, stored)
    return stored


def request_warnings(
    ctx: AppContext, env: Environment, request: PaymentBody, result: CreatedPayment, key: IdempotencyKey | None
) -> list[RequestWarning]:
    """What the answer to POST /payments warns of (docs/contract.md, "Warnings"), in the order of `schemas/envelope.py`.
    Nothing here refuses a payment. An ordinary one has no warning, and finding that out takes a few microseconds."""
    mode, warnings = result.mode, []
    if not result.created and (differences := " ; ".join(_differences(request, mode, result.payment))):
        warnings.append(warning("replay_differs", differences=differences))
    if request.phone_number is not None and not _is_number_of(mode, request.phone_number):
        facts = {"country": mode.country, "dial_code": mode.dial_code, "operator": mode.operator}
        warnings.append(warning("phone_country_mismatch", phone_number=request.phone_number, **facts))
    if env == "test" and not ctx.registry.takes_live(mode.operator, request.currency):
        warnings.append(warning("currency_not_accepted_live", operator=mode.operator, currency=request.currency))
    if request.external_id is None:
        if key is None:
            warnings.append(warning("no_external_id"))
    elif _has_odd_spaces(request.external_id):
        warnings.append(warning("external_id_spaces"))
    return warnings


def _has_odd_spaces(text: str) -> bool:
    """The pattern is slow, and most texts are of letters and digits."""
    return not (text.isprintable() and " " not in text) and _ODD_SPACES.search(text) is not None


def _differences(request: PaymentBody, mode: PaymentMode, payment: Payment) -> Iterator[str]:
    """Each field of the request that the existing payment has otherwise. One telephone's number may be written in two
    ways."""
    compared = {
        "amount": (plain(payment.amount), plain(request.amount)),
        "currency": (payment.currency, request.currency),
        "operator": (payment.operator, mode.operator),
        "phone_number": (_today(payment.phone_number), _today(request.phone_number)),
    }
    for name, (stored, sent) in compared.items():
        if stored != sent:
            yield f"{name} ({stored or 'aucun'} au lieu de {sent or 'aucun'})"


def _today(phone_number: str | None) -> str | None:
    return None if phone_number is None else written_forms(phone_number)[0]


def _is_number_of(mode: PaymentMode, phone_number: str) -> bool:
    """Whether the digits begin with the country code of the mode, and go on for as long as a number there may. True for
    a mode of no country."""
    pattern = None if mode.country_code is None else _numbers_of(mode.country_code)
    if pattern is None or pattern.fullmatch(phone_number):
        return True
    return pattern.fullmatch(written_forms(phone_number)[0]) is not None


@cache
def _numbers_of(country_code: str) -> re.Pattern[str] | None:
    """What is known of a country's numbers, compiled once: lengths and not ranges, since new ranges are opened before
    anybody's list has them. None for a country that has no numbers of its own.

    A line of the file has the ISO-2 code, the country's digits, and the lengths that may follow, as the package
    phonenumbers knows them, whose sixty modules a server's first payment waited for. A test compares the two."""
    lines = (resources.files("guichet") / "data/phone_numbers.txt").read_text(encoding="ascii").splitlines()
    for country, dial_code, lengths in map(str.split, lines):
        if country == country_code:
            return re.compile(dial_code + "(?:" + "|".join(f"[0-9]{{{length}}}" for length in lengths.split(",")) + ")")
    return None
