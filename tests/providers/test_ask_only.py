"""What ended here, or is about to be ended by a person, is asked about; no request that moves money is sent again."""

import pytest

from guichet.clock import MINUTE, earlier
from guichet.providers.base import Refused, Succeeded
from tests.providers.provider_cases import PROVIDER_CASES
from tests.providers.provider_under_test import NOW, ProviderUnderTest, charge, provider_under_test, refund_request

#: Questions that are POSTs with some providers.
_QUESTIONS = ("history", "transactionstatus", "check-status")
NOT_FOUND = (404, {"code": "RESOURCE_NOT_FOUND", "status": "NOT_FOUND", "error": {"code": "resource_missing"}})


def orders(one: ProviderUnderTest) -> list[str]:
    """The requests that ask the provider to do something."""
    lines = [request.line for request in one.received if not request.line.startswith("GET ")]
    return [line for line in lines if not any(word in line for word in _QUESTIONS)]


@pytest.mark.parametrize("collected_here", [True, False])
@pytest.mark.parametrize("provider_type", PROVIDER_CASES)
async def test_a_question_never_becomes_a_request(provider_type: str, collected_here: bool) -> None:
    """Their answers were lost a minute ago: an ordinary poll may send some of them again."""
    operator = PROVIDER_CASES[provider_type].operator
    lost = charge(operator, created_at=earlier(NOW, MINUTE), ask_only=True)
    given_back = refund_request(operator, collected_here=collected_here, sent_at=earlier(NOW, MINUTE), ask_only=True)
    async with provider_under_test(provider_type, NOT_FOUND) as one:
        answers = [await one.provider.status(lost), await one.provider.refund_status(given_back)]
        assert orders(one) == []
    assert not any(isinstance(answer, Refused | Succeeded) for answer in answers), answers


@pytest.mark.parametrize("provider_type", ["mtn", "stripe"])
async def test_an_ordinary_poll_may_send_a_lost_request_again(provider_type: str) -> None:
    """So that the test above means something."""
    lost = charge(PROVIDER_CASES[provider_type].operator, created_at=earlier(NOW, MINUTE))
    async with provider_under_test(provider_type, NOT_FOUND) as one:
        await one.provider.status(lost)
        assert len(orders(one)) == 1
