"""What mails say: one text file for each kind and language, whose first line is the subject.

Of the values, `date` is an Instant (in the time zone `zone`, else that of the installation, as on its pages), `day` an
ISO date, `role` a role of `domain/roles.py`, `act` one of `domain/approvals.py`, and `amount`, `fee` and `total` are
hundredths of `currency`; the others are shown as they are.
"""

from datetime import UTC, date, timedelta, tzinfo
from email.message import EmailMessage
from email.utils import format_datetime as mail_date
from functools import cache
from pathlib import Path
from typing import Final, cast
from zoneinfo import ZoneInfo

from babel.dates import format_date, format_datetime
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from guichet.clock import Instant, to_datetime
from guichet.domain import money
from guichet.domain.accounts import Language
from guichet.domain.money import Currency
from guichet.domain.records import Record
from guichet.mail.outbox import Mail, Message

_TEMPLATES: Final = Path(__file__).parent / "templates"
_DATES: Final[dict[Language, str]] = {"fr": "d MMMM y 'à' HH:mm 'GMT'", "en": "d MMMM y 'at' HH:mm 'GMT'"}
_FRENCH_ROLES: Final = {
    "owner": "titulaire",
    "finance": "finances",
    "cashier": "caisse",
    "developer": "développement",
    "reader": "lecture",
    "admin": "administration",
    "support": "assistance",
    "auditor": "audit",
}
#: As `operations.act.…` in the console.
_ACTS: Final[dict[Language, dict[str, str]]] = {
    "fr": {
        "payment.settle": "terminer un paiement à la main",
        "refund.settle": "terminer un remboursement à la main",
        "refund.confirm_payee": "confirmer le numéro à rembourser",
        "late_money.resolve": "décider d’un argent arrivé en retard",
        "dispute.resolve": "dire qui supporte un litige perdu",
        "wallet.reopen": "rouvrir un portefeuille",
        "account.confirm": "confirmer un compte dont la clé a changé",
        "treasury.record": "enregistrer un mouvement de notre argent",
        "staff.add": "donner le droit d’approuver",
        "staff.restore": "rendre le droit d’approuver",
        "team.give_role": "donner une place dans l’équipe d’un marchand",
    },
    "en": {
        "payment.settle": "settle a payment by hand",
        "refund.settle": "settle a refund by hand",
        "refund.confirm_payee": "confirm the number to refund",
        "late_money.resolve": "decide about late money",
        "dispute.resolve": "say who bears a lost dispute",
        "wallet.reopen": "reopen a wallet",
        "account.confirm": "confirm an account whose key changed",
        "treasury.record": "record a movement of our own money",
        "staff.add": "give somebody the right to approve",
        "staff.restore": "give the right to approve back",
        "team.give_role": "give a place in a merchant’s team",
    },
}


_AMOUNTS: Final = {"amount", "fee", "total"}


class Text(Record, frozen=True):
    subject: str
    body: str


@cache
def _environment() -> Environment:
    # Plain text: nothing is escaped, and no template puts a value into a subject.
    return Environment(loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, keep_trailing_newline=True)  # noqa: S701


def text_of(kind: str, message: Message, zone: tzinfo = UTC) -> Text:
    """Subject and body in the message's language. `zone`: of a date that has none of its own. Values are put on one
    line each, so that none can add a paragraph."""
    values = {name: " ".join(value.split()) for name, value in message.values.items()}
    if "date" in values:
        own = ZoneInfo(values["zone"]) if "zone" in values else zone
        moment = to_datetime(Instant(int(values["date"]))).astimezone(own)
        minutes = round((moment.utcoffset() or timedelta()) / timedelta(minutes=1))
        gmt = f"GMT{minutes // 60:+d}" if minutes else "GMT"
        pattern = _DATES[message.language].replace("GMT", gmt)
        values["date"] = format_datetime(moment, pattern, moment.tzinfo, message.language)
    if "day" in values:
        values["day"] = format_date(date.fromisoformat(values["day"]), "d MMMM y", locale=message.language)
    for name in _AMOUNTS & values.keys():
        write = money.french if message.language == "fr" else money.english
        values[name] = write(int(values[name]), cast(Currency, values["currency"]))
    if message.language == "fr" and "role" in values:
        values["role"] = _FRENCH_ROLES[values["role"]]
    if "act" in values:
        values["act"] = _ACTS[message.language][values["act"]]
    rendered = _environment().get_template(f"{message.language}/{kind}.txt").render(values)
    subject, _, body = rendered.partition("\n")
    return Text(subject.strip(), body.lstrip("\n"))


def email(mail: Mail, message: Message, sender: str, now: Instant, zone: tzinfo) -> EmailMessage:
    """The mail as it is sent. Its `Message-ID` is made of the row's number, and so is that of each further attempt: a
    mail that is sent again because its sender died before it could say so is shown once."""
    text = text_of(mail.kind, message, zone)
    email_message = EmailMessage()
    email_message["From"] = sender
    email_message["To"] = mail.recipient
    email_message["Subject"] = text.subject
    email_message["Date"] = mail_date(to_datetime(now))
    domain = sender.rpartition("@")[2].strip(" >") or "localhost"
    email_message["Message-ID"] = f"<guichet-{mail.id}-{mail.created_at:x}@{domain}>"
    email_message["Auto-Submitted"] = "auto-generated"
    email_message.set_content(text.body)
    return email_message
