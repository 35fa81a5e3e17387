"""docs/operations: the dashboard and the alert rules use metrics, labels and values that `/metrics` really has, and
the staff's guide names every one of them."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped,unused-ignore]
from prometheus_client.parser import text_string_to_metric_families

from guichet.back_office import provider_balances
from guichet.clock import Instant
from guichet.db.postgres.replication import Archive, Replication, Slot, Standby, WaitingCommits
from guichet.domain.money import Hundredths
from guichet.domain.reconciliation import Line
from guichet.ledger.audit import audit
from guichet.providers.base import Accepted, Unknown
from guichet.providers.capabilities import FloatBalance
from guichet.server.db_metrics import AGES, OLDER
from guichet.server.health_checks import STUCK_AFTER
from guichet.server.replication_metrics import replication_families
from guichet.settings import Settings
from tests.cli.conftest import ROOT
from tests.fakes.scripted_provider import ScriptedProvider, done, taken
from tests.service_fixture import open_service

OPERATIONS: Final = ROOT / "docs" / "operations"


def _rules(name: str) -> list[dict[str, Any]]:
    groups = yaml.safe_load((OPERATIONS / name).read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


RULES: Final = _rules("alerts.yml")
#: Rules about Patroni, etcd and HAProxy, whose metrics are not ours.
OTHERS_RULES: Final = _rules("alerts-ha.yml")
RULE_TESTS: Final = sorted(Path(__file__).parent.glob("alerts*_test.yml"))
DASHBOARD: Final[dict[str, Any]] = json.loads((OPERATIONS / "grafana.json").read_text(encoding="utf-8"))
PANELS: Final[list[dict[str, Any]]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS: Final = {
    **{rule["alert"]: rule["expr"] for rule in RULES},
    **{f"{panel['title']} {target['refId']}": target["expr"] for panel in PANELS for target in panel["targets"]},
}
CHAPTER: Final = (
    (ROOT / "docs" / "admin-guide.md")
    .read_text(encoding="utf-8")
    .split("\n## Metrics and alerts\n")[1]
    .split("\n## ")[0]
)
#: What Prometheus itself adds, and what PromQL is made of.
ADDED: Final = {"job", "instance"}
WORDS: Final = {
    *("sum", "max", "min", "by", "rate", "increase", "histogram_quantile", "max_over_time", "avg_over_time", "vector"),
    *("or", "and", "unless", "on", "bool"),
}
#: A primary of which everything can be told: a standby that is named, one that is connected, a slot and an archive.
REPLICATED: Final = Replication(
    required=1,
    named=("b",),
    absent=("b",),
    missing=1,
    waiting=WaitingCommits(2, 31.5),
    standbys=[Standby("c", "streaming", False, 4096.0, 0.1)],
    slots=[Slot("b", False, False, 1e9)],
    archive=Archive(True, 1.8e9, False, 1),
)
_SELECTOR: Final = re.compile(r"([A-Za-z_:][\w:]*)\{([^}]*)\}")
_MATCHER: Final = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')


class ListingProvider(ScriptedProvider):
    """Has a history, so its account is reconciled."""

    async def history(self, since: Instant, until: Instant, notify_url: str) -> list[Line] | Unknown:
        return []


@pytest.fixture
async def exposed(settings: Settings) -> dict[str, set[str]]:
    """Every series name that `/metrics` has on PostgreSQL, and its labels where a sample shows them."""
    op = ListingProvider()
    op.script("initiate", done, taken)
    op.script("refund", taken)
    op.script("refund_status", Accepted())
    token = "a-token-of-sixteen-or-more"
    connected: dict[str, Any] = {"accounts": {"op": op}, "routes": {"mtn": ["op"]}}
    async with open_service(replace(settings, metrics_token=token), **connected) as service:
        merchant = (await service.merchant()).live
        collected = await merchant.pay()
        await merchant.post(f"/payments/{collected['reference']}/refund")
        await service.run_worker()
        await merchant.pay()
        service.worker.start()
        await provider_balances.claim_due(service.ctx.db, ["op"], service.ctx.clock.now())
        await provider_balances.store(
            service.ctx.db,
            "op",
            [FloatBalance("", Hundredths(5000_00), "XOF")],
            {"": Hundredths(9000_00)},
            service.ctx.clock.now(),
        )
        await audit(service.ctx.db, service.ctx.clock, lambda _: None)
        await service.call("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
        answer = await service.call("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
        await service.worker.stop()
    found: dict[str, set[str]] = {"up": set()}
    for family in [*text_string_to_metric_families(answer.raw.decode()), *replication_families(REPLICATED)]:
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
        found.update((family.name + suffix, set()) for suffix in suffixes)
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


on_postgresql = pytest.mark.parametrize("settings", ["postgresql"], indirect=True)


@on_postgresql
def test_every_expression_uses_existing_metrics_and_labels(exposed: dict[str, set[str]]) -> None:
    for title, expression in EXPRESSIONS.items():
        names = _names(expression)
        assert names, title
        assert names <= exposed.keys(), title
        for name, matchers in _SELECTOR.findall(expression):
            used = {label for label, _, _ in _MATCHER.findall(matchers)} - ADDED
            assert used <= exposed[name], f"{title}: {name}"
        for labels in re.findall(r"\bby\s*\(([^)]*)\)", expression):
            known = ADDED.union(*(exposed[name] for name in names))
            assert {label.strip() for label in labels.split(",")} <= known, title


@on_postgresql
def test_the_guide_names_every_metric_and_no_other(exposed: dict[str, set[str]]) -> None:
    ours = {re.sub(r"_(bucket|sum|count)$", "", name) for name in exposed if name.startswith("guichet_")}
    named = re.findall(r"^\| `(guichet_\w+)`(.*?)\|", CHAPTER, re.MULTILINE)
    assert sorted(name for name, _ in named) == sorted(ours)
    for name, labels in named:
        listed = set(re.findall(r"`(\w+)`", labels))
        shown = exposed.get(name) or exposed.get(f"{name}_bucket", set())
        if shown:
            assert listed == shown - {"le"}, name


def test_stuck_means_what_the_doctor_calls_stuck() -> None:
    older = [*(name for name, age in AGES.items() if age > STUCK_AFTER), OLDER]
    for title in ("GuichetPaymentsStuck", "Live payments pending over an hour A"):
        (used,) = re.findall(r'age=~"([^"]*)"', EXPRESSIONS[title])
        assert used.split("|") == older, title


def test_every_alert_says_whom_it_wakes_and_why() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES) > 10
    for rule in [*RULES, *OTHERS_RULES]:
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}, rule
        assert rule["labels"]["severity"] in ("page", "ticket"), rule
        assert rule["annotations"]["summary"].endswith((".", "?", "`.", "right?")), rule
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m")), rule
    documented = re.findall(r"^\| `(Guichet[A-Za-z]+)` \| (\w+) \|", CHAPTER, re.MULTILINE)
    assert documented == [(rule["alert"], rule["labels"]["severity"]) for rule in RULES]


@pytest.mark.parametrize("rule", [*RULES, *OTHERS_RULES], ids=lambda rule: str(rule["alert"]))
def test_the_runbook_of_an_alert_names_it(rule: dict[str, Any]) -> None:
    file, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    sections = re.split(r"^#+ (.+)$", (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
    texts = dict(zip(sections[1::2], sections[2::2], strict=True))
    (text,) = [text for title, text in texts.items() if title.lower().replace(" ", "-") == anchor]
    assert f"`{rule['alert']}`" in text


def test_what_only_patroni_has_is_not_missed_without_it() -> None:
    """`PatroniNoPrimary` fired for ever where there is none, and held back Guichet's own alerts."""
    tested = (Path(__file__).parent / "alerts_test.yml").read_text(encoding="utf-8")
    assert "{eval_time: 10m, alertname: PatroniNoPrimary, exp_alerts: []}" in tested.partition("patroni_primary")[0]
    page = (OPERATIONS / "metrics.md").read_text(encoding="utf-8")
    [sample] = re.findall(r"```yaml\n(inhibit_rules:.*?)```", page, re.DOTALL)
    assert "Patroni" not in sample.partition("# Only with Patroni")[0]


