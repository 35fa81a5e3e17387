"""The JSON control API: force a scenario, read the operators' books. Documented in `app.py`."""

from collections import defaultdict
from dataclasses import asdict, fields
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from guichet.clock import iso
from guichet.domain import money
from guichet_simulator.base import json_answer, json_object
from guichet_simulator.context import Dashboard, Desk
from guichet_simulator.scenarios import BY_NAME, NOT_SHOWN, SCENARIOS
from guichet_simulator.store import FAILED, PENDING, SUCCEEDED, QueuedCallback, State, Transaction

_CALLS: Final = ("debit", "credit", "status", "token")
_CLAIMS: Final = ("succeeded", "failed", "expired", "attempt_failed", "processing")
#: Children first: foreign keys or not, a half-done reset should not leave orphans.
_MEMORY: Final = ("callbacks", "books", "transactions", "forced", "calls", "tokens", "replays", "messages", "settings")


def routes(desk: Desk) -> list[BaseRoute]:
    control = _Control(desk)
    return [
        Route("/control/next", control.force, methods=["POST"]),
        Route("/control/next", control.unforce, methods=["DELETE"]),
        Route("/control/transactions", control.transactions),
        Route("/control/transactions/{id:int}/decide", control.decide, methods=["POST"]),
        Route("/control/callbacks", control.callbacks),
        Route("/control/callbacks", control.send_callback, methods=["POST"]),
        Route("/control/calls", control.calls),
        Route("/control/dashboard", control.dashboard, methods=["POST"]),
        Route("/control/scenarios", control.scenarios),
        Route("/control/reset", control.reset, methods=["POST"]),
    ]


def _wrong(message: str, status: int = 422) -> Response:
    return json_answer({"error": message}, status)


class _Control:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._store = desk.store

    async def force(self, request: Request) -> Response:
        body = await json_object(request) or {}
        family, scenario, call = body.get("family"), body.get("scenario"), body.get("call", "debit")
        if family not in self._desk.families or scenario not in BY_NAME or call not in _CALLS:
            return _wrong(f"family: {sorted(self._desk.families)}; call: {_CALLS}; scenario: {sorted(BY_NAME)}")
        values = {"family": family, "scenario": scenario, "call": call, "times": body.get("times", 1)}
        self._store.insert("forced", values | {"after": body.get("after"), "delay": body.get("delay")})
        return json_answer(values, 201)

    async def unforce(self, request: Request) -> Response:
        self._store.wipe(["forced"])
        return Response(status_code=204)

    async def transactions(self, request: Request) -> Response:
        self._desk.let_time_pass()
        where, args = ["1 = 1"], []
        for name, column in (("family", "family"), ("reference", "client_ref"), ("kind", "kind")):
            if name in request.query_params:
                where.append(f"{column} = ?")
                args.append(request.query_params[name])
        held = self._store.select(" AND ".join(where), *args)
        books = self._books(" AND ".join(where), args)
        return json_answer({"transactions": [_transaction(tx) for tx in held], "books": books})

    def _books(self, where: str, args: list[str]) -> list[dict[str, Any]]:
        entries: defaultdict[tuple[str, str | None, str], dict[str, list[int]]] = defaultdict(
            lambda: {"debit": [], "credit": []}
        )
        for row in self._store.rows(f"SELECT * FROM books WHERE {where} ORDER BY transaction_id", *args):  # noqa: S608
            entries[row["family"], row["client_ref"], row["currency"]][row["kind"]].append(row["amount"])
        return [
            {
                "family": family,
                "reference": reference,
                "currency": currency,
                "debits": len(moved["debit"]),
                "debited": money.plain(sum(moved["debit"])),
                "credits": len(moved["credit"]),
                "credited": money.plain(sum(moved["credit"])),
            }
            for (family, reference, currency), moved in entries.items()
        ]

    async def decide(self, request: Request) -> Response:
        found = self._store.select("id = ?", request.path_params["id"])
        body = await json_object(request) or {}
        if not found or body.get("decision") not in ("approve", "refuse"):
            return _wrong("decision: approve or refuse; or no such transaction")
        self._desk.let_time_pass()
        tx = self._store.get(found[0].id)
        state: State = SUCCEEDED if body["decision"] == "approve" else FAILED
        if not self._desk.decide(tx, state, None if state == SUCCEEDED else body.get("reason", "rejected_by_payer")):
            return _wrong(f"already {tx.state}", 409)
        return json_answer(_transaction(self._store.get(tx.id)))

    async def callbacks(self, request: Request) -> Response:
        reference = request.query_params.get("reference")
        wanted = (
            "1 = 1" if reference is None else "transaction_id IN (SELECT id FROM transactions WHERE client_ref = ?)"
        )
        queued = self._store.callbacks(wanted, *([] if reference is None else [reference]))
        names = [field.name for field in fields(QueuedCallback)]
        return json_answer({"callbacks": [{name: getattr(one, name) for name in names} for one in queued]})

    async def send_callback(self, request: Request) -> Response:
        body = await json_object(request) or {}
        found = self._store.select("id = ?", body.get("transaction"))
        if not found or body.get("claim") not in _CLAIMS:
            return _wrong(f"transaction: an id of the list; claim: {_CLAIMS}")
        event = self._desk.queue(found[0], body["claim"], forged=bool(body.get("forged")))
        self._desk.wake()
        return json_answer({"event_id": event}, 202)

    async def calls(self, request: Request) -> Response:
        rows = self._store.rows("SELECT * FROM calls ORDER BY id DESC LIMIT 1000")
        return json_answer({"calls": [{**dict(row), "at": iso(row["at"])} for row in rows]})

    async def dashboard(self, request: Request) -> Response:
        body = await json_object(request) or {}
        family = body.get("family")
        if family not in self._desk.families:
            return _wrong(f"family: {sorted(self._desk.families)}")
        known = asdict(self._desk.dashboard(family))
        values = Dashboard(**(known | {name: body[name] for name in known if name in body}))
        self._store.set_setting(f"dashboard:{family}", asdict(values))
        return json_answer(asdict(values))

    async def scenarios(self, request: Request) -> Response:
        table = [{"digits": s.digits, "name": s.name, "meaning": s.meaning, "after": s.after} for s in SCENARIOS]
        not_shown = [{"family": f, "scenario": s, "because": why} for (f, s), why in NOT_SHOWN.items()]
        return json_answer({"scenarios": table, "not_shown": not_shown})

    async def reset(self, request: Request) -> Response:
        self._store.wipe(_MEMORY)
        return Response(status_code=204)


def _transaction(tx: Transaction) -> dict[str, Any]:
    return {
        "id": tx.id,
        "family": tx.family,
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
