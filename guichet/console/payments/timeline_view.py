"""The entries of a payment's timeline as sentences."""

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from markupsafe import Markup

from guichet.console.page_request import MerchantRequest
from guichet.domain.money import round_to_currency
from guichet.domain.payments import DEFAULT_REASON, Payment
from guichet.domain.posting_rules import HELD
from guichet.domain.records import Record
from guichet.history.timeline import TimelineEntry, TimelineFacts, TimelineKind
from guichet.pages.views import View
from guichet.printable import printable

Tone = Literal["", "ok", "bad", "warn"]
_TONES: Final[dict[TimelineKind, Tone]] = {
    "payment.succeeded": "ok",
    "payment.failed": "bad",
    "provider.not_answered": "warn",
    "refund.succeeded": "ok",
    "refund.failed": "bad",
    "dispute.opened": "warn",
    "dispute.lost": "bad",
    "dispute.won": "ok",
    "late.found": "warn",
    "incident.opened": "warn",
}


#: Characters of a receiver's answer.
_ANSWER_SHOWN: Final = 120


class Line(View, frozen=True):
    """One line of the timeline: when, what, and what else is known about it."""

    at: str
    text: Markup
    details: list[Markup]
    tone: Tone


def lines(request: MerchantRequest, payment: Payment, entries: Iterable[TimelineEntry], operator: str) -> list[Line]:
    """`operator`: its name as people know it. What moved on the wallet is for who may see the balance, the address
    of a webhook and the receiver's answers for who may see the webhooks."""
    writer = _Writer(request, payment, operator, may_see_webhooks=request.may("webhooks.view"))
    may_see_balance = request.may("balance.view")
    return [_line(writer, entry) for entry in entries if entry.kind != "money.moved" or may_see_balance]


class _Writer(Record, frozen=True):
    request: MerchantRequest
    payment: Payment
    operator: str
    may_see_webhooks: bool

    def text(self, name: str, **values: object) -> Markup:
        return self.request.text(f"payments.event.{name}", **values)

    def amount(self, hundredths: Any) -> str:
        return self.request.amount(hundredths, self.payment.currency)

    def at(self, name: str, instant: Any) -> list[Markup]:
        """A detail with a date; none if there is no date."""
        return [] if instant is None else [self.text(name, at=self.request.date_time(instant))]


def _line(writer: _Writer, entry: TimelineEntry) -> Line:
    text, details = _SENTENCES[entry.kind](writer, entry.values, entry.subject)
    tone = _TONES.get(entry.kind, "")
    if entry.kind == "webhook.attempted":
        tone = "ok" if entry.values["delivered"] else "bad"
    return Line(writer.request.date_time(entry.at), text, details, tone)


Sentence = tuple[Markup, list[Markup]]
_Values = TimelineFacts


def _plain(name: str) -> Callable[[_Writer, _Values, str], Sentence]:
    """A sentence without values."""
    return lambda writer, _, __: (writer.text(name), [])


def _created(writer: _Writer, values: _Values, _: str) -> Sentence:
    return writer.text(f"created_{values['source']}"), []


def _provider_asked(writer: _Writer, values: _Values, _: str) -> Sentence:
    page = [writer.text("redirected", operator=writer.operator)] if values["redirects"] else []
    return writer.text("asked", operator=writer.operator), page


def _provider_told(writer: _Writer, values: _Values, _: str) -> Sentence:
    return writer.text("told", operator=writer.operator), [writer.text("told_count", count=values["count"])]


def _polled(writer: _Writer, values: _Values, _: str) -> Sentence:
    return writer.text("polled", operator=writer.operator), writer.at("next_poll", values["next_poll_at"])


def _succeeded(writer: _Writer, values: _Values, _: str) -> Sentence:
    return writer.text("succeeded", amount=writer.amount(values["debited"])), []


def _failed(writer: _Writer, values: _Values, subject: str) -> Sentence:
    return writer.text(f"{subject}_failed"), [writer.request.text(f"payments.failure.{values['code']}")]


