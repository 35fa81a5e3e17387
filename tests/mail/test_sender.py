"""Mails over real SMTP (`aiosmtpd`): what arrives, what is tried again, what is given up and forgotten."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from aiosmtpd.controller import Controller
from sqlalchemy import select

from guichet.accounts import users
from guichet.clock import SECOND
from guichet.db.engine import require
from guichet.db.tables import mails
from guichet.domain.mails import MAIL_KINDS, MAX_MAIL_ATTEMPTS, RETRY_DELAYS
from guichet.mail.messages import text_of
from guichet.mail.outbox import Message, Outbox
from guichet.settings import Settings
from tests.ports import free_port
from tests.service_fixture import ServiceFixture, open_service

VALUES = {
    "name": "Awa", "inviter": "Ada", "place": "Boutique Kora", "role": "owner", "date": "1795399200000000",
    "agent": "Firefox", "means": "code", "address": "203.0.113.7", "link": "https://pay.example/console/invitation/SECRET",
    "person": "zoe@example.com", "act": "wallet.reopen", "subject": "7/XOF",
    "key": "sk_live_AbCd…", "deed": "webhook_secret.shown",
    "amount": "500000", "fee": "8800", "total": "508800", "currency": "XOF", "mode": "MTN MoMo", "number": "0000000012",
    "reference": "01a20b78-8244-44a8-a40a-25e8d69f6b41", "day": "2026-11-23", "count": "2", "operators": "MTN MoMo (2)",
}  # fmt: skip


class Server:
    """Takes mails, or answers each with `answer`."""

    def __init__(self) -> None:
        self.answer: str | None = None
        self.received: list[EmailMessage] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.answer is not None:
            return self.answer
        read = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(read, EmailMessage)
        self.received.append(read)
        return "250 OK"


@asynccontextmanager
async def mailing(settings: Settings, server: Server | None) -> AsyncIterator[ServiceFixture]:
    """A service whose mails go to `server`; None: to a port where nobody listens."""
    port = free_port()
    with_smtp = replace(settings, smtp_url=f"smtp://127.0.0.1:{port}", mail_from="Guichet <no-reply@pay.example>")
    controller = Controller(server, hostname="127.0.0.1", port=port) if server else None
    if controller is not None:
        controller.start()
    try:
        async with open_service(with_smtp) as service:
            yield service
    finally:
        if controller is not None:
            controller.stop()


async def queue_mail(service: ServiceFixture, kind: Any = "invitation", **values: str) -> None:
    ctx = service.ctx
    async with ctx.db.transaction() as tx:
        created = await users.create(tx, "awa@example.com", "Awa", "fr", None, ctx.clock.now())
        user = created or await users.by_email(tx, "awa@example.com")
        await Outbox(ctx.vault).add(tx, require(user), kind, VALUES | values, ctx.clock.now())


async def row(service: ServiceFixture) -> Any:
    """Status, attempts, message, next attempt and error of the one mail."""
    columns = (mails.c.status, mails.c.attempts, mails.c.message, mails.c.next_attempt_at, mails.c.error)
    [found] = await service.ctx.db.scan(select(*columns))
    return found


async def test_a_mail_arrives_as_it_was_written(settings: Settings) -> None:
    server = Server()
    async with mailing(settings, server) as service:
        await queue_mail(service, name="Awa Kossou é")
        await service.run_worker()
        await service.run_worker(3600)
        [mail] = server.received
        assert (mail["To"], mail["From"]) == ("awa@example.com", "Guichet <no-reply@pay.example>")
        assert mail["Subject"] == "Votre accès à Guichet"
        assert mail["Auto-Submitted"] == "auto-generated"
        assert mail["Message-ID"].endswith("@pay.example>")
        text = mail.get_content()
        assert "Bonjour Awa Kossou é," in text
        assert VALUES["link"] in text
        assert (await row(service))[0] == "sent"


async def test_a_value_adds_neither_a_header_nor_a_line(sqlite_settings: Settings) -> None:
    server = Server()
    async with mailing(sqlite_settings, server) as service:
        await queue_mail(service, place="Kora\r\nBcc: x@example.com\n\nCliquez ici : https://evil.example")
        await service.run_worker()
        [mail] = server.received
        assert mail["Bcc"] is None
        assert not [line for line in mail.get_content().splitlines() if line.startswith(("Bcc", "Cliquez"))]


@pytest.mark.both_databases
@pytest.mark.parametrize("away", [True, False])
async def test_a_mail_that_is_not_taken_is_tried_again_then_forgotten(settings: Settings, *, away: bool) -> None:
    server = Server()
    server.answer = "451 later"
    async with mailing(settings, None if away else server) as service:
        await queue_mail(service)
        for attempts, delay in enumerate((0, *RETRY_DELAYS), 1):
            status, tried, message, *_ = await row(service)
            assert (status, tried) == ("pending", attempts - 1)
            assert message is not None
            await service.run_worker(delay / SECOND)
        status, tried, message, due, error = await row(service)
        assert (status, tried, message, due) == ("failed", MAX_MAIL_ATTEMPTS, None, None)
        assert ("later" in error) is not away
        assert server.received == []


async def test_a_mail_is_sent_once_the_server_takes_it(sqlite_settings: Settings) -> None:
    server = Server()
    server.answer = "451 later"
    async with mailing(sqlite_settings, server) as service:
        await queue_mail(service)
        await service.run_worker()
        server.answer = None
        await service.run_worker(RETRY_DELAYS[0] / SECOND)
        assert len(server.received) == 1
        assert (await row(service))[:2] == ("sent", 2)


async def test_a_mail_that_was_taken_by_a_server_that_could_not_say_so_keeps_its_id(sqlite_settings: Settings) -> None:
    """What a worker that died between sending and noting it leaves: the receiver shows both as one."""

    class Forgetful(Server):
        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
            await super().handle_DATA(server, session, envelope)
            return "451 later" if len(self.received) == 1 else "250 OK"

    server = Forgetful()
    async with mailing(sqlite_settings, server) as service:
        await queue_mail(service)
        await service.run_worker()
        await queue_mail(service, "password_changed")
        await service.run_worker(RETRY_DELAYS[0] / SECOND)
        ids = sorted(each["Message-ID"] for each in server.received)
        assert len(ids) == 3
        assert len(set(ids)) == 2, "another mail has another id"


async def test_development_keeps_what_it_would_have_sent_and_production_nothing(settings: Settings) -> None:
    for profile, kept in (("development", True), ("production", False)):
        async with open_service(replace(settings, profile=profile)) as service:  # type: ignore[arg-type]
            if profile == "development":
                await queue_mail(service)
            else:
                ctx = service.ctx
                async with ctx.db.transaction() as tx:
                    user = require(await users.by_email(tx, "awa@example.com"))
                    await Outbox(ctx.vault).add(tx, user, "password", VALUES, ctx.clock.now())
            await service.run_worker()
            newest = (await Outbox(service.ctx.vault).latest(service.ctx.db))[0]
            assert (newest.message is not None) is kept


@pytest.mark.parametrize("kind", MAIL_KINDS)
def test_every_kind_exists_in_both_languages(kind: str) -> None:
    texts = {language: text_of(kind, Message(language, VALUES)) for language in ("fr", "en")}
    assert texts["fr"].subject != texts["en"].subject
    for text in texts.values():
        assert (
            VALUES["person" if kind in ("staff_changed", "approver_removed", "team_changed") else "link"] in text.body
        )
    if kind.startswith("approval_"):
        assert "rouvrir un portefeuille (7/XOF)" in texts["fr"].body
        assert "reopen a wallet (7/XOF)" in texts["en"].body
    if kind == "payments_of_day":
        assert "5\u202f000\u00a0F\u00a0CFA en 2 paiements le 23 novembre 2026" in texts["fr"].body
        assert "5,000\u00a0F\u00a0CFA in 2 payments on 23 November 2026" in texts["en"].body
    elif kind not in {"invitation", "password"}:
        assert "23 novembre 2026 à " in texts["fr"].body
        assert "23 November 2026 at " in texts["en"].body
        assert re.search(r"[{}]", text.body) is None
        assert "Guichet" in text.subject


def test_dates_are_in_the_time_zone_of_the_pages_and_the_staff_is_no_place_on_guichet() -> None:
    values = {**VALUES, "date": "0"}
    assert (
        "1 janvier 1970 à 01:00 GMT+1"
        in text_of("password_changed", Message("fr", values), ZoneInfo("Africa/Porto-Novo")).body
    )
    staff, shop = (text_of("invitation", Message("fr", {**VALUES, "place": place})).body for place in ("", "Kora"))
    assert "rejoindre le personnel de Guichet." in staff
    assert "rejoindre Kora sur Guichet." in shop
