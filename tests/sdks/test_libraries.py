"""The cases of cases.json, through each library as its users install it, against one `guichet demo`."""

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from tests.patience import PATIENCE
from tests.sdks.conftest import DRIVERS_OF, DemoServer, Library, require
from tests.sdks.documents import check_documents
from tests.sdks.packages import Installed

CASES: Final = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))
#: An address from which every request of this minute has been made.
EXHAUSTED: Final = "127.0.0.9"
_numbers = count(100_000)
pytestmark = pytest.mark.slow


class Run:
    """One case through one library. `names`: what `{…}` stands for in the table."""

    def __init__(self, library: Library, server: DemoServer, case: Any) -> None:
        self.library, self.server, self.case = library, server, case
        number = next(_numbers)
        body, headers = server.received[0]
        self.webhook = body, {name.lower(): value for name, value in headers.items()}
        #: Of its own, so that looking does not use up what the service allows another address.
        self.source = f"127.0.1.{number % 250 + 1}"
        self.names: dict[str, Any] = {
            "unique": f"case-{number}",
            "phone": f"22901{number}",
            "receiver": server.receiver,
            "secret": server.secret,
            "delivery": json.loads(body)["id"],
            # Not the one that others look for at the same time: it is pending for a moment.
            "resent": json.loads(server.received[1][0])["id"],
        }

    def __call__(self) -> None:
        for step in self.case["steps"]:
            self.check(self.filled(step))
        if "payments" in self.case:
            assert self.payments() == self.case["payments"], "payments were made"

    def check(self, step: dict[str, Any]) -> None:
        proxy = self.library.proxy
        proxy.faults.extend(step.get("through", ()))
        proxy.seen.clear()
        proxy.made.clear()
        own = proxy.source
        if step.get("from") == "exhausted":
            _exhaust(self.server)
            proxy.source = EXHAUSTED
        said = self.library.call(self.request(step))
        proxy.source = own
        shown = f"{step} → {said}"
        assert not proxy.faults, shown
        if "fails" in step:
            assert "error" in said, shown
            _check_error(dict(step["fails"]), said["error"], shown)
        else:
            assert "value" in said, shown
            _check_value(step, said["value"], shown)
        if "requests" in step:
            assert len(proxy.seen) == step["requests"], shown
        if step["call"].endswith((".create", ".refund")) and proxy.seen:
            [(key, *others)] = [list({key for _, _, key in proxy.seen})]
            assert key, shown
            assert not others, shown
            assert len(set(proxy.made)) <= 1, f"made twice: {proxy.made}, {shown}"
        if "as" in step:
            self.names[step["as"]] = said.get("value") or said["error"]

    def request(self, step: dict[str, Any]) -> dict[str, Any]:
        options = {"base_url": self.library.proxy.url, "key": "test", **step.get("client", {})}
        options["key"] = self.server.keys.get(options["key"], options["key"])
        request = {"call": step["call"], "client": options, "at": step.get("at"), "with": step.get("with")}
        return {**request, "key": step.get("key"), **(self.signed(step["webhook"]) if "webhook" in step else {})}

    def signed(self, change: dict[str, Any]) -> dict[str, Any]:
        """The arguments of `unwrap`: the webhook that the service sent, changed as the table says."""
        body, headers = self.webhook
        headers = {name: value for name, value in headers.items() if name.startswith("webhook-")}
        if "signed" in change:
            headers["webhook-timestamp"] = str(int(time.time()) + change["signed"])
            key = base64.b64decode(self.server.secret.removeprefix("whsec_"))
            content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
            signature = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
            headers["webhook-signature"] = change.get("signatures", "v1,{}").replace("{}", signature)
        headers |= change.get("replaced", {})
        if change.get("headers") == "Webhook-Id":
            headers = {name.title(): value for name, value in headers.items()}
        return {
            "body": base64.b64encode(body + change.get("suffix", "").encode()).decode(),
            "headers": headers,
            "secrets": change.get("secrets", [self.server.secret]),
        }

    def filled(self, value: Any) -> Any:
        """With each `{name}` and `{name.field}` replaced; a text that is one name alone keeps the type."""
        if isinstance(value, dict):
            return {key: self.filled(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.filled(each) for each in value]
        if not isinstance(value, str):
            return value
        for name, known in self.names.items():
            if isinstance(known, dict):
                for key, each in known.items():
                    if value == f"{{{name}.{key}}}":
                        return each
            else:
                value = value.replace(f"{{{name}}}", known)
        return value

    def payments(self) -> int:
        """How many there are with the numbers of this case."""
        endings = ("0000", "0001", "0002")
        return sum(self._total(f"{self.names['phone']}{ending}") for ending in endings)

    def _total(self, phone: str) -> int:
        answer = self.server.call("GET", f"/payments?phone_number={phone}", source=self.source)
        total: int = answer["meta"]["total"]
        return total


def _check_error(expected: dict[str, Any], error: dict[str, Any], shown: str) -> None:
    answered_here = expected.get("status") == 503 or expected["type"] == "RateLimited" or "reference" in expected
    if fields := expected.pop("fields", None):
        assert error["fields"] == fields, shown
    assert expected.items() <= error.items(), shown
    if expected.get("status") and not answered_here:
        assert error["request_id"], shown
    if expected["type"] == "RateLimited":
        assert 0 < error["retry_after"] <= 99, shown


def _check_value(step: Mapping[str, Any], value: Any, shown: str) -> None:
    if "rows" in step:
        assert len(value) == len(step["rows"]) or (step.get("more") and len(value) > len(step["rows"])), shown
        for row, expected in zip(value, step["rows"], strict=False):
            assert expected.items() <= row.items(), shown
    else:
        assert step.get("answers", {}).items() <= value.items(), shown


def test_libraries(
    server: DemoServer,
    libraries: dict[str, Library],
    installed: dict[str, Future[Installed]],
    subtests: pytest.Subtests,
) -> None:
    """One test: each runner of tests that got a part of it would pack, install and serve for that part alone."""
    for language in DRIVERS_OF:
        with subtests.test(language):
            require(language)
    _prepare(server)
    # Beside each other: the libraries wait most of the time.
    with ThreadPoolExecutor() as pool:
        for name, problems in zip(
            libraries, pool.map(lambda each: _run_all(each, server), libraries.values()), strict=True
        ):
            for case, problem in problems.items():
                with subtests.test(name, case=case):
                    if problem:
                        raise problem
    for language, project in installed.items():
        with subtests.test(language, case="its README and docs/libraries.md"):
            check_documents(language, project.result(), server)
    with subtests.test("SIGKILL"):
        _kill_and_count(server, libraries)


def _prepare(server: DemoServer) -> None:
    """Two webhooks that were received one after the other, and whose answers are recorded."""
    deadline = time.monotonic() + PATIENCE
    path = "/webhooks/deliveries?status=success"
    for total in (1, 2):
        server.call("POST", "/webhooks/test")
        while server.call("GET", path)["meta"]["total"] < total:
            assert time.monotonic() < deadline, "the webhooks were not received"
            time.sleep(0.2)


def _exhaust(server: DemoServer) -> None:
    while server.call("GET", "/balance", source=EXHAUSTED)["success"]:
        pass


def _run_all(library: Library, server: DemoServer) -> dict[str, BaseException | None]:
    """Case → what went wrong."""
    return {case["case"]: _outcome(Run(library, server, case)) for case in CASES}


def _outcome(run: Run) -> BaseException | None:
    run.library.proxy.faults.clear()
    try:
        run()
    except Exception as problem:  # Told as a test of its own.
        return problem
    return None


def _kill_and_count(server: DemoServer, libraries: dict[str, Library]) -> None:
    """SIGKILL while requests are on their way, then a start on the same database, while the libraries go on asking."""
    required = 4
    arrived = threading.Semaphore(0)
    for library in libraries.values():
        library.proxy.before_passing = arrived.release
    with ThreadPoolExecutor() as pool:
        runs = {name: pool.submit(_buy, library, server, required) for name, library in libraries.items()}
        for _ in range(required * len(libraries) // 2):
            assert arrived.acquire(timeout=PATIENCE)
        server.kill()
        server.start()
        phones = {name: run.result() for name, run in runs.items()}
    for name, phone in phones.items():
        total = server.call("GET", f"/payments?phone_number={phone}", source="127.0.0.8")["meta"]["total"]
        assert total == required, name


def _buy(library: Library, server: DemoServer, payments: int) -> str:
    """The number that these payments debit, each of which the library said is there."""
    phone = f"22901{next(_numbers)}0002"
    client = {"base_url": library.proxy.url, "key": server.keys["test"], "max_retries": 8}
    for amount in range(1000, 1000 + payments):
        body = {"amount": amount, "operator": "mtn", "phone_number": phone}
        said = library.call({"call": "payments.create", "client": client, "at": None, "with": body, "key": None})
        assert said["value"]["status"] == "pending", said
    return phone
