"""The JSON control API: force a scenario, read what the providers did. `app.py` documents it.

In requests and responses `family` is the name of a simulated provider.
"""

from collections import defaultdict
from dataclasses import asdict, fields
from typing import Any, Final, get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.clock import SECOND, iso
from guichet.domain import money
from guichet_simulator.context import Dashboard, SimulatorContext
from guichet_simulator.http_helpers import json_object, json_response, smallest_unit
from guichet_simulator.models import FAILED, PENDING, SUCCEEDED, Call, FinalState, QueuedCallback, Transaction
from guichet_simulator.scenarios import BY_NAME, SCENARIOS

_CALLS: Final = get_args(Call)
_DISPUTE_STATUSES: Final = (
    "needs_response", "under_review", "won", "lost", "prevented", "warning_needs_response", "warning_closed",
)  # fmt: skip
_DISPUTE_FIELDS: Final = ("status", "reason", "amount")
_CLAIMS: Final = ("succeeded", "failed", "expired", "attempt_failed", "processing")
#: Tables that refer to others come first, so that no reset leaves a callback without its transaction.
_TABLES: Final = (
    "callbacks", "books", "transactions", "forced", "calls", "tokens", "idempotency_keys", "messages", "settings",
)  # fmt: skip


def routes(ctx: SimulatorContext) -> list[BaseRoute]:
    control = _Control(ctx)
    return [
        Route("/control/next", control.force, methods=["POST"]),
        Route("/control/next", control.unforce, methods=["DELETE"]),
        Route("/control/transactions", control.transactions),
        Route("/control/transactions/{id:int}/decide", control.decide, methods=["POST"]),
        Route("/control/transactions/{id:int}/dispute", control.dispute, methods=["POST"]),
        Route("/control/transactions/{id:int}/undo", control.undo, methods=["POST"]),
        Route("/control/callbacks", control.callbacks),
        Route("/control/callbacks", control.send_callback, methods=["POST"]),
        Route("/control/calls", control.calls),
        Route("/control/dashboard", control.dashboard, methods=["POST"]),
        Route("/control/scenarios", control.scenarios),
        Route("/control/reset", control.reset, methods=["POST"]),
    ]


def _invalid(message: str, status: int = 422) -> Response:
    return json_response({"error": message}, status)


