"""Every regular expression in `guichet/`, found by reading the source, and the table of those that strangers' texts
meet."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import guichet

ROOT: Final = Path(guichet.__file__).parent
_CALLS: Final = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
#: What looks for matches at each character of a text, and not at its beginning only.
_SCANS: Final = _CALLS - {"compile", "match", "fullmatch"}
#: What the text of a file with a pattern has. The others, nine of ten, are not parsed.
_TRACE: Final = re.compile(r"\bre\.|\bpattern=")
_FLAGS: Final = {"re.DOTALL": re.DOTALL, "re.MULTILINE": re.MULTILINE, "re.IGNORECASE": re.IGNORECASE}


class Site(NamedTuple):
    """A regular expression in the source. `pattern`: None when it is put together while the process runs."""

    pattern: str | bytes | None
    flags: int
    scans: bool


class Worst(NamedTuple):
    """A text for which a pattern does most: `before`, then `pump` again and again, then `after`."""

    before: str
    pump: str
    after: str = ""

    def text(self, repetitions: int) -> str:
        return self.before + self.pump * repetitions + self.after


#: By file and name (a constant, or the function that holds the pattern): what strangers send there, in its worst form.
#: Strangers are everybody but those who write the settings: customers, merchants and their programs, the people of the
#: console, providers and whoever says to be one, and receivers of webhooks.
STRANGERS: Final[dict[str, Worst]] = {
    "accounts/access_acts.py _SUBJECT": Worst("user/1/", "1", "!"),
    "accounts/objections.py _SHAPE": Worst("1-1-", "a", "!"),
    "accounts/signed_tokens.py _SHAPE": Worst("a" * 43 + ".", "0", "!"),
    "checkout/tokens.py _SHAPE": Worst("a" * 22 + ".", "0", "!"),
    "checkout/views.py initials": Worst("", "!", "a"),
    "clock.py _READABLE": Worst("2026-11-20T10:15:30.", "1", "!"),
    "console/downloads.py file_name": Worst("", "!", "a"),
    "console/forms.py _TOKEN": Worst("", "0", "!"),
    "console/links/new_link.py _NUMBER": Worst("-", "1", "!"),
    "console/links/new_link.py _SPACES": Worst("", " ", "a"),
    "console/links/new_link.py _THOUSANDS": Worst("1", ".000", "!"),
    "db/references.py _CANONICAL": Worst("0" * 8, "-0000", "!"),
    "domain/accounts.py _SECRET": Worst("", "a", "!"),
    "domain/mails.py _PLAIN": Worst("a@", "a.", "!"),
    "domain/money.py _TYPED": Worst("1.", "1", "!"),
    "domain/names.py _ADDRESS": Worst("", "1.", "!"),
    "domain/treasury.py _BANK": Worst("bank:", "a", "!"),
    "domain/treasury.py _FLOAT": Worst("a:", "a", "!"),
    "exports/cells.py _BETWEEN": Worst("", ",", "a"),
    "history/staff_search.py _PHONE": Worst("+", "1", "!"),
    "history/staff_search.py search": Worst("", "!", "1"),
    "ledger/provider_statement.py _AMOUNT": Worst("-", "1", "!"),
    "ledger/provider_statement.py _FRENCH_DATE": Worst("20/11/2026", "a", "\n"),
    "ledger/provider_statement.py _GROUPED": Worst("-1", ".000", "!"),
    "ledger/provider_statement.py _SPACES": Worst("", " ", "a"),
    "ledger/provider_statement.py _amount": Worst("", ".", "1"),
    "logs.py _EMAIL": Worst("a", "%40", "!"),
    "logs.py _NUMBER": Worst("", "1", "a"),
    "merchants/api_keys.py _KEY": Worst("sk_live_", "a", "!"),
    "payments/create.py _ODD_SPACES": Worst("", "a ", "a"),
    "providers/pawapay/history.py _NOT_LETTERS": Worst("", "!", "a"),
    "providers/pawapay/http_message_signatures.py _COVERED": Worst("(", '"a" ', '"a'),
    "providers/pawapay/http_message_signatures.py _PARAMETER": Worst("", ';a="', ";a="),
    "providers/pawapay/http_message_signatures.py _SIGNATURE": Worst("", " ", "a=:a"),
    "providers/pawapay/http_message_signatures.py _SIGNATURE_INPUT": Worst("a=(", '"a" ', '"a'),
    "providers/paydunya/responses.py _BALANCE": Worst("1", " ", "!"),
    "providers/paydunya/responses.py _TOKEN": Worst("", "a", "!"),
    "providers/shared/fields.py _FORBIDDEN": Worst("", "a", "\0"),
    "providers/shared/fields.py _FULL_NUMBER": Worst("1", "1", "!"),
    "providers/shared/fields.py _JSON_PART": Worst("", "\\ud83d", "\\"),
    "providers/shared/fields.py _NOT_PLAIN": Worst("", "!", "a"),
    "providers/shared/fields.py _SEPARATORS": Worst("", " ", "1"),
    "providers/shared/fields.py _SUSPECT": Worst("", "\\u00", "\\"),
    "providers/shared/signatures.py _UNIX_SECONDS": Worst("", "1", "!"),
    "sandbox/clock.py _DURATION": Worst("", "1h", "!"),
    "sandbox/clock.py read_duration": Worst("", "1", "!"),
    "schemas/validation.py _BAD_CHARACTER": Worst("", "a", "\0"),
    "schemas/body_fields.py _SUSPECT_ESCAPE": Worst("", "\\u00", "\\"),
    "schemas/body_fields.py _WHITESPACE": Worst("", " ", "a"),
    "schemas/payment.py _PHONE_NUMBER": Worst("+", "1", "!"),
    "schemas/body_fields.py _BAD_URL_CHARACTER": Worst("", "a", " "),
    "server/connection_limits.py UPLOADS": Worst("/admin/reconciliation/statement?", "a", "\n"),
    "server/content_encoding.py _ZERO_QUALITY": Worst("q=0.", "0", "!"),
    "server/request_context.py _ACCEPTED_ID": Worst("", "a", "!"),
    "webhooks/sender.py _SECONDS": Worst("", "1", "!"),
}

#: Patterns that no stranger's text meets, and whose texts they read.
OURS: Final[dict[str, str]] = {
    "api/docs.py _INLINE": "our own pages",
    "api/markdown.py _SPACE_BEFORE_MARK": "our own guide",
    "api/markdown.py anchor": "our own guide",
    "api/merchant_guide.py _LINK": "our own guide",
    "api/merchant_guide.py _anchors": "our own guide",
    "checkout/views.py _mode": "the catalogue",
    "cli/arguments.py _DATE_ONLY": "the command line",
    "cli/mcp_server.py _references": "our own document",
    "db/migrate.py _LOCKING": "statements of migrations",
    "db/postgres/replication.py _NAME": "the settings of PostgreSQL",
    "db/postgres/replication.py _QUORUM": "the settings of PostgreSQL",
    "db/postgres/replication.py _SEGMENT": "names of PostgreSQL's files",
    "db/schema.py _NAME": "names of migrations",
    "db/sqlite/statements.py _update_from": "our own statements",
    "db/sqlite/statements.py _INSERT": "our own statements",
    "db/sqlite/statements.py _UPDATE": "our own statements",
    "domain/chain_heads.py _Digest": "heads that we published",
    "domain/messages.py _ENTRY": "our own texts",
    "merchants/catalogue_file.py _FEE": "the catalogue",
    "merchants/catalogue_file.py _SHAPES": "the catalogue",
    "pages/i18n.py _ENTRY": "our own texts",
    "pages/render.py _minified": "our own style sheets",
    "payments/create.py _numbers_of": "a list of lengths, matched with at most 15 digits",
    "providers/provider_types.py _words": "the providers' file",
    "providers/providers_file.py _NAME": "the providers' file",
    "providers/providers_file.py _line": "the providers' file",
    "schemas/payment.py identifier": "describes a response in the API's document",
    "schemas/payment.py phone_number": "describes a response in the API's document",
    "schemas/webhook_endpoint.py secret": "describes a response in the API's document",
    "settings/parsers.py _KUBERNETES": "the settings",
    "settings/parsers.py _TOKEN": "the settings",
    "settings/parsers.py _names_in": "the settings",
    "settings/parsers.py shown_address": "the settings",
}


@cache
def sites() -> dict[str, list[Site]]:
    """Every pattern by file and name."""
    found: dict[str, list[Site]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        source = path.read_text()
        if not _TRACE.search(source):
            continue
        tree, file = ast.parse(source), path.relative_to(ROOT).as_posix()
        scanned = set(_scanned_names(tree))
        for name, call in _calls(tree, "<module>"):
            method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            scans = name in scanned if method == "compile" else method in _SCANS
            found[f"{file} {name}"].append(Site(_pattern_of(call), _flags_of(call), scans))
    return dict(found)


def _scanned_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _SCANS and isinstance(node.value, ast.Name):
            yield node.value.id


def _calls(node: ast.AST, name: str) -> Iterator[tuple[str, ast.Call]]:
    """Each call that holds a pattern, with the name of the constant, field or function around it."""
    for child in ast.iter_child_nodes(node):
        inner = name
        match child:
            case ast.FunctionDef(name=inner) | ast.AsyncFunctionDef(name=inner):
                pass
            case ast.AnnAssign(target=ast.Name(id=target)) | ast.Assign(targets=[ast.Name(id=target)]):
                inner = target if name == "<module>" or isinstance(node, ast.ClassDef) else name
        if isinstance(child, ast.Call) and _is_pattern(child):
            yield inner, child
        yield from _calls(child, inner)


def _is_pattern(call: ast.Call) -> bool:
    of_re = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "re" and call.func.attr in _CALLS
    return of_re or any(keyword.arg == "pattern" and _constant(keyword.value) for keyword in call.keywords)


def _constant(node: ast.expr) -> str | bytes | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) else None


def _pattern_of(call: ast.Call) -> str | bytes | None:
    named: list[Any] = [keyword.value for keyword in call.keywords if keyword.arg == "pattern"]
    return _constant((named or call.args)[0])


def _flags_of(call: ast.Call) -> int:
    texts = [ast.unparse(each) for each in (*call.args[1:], *(keyword.value for keyword in call.keywords))]
    return sum(_FLAGS[text] for text in texts if text in _FLAGS)