def test_every_alert_has_a_test() -> None:
    """Of the older rules some were seen to fire in reality only (docs/operations/metrics.md)."""
    tested = "".join(file.read_text(encoding="utf-8") for file in RULE_TESTS)
    later = RULES[[rule["alert"] for rule in RULES].index("GuichetConnectionsRefused") :]
    for rule in [*later, *OTHERS_RULES]:
        assert re.search(rf"alertname: {rule['alert']}, exp_alerts: \[\{{", tested), f"{rule['alert']} never fires"


def test_what_a_missing_standby_explains_is_inhibited() -> None:
    """The sample for Alertmanager names alerts that there are."""
    page = (OPERATIONS / "metrics.md").read_text(encoding="utf-8")
    [sample] = re.findall(r"```yaml\n(inhibit_rules:.*?)```", page, re.DOTALL)
    known = {rule["alert"] for rule in [*RULES, *OTHERS_RULES]}
    for inhibition in yaml.safe_load(sample)["inhibit_rules"]:
        for matcher in [*inhibition["source_matchers"], *inhibition["target_matchers"]]:
            (names,) = re.findall(r'alertname\s*=~?\s*"([^"]*)"', matcher)
            assert set(names.split("|")) <= known


def test_prometheus_understands_the_objectives(tmp_path: Path) -> None:
    page = (OPERATIONS / "capacity.md").read_text(encoding="utf-8")
    expressions = re.findall(r"```promql\n(.*?)```", page, re.DOTALL)
    assert len(expressions) >= 4
    rules = [{"record": f"objective:{number}", "expr": each} for number, each in enumerate(expressions)]
    file = tmp_path / "objectives.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "objectives", "rules": rules}]}), encoding="utf-8")
    _promtool("check", "rules", file)