class _Control:
    def __init__(self, ctx: SimulatorContext) -> None:
        self._ctx = ctx
        self._store = ctx.store

    async def force(self, request: Request) -> Response:
        body = await json_object(request)
        provider, scenario, call = body.get("family"), body.get("scenario"), body.get("call", "debit")
        if provider not in self._ctx.providers or scenario not in BY_NAME or call not in _CALLS:
            return _invalid(f"family: {sorted(self._ctx.providers)}; call: {_CALLS}; scenario: {sorted(BY_NAME)}")
        forced = {"scenario": scenario, "call": call, "times": body.get("times", 1)}
        timing = {"after": body.get("after"), "delay": body.get("delay")}
        self._store.insert("forced", {"provider": provider, **forced, **timing})
        return json_response({"family": provider, **forced}, 201)

    async def unforce(self, request: Request) -> Response:
        self._store.wipe(["forced"])
        return Response(status_code=204)

    async def transactions(self, request: Request) -> Response:
        self._ctx.apply_due_decisions()
        conditions, args = ["1 = 1"], []
        for name, column in (("family", "provider"), ("reference", "client_ref"), ("kind", "kind")):
            if name in request.query_params:
                conditions.append(f"{column} = ?")
                args.append(request.query_params[name])
        where = " AND ".join(conditions)
        transactions = [_describe(tx) for tx in self._store.select(where, *args)]
        return json_response({"transactions": transactions, "books": self._books(where, args)})

    def _books(self, where: str, args: list[str]) -> list[dict[str, Any]]:
        entries: defaultdict[tuple[str, str | None, str], dict[str, list[int]]] = defaultdict(
            lambda: {"debit": [], "credit": []}
        )
        for row in self._store.rows(f"SELECT * FROM books WHERE {where} ORDER BY transaction_id", *args):  # noqa: S608
            entries[row["provider"], row["client_ref"], row["currency"]][row["kind"]].append(row["amount"])
        return [
            {
                "family": provider,
                "reference": reference,
                "currency": currency,
                "debits": len(moved["debit"]),
                "debited": money.plain(sum(moved["debit"])),
                "credits": len(moved["credit"]),
                "credited": money.plain(sum(moved["credit"])),
            }
            for (provider, reference, currency), moved in entries.items()
        ]

    async def decide(self, request: Request) -> Response:
        body = await json_object(request)
        self._ctx.apply_due_decisions()
        tx = self._store.known(request.path_params["id"])
        if tx is None or body.get("decision") not in ("approve", "refuse"):
            return _invalid("decision: approve or refuse; or no such transaction")
        if payer := body.get("payer"):
            self._store.set_payer(tx, str(payer))
        state: FinalState = SUCCEEDED if body["decision"] == "approve" else FAILED
        reason = None if state == SUCCEEDED else body.get("reason", "rejected_by_payer")
        if body.get("silent") is True:
            decided = self._store.settle(tx, state, reason, self._ctx.clock.now())
        else:
            decided = self._ctx.decide(tx, state, reason)
        if not decided:
            return _invalid(f"already {tx.state}", 409)
        return json_response(_describe(self._store.get(tx.id)))

    async def dispute(self, request: Request) -> Response:
        """The bank contests a card payment, or decides: in the status words of Stripe."""
        body = await json_object(request)
        tx = self._store.known(request.path_params["id"])
        contestable = tx and self._ctx.providers[tx.provider].has_disputes and tx.state == SUCCEEDED
        if not (tx and contestable) or body.get("status") not in _DISPUTE_STATUSES:
            return _invalid(f"a card payment that succeeded; status: {_DISPUTE_STATUSES}")
        opened = {
            "id": f"du_{tx.id}",
            "amount": smallest_unit(tx.amount, tx.currency),
            "created": self._ctx.clock.now() // SECOND,
            "reason": "fraudulent",
        }
        dispute = opened | tx.detail.get("dispute", {}) | {name: body[name] for name in _DISPUTE_FIELDS if name in body}
        tx = self._store.patch_detail(tx, dispute=dispute)
        self._ctx.queue_callback(tx, "disputed")
        return json_response(dispute)

    async def undo(self, request: Request) -> Response:
        """What had succeeded fails after all, and the money comes back; a failed debit succeeds after all."""
        tx = self._store.known(request.path_params["id"])
        if tx is None or tx.state == PENDING:
            return _invalid("a transaction that is final")
        state: FinalState = FAILED if tx.state == SUCCEEDED else SUCCEEDED
        self._store.undo(tx, state, self._ctx.clock.now())
        self._ctx.queue_callback(self._store.get(tx.id), state)
        return json_response(_describe(self._store.get(tx.id)))

    async def callbacks(self, request: Request) -> Response:
        reference = request.query_params.get("reference")
        if reference is None:
            queued = self._store.callbacks("1 = 1")
        else:
            where = "transaction_id IN (SELECT id FROM transactions WHERE client_ref = ?)"
            queued = self._store.callbacks(where, reference)
        names = [field.name for field in fields(QueuedCallback)]
        return json_response({"callbacks": [{name: getattr(one, name) for name in names} for one in queued]})

    async def send_callback(self, request: Request) -> Response:
        body = await json_object(request)
        tx = self._store.known(body.get("transaction"))
        if tx is None or body.get("claim") not in _CLAIMS:
            return _invalid(f"transaction: an id of the list; claim: {_CLAIMS}")
        event_id = self._ctx.queue_callback(tx, body["claim"], forged=bool(body.get("forged")))
        return json_response({"event_id": event_id}, 202)

    async def calls(self, request: Request) -> Response:
        rows = self._store.rows(
            "SELECT id, provider AS family, method, path, status, at FROM calls ORDER BY id DESC LIMIT 1000"
        )
        return json_response({"calls": [{**dict(row), "at": iso(row["at"])} for row in rows]})

    async def dashboard(self, request: Request) -> Response:
        body = await json_object(request)
        provider = body.get("family")
        if provider not in self._ctx.providers:
            return _invalid(f"family: {sorted(self._ctx.providers)}")
        current = asdict(self._ctx.dashboard(provider))
        changed = Dashboard(**(current | {name: body[name] for name in current if name in body}))
        self._store.set_setting(f"dashboard:{provider}", asdict(changed))
        return json_response(asdict(changed))

    async def scenarios(self, request: Request) -> Response:
        table = [{"digits": s.digits, "name": s.name, "meaning": s.meaning, "after": s.after} for s in SCENARIOS]
        not_shown = [
            {"family": name, "scenario": scenario, "because": why}
            for name, provider in self._ctx.providers.items()
            for scenario, why in provider.not_shown.items()
        ]
        return json_response({"scenarios": table, "not_shown": not_shown})

    async def reset(self, request: Request) -> Response:
        self._store.wipe(_TABLES)
        return Response(status_code=204)


def _describe(tx: Transaction) -> dict[str, Any]:
    return {
        "id": tx.id,
        "family": tx.provider,
        "kind": tx.kind,
        "operator": tx.operator,
        "operator_ref": tx.ref,
        "reference": tx.client_ref,
        "parent": tx.parent,
        "phone": tx.phone,
        "amount": money.plain(tx.amount),
        "currency": tx.currency,
        "state": tx.state,
        "waiting": tx.state == PENDING,
        "reason": tx.reason,
        "scenario": tx.scenario,
        "callback_url": tx.callback_url,
        "page_url": tx.detail.get("page_url"),
        "created_at": iso(tx.created_at),
        "decided_at": iso(tx.decided_at) if tx.decided_at else None,
    }
