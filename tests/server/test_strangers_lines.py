"""Which refusals are lines of the log: all that name a route, and of what anybody can send without one, a few."""

import pytest

from guichet.logs import RequestLine
from tests.service_fixture import ServiceFixture


class _Log:
    takes_info = True

    def __init__(self) -> None:
        self.lines: list[RequestLine] = []

    def request(self, line: RequestLine) -> None:
        self.lines.append(line)


async def test_wrong_keys_are_all_logged_and_of_unknown_paths_a_few(
    sqlite_service: ServiceFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _Log()
    monkeypatch.setattr("guichet.server.request_context.log", log)
    for _ in range(400):
        assert (await sqlite_service.call("GET", "/nothing/here")).status == 404
    unknown = len(log.lines)
    assert 200 <= unknown < 400
    assert {line.path for line in log.lines} == {"/nothing/*"}
    for _ in range(5):
        wrong = await sqlite_service.call("GET", "/v1/balance", headers={"Authorization": "Bearer sk_live_wrong"})
        assert wrong.status == 401
    assert [(line.path, line.status) for line in log.lines[unknown:]] == [("/v1/balance", 401)] * 5