def _moved(writer: _Writer, values: _Values, _: str) -> Sentence:
    moved = values["wallet"]
    if values["waiting"]:
        return writer.text("moved_waiting", amount=writer.amount(values["waiting"])), []
    name = "moved_held" if values["cause"] == HELD else "moved_in" if moved > 0 else "moved_out"
    return writer.text(name, amount=writer.amount(abs(moved))), []


def _refund_requested(writer: _Writer, values: _Values, _: str) -> Sentence:
    by = [] if values["by"] is None else [writer.text("refund_by", by=values["by"])]
    own = values["reason"] != DEFAULT_REASON
    reason = [writer.text("reason", reason=printable(values["reason"]))] if own else []
    amount = writer.amount(round_to_currency(values["amount"], writer.payment.currency))
    return writer.text("refund_requested", amount=amount), [*by, *reason]


def _dispute_opened(writer: _Writer, values: _Values, _: str) -> Sentence:
    reason = writer.text("reason", reason=writer.request.word("operations.dispute_reason.", values["reason"]))
    text = writer.text("dispute_opened", amount=writer.amount(values["amount"]))
    return text, [reason, *writer.at("evidence_due", values["evidence_due_at"])]


def _dispute_lost(writer: _Writer, values: _Values, _: str) -> Sentence:
    return writer.text("dispute_lost"), [writer.text(f"borne_by_{values['borne_by'] or 'nobody'}")]


def _queued(writer: _Writer, values: _Values, _: str) -> Sentence:
    url = [Markup.escape(printable(values["url"]))] if writer.may_see_webhooks else []
    return writer.text("webhook_queued", event=values["event"]), url


def _attempted(writer: _Writer, values: _Values, _: str) -> Sentence:
    numbers = {"event": values["event"], "number": values["number"]}
    of = values["of"]
    text = (
        writer.text("webhook_attempted_again", **numbers)
        if of is None
        else writer.text("webhook_attempted", **numbers, of=of)
    )
    code = [] if values["response_code"] is None else [writer.text("answered", code=values["response_code"])]
    why = [] if values["error"] is None else [writer.request.text(f"payments.delivery_error.{values['error']}")]
    answer = [Markup.escape(_short(values["answer"]))] if values["answer"] and writer.may_see_webhooks else []
    return text, [*code, *why, *answer, *writer.at("next_attempt", values["next_attempt_at"])]


def _short(answer: str) -> str:
    """The beginning of what a receiver sent, on one line; the page of the delivery has more of it."""
    line = printable(" ".join(answer.split()))
    return line if len(line) <= _ANSWER_SHOWN else line[:_ANSWER_SHOWN] + "…"


def _late(writer: _Writer, values: _Values, subject: str) -> Sentence:
    text = writer.text(f"late_{subject}", amount=writer.amount(values["amount"]))
    return text, [writer.text(f"late_stage_{values['stage']}")]


def _incident(writer: _Writer, values: _Values, _: str) -> Sentence:
    still = [writer.text("still_open")] if values["open"] else []
    return writer.text(f"concern_{values['concern']}"), still


_SENTENCES: Final[dict[TimelineKind, Callable[[_Writer, _Values, str], Sentence]]] = {
    "payment.created": _created,
    "provider.asked": _provider_asked,
    "provider.not_answered": _plain("not_answered"),
    "provider.told": _provider_told,
    "provider.polled": _polled,
    "payment.succeeded": _succeeded,
    "payment.failed": _failed,
    "payment.refunded": _plain("refunded"),
    "money.moved": _moved,
    "refund.requested": _refund_requested,
    "refund.sent": _plain("refund_sent"),
    "refund.succeeded": _plain("refund_succeeded"),
    "refund.failed": _failed,
    "dispute.opened": _dispute_opened,
    "dispute.won": _plain("dispute_won"),
    "dispute.lost": _dispute_lost,
    "webhook.queued": _queued,
    "webhook.attempted": _attempted,
    "late.found": _late,
    "incident.opened": _incident,
    "incident.closed": _plain("concern_closed"),
}
