"""Arguments and options that several commands have."""

import os
import pwd
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from guichet.clock import DAY, Instant, later, read_date
from guichet.db.references import parse_reference
from guichet.domain import ids, posting_rules
from guichet.domain.accounts import normal_email
from guichet.domain.audit_log import CONSOLE, Actor, command_os_user

T = TypeVar("T")

#: Ids are 64-bit integers in both databases.
_MAX_ID: Final = 2**63 - 1
_LONGEST_SENTENCE: Final = 2000
_DATE_ONLY: Final = re.compile(r"\d{4}-?\d{2}-?\d{2}")


def row_id(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and 1 <= int(text) <= _MAX_ID):
        raise typer.BadParameter(f"{text!r} is not an id: a whole number from 1 is expected.")
    return int(text)


def parser(read: Callable[[str], T | None], expected: str) -> Callable[[str], T]:
    """`read` as typer calls it: what it cannot read is a misuse of the command."""

    def parse(text: str) -> T:
        value = read(text)
        if value is None:
            raise typer.BadParameter(expected)
        return value

    return parse


instant: Final = parser(read_date, "an ISO-8601 date is expected, such as 2026-11-30 or 2026-11-30T12:00:00Z.")


def _end_instant(text: str) -> Instant:
    """A date without a time means the end of that day."""
    return later(instant(text), DAY - 1 if _DATE_ONLY.fullmatch(text) else 0)


email_address: Final = parser(normal_email, "An e-mail address is expected.")

if TYPE_CHECKING:
    MerchantIdValue = ids.MerchantId
    WalletStatusValue = posting_rules.WalletStatus
    InstantValue = Instant
else:
    # The help of a command prints the name of an argument's type.
    MerchantIdValue, WalletStatusValue, InstantValue = int, str, str


#: A reference for the examples in the help of commands.
EXAMPLE_REFERENCE: Final = "01a202b1-10b7-453a-868b-cad7dfa87efe"


_reference: Final = parser(parse_reference, f"a reference is expected, such as {EXAMPLE_REFERENCE}.")


def _sentence(text: str) -> str:
    """What a person typed about an act: kept for ever, so it must be there and be printable."""
    text = text.strip()
    if not text or not text.isprintable() or len(text) > _LONGEST_SENTENCE:
        raise typer.BadParameter(f"1 to {_LONGEST_SENTENCE} printable characters are expected.")
    return text


Reference = Annotated[str, typer.Argument(parser=_reference, metavar="REFERENCE", help="Of the payment or refund.")]
DeliveryOrPayment = Annotated[
    str,
    typer.Argument(
        parser=_reference, metavar="REFERENCE", help="The webhook's id, or its payment's reference: its last webhook."
    ),
]
_EVIDENCE: Final = typer.Option(
    "--evidence", parser=_sentence, metavar="TEXT", help="What proves it, for whoever reads the audit log."
)
Evidence = Annotated[str, _EVIDENCE]
OptionalEvidence = Annotated[str | None, _EVIDENCE]
By = Annotated[str, typer.Option("--by", parser=_sentence, metavar="NAME", help="Who decides.")]
OptionalBy = Annotated[
    str | None,
    typer.Option("--by", parser=_sentence, metavar="NAME", help="Who decides, for the audit log."),
]


def actor(name: str | None = None) -> Actor:
    """Who acts: the given name, and the operating-system user of this process."""
    os_user = command_os_user(_real_user(), os.environ.get("SUDO_USER", ""))
    return Actor(name or os_user, os_user, is_typed=name is not None)


def _real_user() -> str:
    """The name of the real uid, which no variable of the environment changes. An account called `console` is named by
    its number: that word stands for acts in the console."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # A container's user need not have a name.
        return f"uid {uid}"
    return name if name.casefold() != CONSOLE else f"uid {uid}"


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
#: What a hash chain must still contain.
KnownDigests = Annotated[
    list[str] | None,
    typer.Option("--known-head", metavar="DIGEST", help="Head digest that an earlier check printed; may be repeated."),
]
KnownHeadsFile = Annotated[
    Path | None,
    typer.Option(
        "--known-heads", exists=True, dir_okay=False, readable=True, help="File of published heads, one JSON line each."
    ),
]
MerchantId = Annotated[
    MerchantIdValue, typer.Argument(parser=row_id, metavar="MERCHANT_ID", help="As `guichet merchant list` shows it.")
]


def merchant_option(explanation: str, metavar: str = "MERCHANT_ID") -> Any:
    """`--merchant`, as several commands have it."""
    return typer.Option("--merchant", parser=row_id, metavar=metavar, help=explanation)


#: Both ends of a period are included; a time without an offset is UTC (D13).
Since = Annotated[
    Instant | None,
    typer.Option("--from", parser=instant, metavar="DATE", help="From this date or time on (UTC without an offset)."),
]
Until = Annotated[
    Instant | None,
    typer.Option("--to", parser=_end_instant, metavar="DATE", help="Up to this time, or to the end of this day."),
]
