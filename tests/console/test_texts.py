"""Every sentence of the console is in both catalogues, says the same things, and is used."""

import re
from pathlib import Path

import pytest

import guichet.console
from guichet.domain.roles import MERCHANT_ROLES, STAFF_ROLES
from guichet.pages import i18n
from guichet.server.doctor.check import Check
from tests.texts import Catalogues

HERE = Path(guichet.console.__file__).parent
PACKAGE = HERE.parent
CATALOGUES = Catalogues(HERE)
#: Keys that are put together: prefix and how many parts follow.
COMPOSED = (
    "act_named.",
    "act_subject.",
    "activity.act.",
    "admin_documents.fault.",
    "admin_nav.",
    "admin_tab.",
    "anonymise.count.",
    "balance.fault.",
    "clock.unit.",
    "comparison.count.",
    "comparison.fault.",
    "comparison.field.",
    "comparison.form.",
    "comparison.kind.",
    "comparison.meaning.",
    "comparison.problem.",
    "comparison.source.",
    "desk.state.",
    "desk.text.",
    "developers.scope.",
    "developers.state.",
    "developers.status.",
    "done.",
    "env.",
    "exports.format.",
    "exports.gone.",
    "exports.gone_text.",
    "exports.kind.",
    "fact.",
    "fact_source.",
    "fact_subject.",
    "fact_target.",
    "jobs.kind.",
    "jobs.status.",
    "links.payment.",
    "links.poster.",
    "links.state.",
    "list.",
    "mails.often.",
    "merchant_status.",
    "nav.",
    "nav_group.",
    "operations.act.",
    "operations.argument.",
    "operations.bearer.",
    "operations.check.",
    "operations.check_todo.",
    "operations.decision.",
    "operations.delivery.",
    "operations.delivery_error.",
    "operations.dispute.",
    "operations.dispute_reason.",
    "operations.effect.",
    "operations.event.",
    "operations.failure_reason.",
    "operations.found.",
    "operations.kind.",
    "operations.noun.",
    "operations.queue.",
    "operations.stage.",
    "operations.state.",
    "operations.to.",
    "operations.told.",
    "operations.unmatched.",
    "operations.weather.",
    "overview.days_",
    "overview.step.",
    "overview.step_do.",
    "overview.step_text.",
    "password.weak.",
    "payments.contest.",
    "payments.delivery_error.",
    "payments.event.",
    "payments.failure.",
    "payments.period.",
    "payments.refusal.",
    "payments.status.",
    "provider.",
    "role.",
    "role_text.",
    "staff.",
    "staff_text.",
    "state.",
    "statement.",
    "status.",
    "team.remove_",
    "treasury.kind.",
    "treasury.status.",
    "treasury.what.",
    "user_status.",
    "webhooks.error.",
    "webhooks.since.",
    "webhooks.status.",
    "webhooks.warning.",
)


def test_both_languages_have_the_same_keys() -> None:
    CATALOGUES.check_keys()


def test_every_text_takes_the_same_values_in_both_languages_and_is_used() -> None:
    for key in sorted(CATALOGUES.texts["fr"]):
        CATALOGUES.check_text(key, COMPOSED)


def test_every_key_that_is_used_exists() -> None:
    CATALOGUES.check_used(40)


@pytest.mark.parametrize("language", i18n.LANGUAGES)
def test_every_role_has_its_words(language: str) -> None:
    wanted = {f"role.{role}" for role in MERCHANT_ROLES} | {f"role_text.{role}" for role in MERCHANT_ROLES}
    assert wanted | {f"staff.{role}" for role in STAFF_ROLES} <= CATALOGUES.texts[language].keys()


@pytest.mark.parametrize("language", i18n.LANGUAGES)
def test_every_check_of_the_doctor_has_its_words(language: str) -> None:
    texts = CATALOGUES.texts[language].keys()
    sources = [path.read_text() for path in (PACKAGE / "server" / "doctor").glob("*.py")]
    names = {name for source in sources for name in re.findall(r'\b(?:Doctor)?Check\(\s*"([^"]+)"', source)}
    checks = {Check(name, ()).key for name in names}
    assert len(checks) > 12
    assert {f"operations.{part}.{check}" for check in checks for part in ("check", "check_todo")} <= texts


def test_french_texts_follow_french_typography() -> None:
    CATALOGUES.check_french_typography()


def test_why_something_is_done_has_one_word_in_french() -> None:
    """« Motif »; a bank may still « donner raison » to a customer."""
    said = [key for key, text in CATALOGUES.texts["fr"].items() if re.search(r"\braisons?\b", text, re.IGNORECASE)]
    assert said == ["payments.event.dispute_lost"]


def test_a_text_that_is_not_in_one_line_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "locale" / "fr" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "a.po").write_text('msgid ""\nmsgstr ""\n"Language: fr\\n"\n\nmsgid "a.b"\nmsgstr "\\"c\\""\n')
    assert i18n.catalogue("fr", tmp_path) == {"a.b": '"c"'}
    (folder / "b.po").write_text('msgid "d.e"\nmsgstr ""\n"f"\nmsgid "g.h"\n"i"\nmsgstr "j"\n')
    with pytest.raises(ValueError, match="not in one line"):
        i18n.catalogue("fr", tmp_path)
