"""What one simulated provider is asked for: the scenario that a request meets, the transaction that it becomes, and
those that the client's account finds again."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from msgspec import Struct, field, structs

from guichet.clock import SECOND, later
from guichet_simulator import scenarios
from guichet_simulator.context import Dashboard, SimulatorContext
from guichet_simulator.models import PENDING, SUCCEEDED, Call, Kind, Transaction
from guichet_simulator.scenarios import CallbackBehaviour, ResponseKind, Scenario

#: Seconds after the request until a forged callback.
_FORGED_AFTER: Final = 0.5


class NewTransaction(Struct, frozen=True):
    """A request that the provider takes; see `Transaction`. It expires after `lifetime` seconds (None: the provider's)
    when it waits for a customer."""

    kind: Kind
    scenario: Scenario
    operator: str
    ref: str
    amount: int
    currency: str = "XOF"
    lifetime: float | None = None
    client_ref: str | None = None
    phone: str | None = None
    parent: str | None = None
    resource: str = ""
    callback_url: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


class ProviderTransactions:
    #: The provider's name in addresses, in the control API and in the store.
    name: str
    #: Seconds that a customer has to confirm.
    lifetime: ClassVar[float] = 600

    def __init__(self, ctx: SimulatorContext) -> None:
        self.ctx = ctx

    @property
    def dashboard(self) -> Dashboard:
        return self.ctx.dashboard(self.name)

    def choose_scenario(self, call: Kind, digits: str, *, preauthorised: bool = False) -> Scenario:
        """The scenario of a debit or a credit. `preauthorised`: the customer gave a code and need not confirm."""
        if forced := self.forced_scenario(call):
            return forced
        if call == "credit":
            return scenarios.for_credit(digits) or scenarios.PROMPT
        return scenarios.for_debit(digits) or (scenarios.BY_NAME["succeeds"] if preauthorised else scenarios.WAITS)

    def choose_status_scenario(self, tx: Transaction) -> Scenario | None:
        """The scenario of a status call. The digits of a number concern only the first status call."""
        if forced := self.forced_scenario("status"):
            return forced
        digits = tx.detail.get("digits") or tx.phone or str(tx.amount // 100)
        scenario = scenarios.for_status(digits) if tx.kind == "debit" else None
        if scenario is None or tx.detail.get("status_asked"):
            return None
        self.ctx.store.patch_detail(tx, status_asked=True)
        return scenario

    def forced_scenario(self, call: Call) -> Scenario | None:
        """The scenario that `POST /simulator/control/next` forces on this call, used up once."""
        store = self.ctx.store
        rows = store.rows("SELECT * FROM forced WHERE provider = ? AND call = ? ORDER BY id LIMIT 1", self.name, call)
        if not rows:
            return None
        row = rows[0]
        if row["times"] is not None:
            store.run("UPDATE forced SET times = times - 1 WHERE id = ?", row["id"])
            store.run("DELETE FROM forced WHERE times <= 0")
        return scenarios.with_timing(scenarios.BY_NAME[row["scenario"]], row["after"], row["delay"])

    def create(self, new: NewTransaction) -> Transaction:
        """Raises DuplicateRef."""
        now, scenario = self.ctx.clock.now(), new.scenario
        wait = (new.lifetime or self.lifetime) if scenario.waits_for_customer else scenario.after
        due_at = None if scenario.final_state is None else later(now, int(wait * SECOND))
        other_currency = "XAF" if new.currency == "XOF" else "XOF"
        given = structs.asdict(new)
        del given["lifetime"]
        tx = self.ctx.store.add(
            given
            | {
                "provider": self.name,
                "stated_amount": None if scenario.hides_amount else new.amount + scenario.amount_error,
                "stated_currency": other_currency if scenario.wrong_currency else new.currency,
                "state": PENDING,
                "scenario": scenario.name,
                "planned_state": scenario.final_state,
                "planned_reason": scenario.reason,
                "due_at": due_at,
                "created_at": now,
                "company": self.dashboard.company,
            }
        )
        if scenario.callbacks is CallbackBehaviour.FORGED:
            self.ctx.queue_callback(tx, SUCCEEDED, after=_FORGED_AFTER, forged=True)
        if scenario.response is ResponseKind.FINAL and scenario.final_state is not None:
            self.ctx.decide(tx, scenario.final_state, scenario.reason)
            return self.ctx.store.get(tx.id)
        if due_at is not None:
            self.ctx.falls_due(due_at)
        return tx

    def find(self, kind: Kind, ref: str, resource: str = "") -> Transaction | None:
        found = self.select("kind = ? AND resource = ? AND ref = ?", kind, resource, ref)
        return found[0] if found else None

    def select(self, where: str, *args: Any) -> list[Transaction]:
        """Those that the account of the client's present key made, newest first."""
        self.ctx.apply_due_decisions()
        where = f"provider = ? AND company = ? AND {where}"
        return self.ctx.store.select(where, self.name, self.dashboard.company, *args)