@on_postgresql
def test_the_objectives_use_existing_metrics(exposed: dict[str, set[str]]) -> None:
    page = (OPERATIONS / "capacity.md").read_text(encoding="utf-8")
    for expression in re.findall(r"```promql\n(.*?)```", page, re.DOTALL):
        assert _names(expression) <= exposed.keys(), expression


def test_the_rules_fire_when_they_should() -> None:
    _promtool("check", "rules", OPERATIONS / "alerts.yml", OPERATIONS / "alerts-ha.yml")
    _promtool("test", "rules", *(file.name for file in RULE_TESTS))


def test_prometheus_understands_the_dashboard(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{panel['id']}:{target['refId']}", "expr": _filled(target["expr"])}
        for panel in PANELS
        for target in panel["targets"]
    ]
    file = tmp_path / "dashboard.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}), encoding="utf-8")
    _promtool("check", "rules", file)


def test_legends_name_labels_that_are_left() -> None:
    """A label that `by` dropped would be shown as nothing, and a kept one that no legend names as twins."""
    for panel in PANELS:
        for target in panel["targets"]:
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            outermost = re.match(
                r"\(*(?:histogram_quantile\([\d.]+, )?(?:sum|max|min)(?: by \(([^)]*)\))?[ (]", target["expr"]
            )
            left = set(re.findall(r"\w+", outermost[1] or "")) - {"le"} if outermost else {"instance"}
            assert named == left, panel["title"]


def test_the_commands_that_alerts_name_exist() -> None:
    for rule in RULES:
        for command in re.findall(r"`guichet ([a-z ]+)`", rule["annotations"]["summary"]):
            assert command in ("doctor", "incidents", "ledger audit", "providers balances"), rule


def test_the_dashboard_can_be_imported() -> None:
    assert {"title", "uid", "schemaVersion", "panels", "templating", "time"} <= DASHBOARD.keys()
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    variables = {variable["name"] for variable in DASHBOARD["templating"]["list"]} | {"__rate_interval"}
    for panel in PANELS:
        assert panel["title"]
        assert panel["targets"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}"
            assert set(re.findall(r"\$(\w+)", target["expr"])) <= variables


def test_no_panels_overlap() -> None:
    taken_cells: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken_cells, panel["title"]
        taken_cells |= cells


def _promtool(*arguments: str | Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip(
            "LOUD: promtool is not installed (Debian's package prometheus), the expressions are read by name only"
        )
    folder = Path(__file__).parent
    ran = subprocess.run([promtool, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _filled(expression: str) -> str:
    """As Grafana sends it."""
    return expression.replace("$__rate_interval", "1m").replace("$job", "guichet")


def _names(expression: str) -> set[str]:
    """Identifiers that are neither labels, nor texts, nor PromQL's own words."""
    bare = re.sub(r'"[^"]*"', "", expression)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\bby\s*\([^)]*\)", "", bare)
    return set(re.findall(r"[A-Za-z_:][\w:]*", bare)) - WORDS
