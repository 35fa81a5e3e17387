"""The asynchronous client. `_sync.py` is written from this file."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

import httpx

from guichet_sdk._retries import delay
from guichet_sdk.errors import ApiConnection, GuichetError, PaymentFailed, read_answer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from guichet_sdk import types

VERSION = "1.0.0"


class AsyncGuichet:
    """One client for the whole process: it keeps connections open.

    `key` chooses the environment, and `livemode` says which. `base_url` ends in `/v1`. `timeout`, in seconds, is for
    one attempt: a read of a pending payment asks the operator first, so give it 30 at least.
    """

    def __init__(
        self,
        key: str,
        *,
        base_url: str,
        timeout: float = 35.0,
        max_retries: int = 3,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        if not key.startswith("sk_"):
            raise ValueError("Une clé secrète commence par sk_test_ ou sk_live_.")
        self.livemode = not key.startswith("sk_test_")
        self._base_url = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}", "User-Agent": f"guichet-python/{VERSION}"}
        self._timeout = timeout
        self._max_retries = max_retries
        self._http = http_client or httpx.AsyncClient()
        self.payments = AsyncPayments(self)
        self.refunds = AsyncRefunds(self)
        self.checkout_sessions = AsyncCheckoutSessions(self)
        self.payment_links = AsyncPaymentLinks(self)
        self.payment_modes = AsyncPaymentModes(self)
        self.balance = AsyncBalance(self)
        self.webhook_endpoint = AsyncWebhookEndpoint(self)
        self.deliveries = AsyncDeliveries(self)
        self.events = AsyncEvents(self)
        self.disputes = AsyncDisputes(self)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> AsyncGuichet:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        repeatable: bool = True,
    ) -> Any:
        """The whole answer: `data`, and `meta` and `warnings` where there are some. Repeated as `_retries.py` says."""
        headers = {**self._headers, **({"Idempotency-Key": idempotency_key} if idempotency_key else {})}
        attempt = 0
        while True:
            try:
                response = await self._http.request(
                    method,
                    self._base_url + path,
                    params={name.rstrip("_"): value for name, value in (query or {}).items() if value is not None},
                    json=body,
                    headers=headers,
                    timeout=self._timeout,
                )
                return read_answer(response.status_code, response.headers, response.content)
            except httpx.TransportError as fault:
                error: GuichetError = ApiConnection(f"Guichet ne répond pas : {fault}")
                error.__cause__ = fault
            except GuichetError as answered:
                error = answered
            wait = delay(error, attempt, repeatable=repeatable)
            if wait is None or attempt >= self._max_retries:
                raise error
            await asyncio.sleep(wait)
            attempt += 1

    async def create(self, path: str, body: Mapping[str, Any], idempotency_key: str | None) -> Any:
        """A creation. Its key is made once and kept over the repetitions, so nothing is created twice."""
        key = idempotency_key or str(uuid.uuid4())
        return (await self.request("POST", path, body=body, idempotency_key=key))["data"]

    async def get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        return (await self.request("GET", path, query=query))["data"]

    async def walk(self, path: str, query: Mapping[str, Any]) -> AsyncIterator[Any]:
        """Every row, page after page: none is skipped or repeated, whatever happens to the list meanwhile."""
        query = {"per_page": 100, **query}
        while True:
            page = await self.request("GET", path, query=query)
            for row in page["data"]:
                yield row
            meta = page["meta"]
            if not page["data"] or not meta.get("has_more", len(page["data"]) >= meta["per_page"]):
                return
            query["after"] = page["data"][-1].get("reference") or page["data"][-1]["id"]


class AsyncResource:
    def __init__(self, client: AsyncGuichet) -> None:
        self._client = client


class AsyncPayments(AsyncResource):
    async def create(self, *, idempotency_key: str | None = None, **body: Unpack[types.PaymentBody]) -> types.Payment:
        """A payment, `pending` as a rule: deliver when it is `succeeded`. Raises PaymentFailed where it is `failed`,
        also when it is the existing payment of this `external_id`."""
        payment: types.Payment = await self._client.create("/payments", body, idempotency_key)
        failure = payment["failure"]
        if payment["status"] == "failed" and failure:
            raise PaymentFailed(
                failure["message"],
                code="payment_failed",
                reason=failure["code"],
                reference=payment["reference"],
            )
        return payment

    async def retrieve(self, reference: str) -> types.Payment:
        """`reference`: the payment's, or your `external_id`. A pending payment is asked about first."""
        return cast("types.Payment", await self._client.get(f"/payments/{_quoted(reference)}"))

    def list(self, **query: Unpack[types.ListPaymentsQuery]) -> AsyncIterator[types.Payment]:
        return self._client.walk("/payments", query)

    async def refund(
        self, reference: str, *, idempotency_key: str | None = None, **body: Unpack[types.RefundBody]
    ) -> types.Refund:
        """The whole payment, and once only. `pending` is not done yet."""
        path = f"/payments/{_quoted(reference)}/refund"
        return cast("types.Refund", await self._client.create(path, body, idempotency_key))


class AsyncRefunds(AsyncResource):
    async def retrieve(self, reference: str) -> types.Refund:
        """`reference`: the refund's, not the payment's."""
        return cast("types.Refund", await self._client.get(f"/refunds/{_quoted(reference)}"))

    def list(self, **query: Unpack[types.ListRefundsQuery]) -> AsyncIterator[types.Refund]:
        return self._client.walk("/refunds", query)


class AsyncCheckoutSessions(AsyncResource):
    """A hosted page for one order, where the customer chooses the operator: send them to `url`."""

    async def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[types.CheckoutSessionBody]
    ) -> types.CheckoutSession:
        path = "/checkout-sessions"
        return cast("types.CheckoutSession", await self._client.create(path, body, idempotency_key))

    async def retrieve(self, session_id: str) -> types.CheckoutSession:
        """`session_id`: the session's, or your `external_id`. A pending payment is asked about first."""
        return cast("types.CheckoutSession", await self._client.get(f"/checkout-sessions/{_quoted(session_id)}"))

    async def expire(self, session_id: str) -> types.CheckoutSession:
        """Nothing will be paid any more. Raises Conflict while a payment of it is pending."""
        answer = await self._client.request("POST", f"/checkout-sessions/{_quoted(session_id)}/expire")
        return cast("types.CheckoutSession", answer["data"])


class AsyncPaymentLinks(AsyncResource):
    """With a live key only."""

    async def create(self, *, idempotency_key: str | None = None, **body: Unpack[types.LinkBody]) -> types.PaymentLink:
        return cast("types.PaymentLink", await self._client.create("/payment-links", body, idempotency_key))

    async def retrieve(self, link_id: int) -> types.PaymentLink:
        return cast("types.PaymentLink", await self._client.get(f"/payment-links/{_quoted(link_id)}"))

    def list(self, **query: Unpack[types.ListLinksQuery]) -> AsyncIterator[types.PaymentLink]:
        return self._client.walk("/payment-links", query)

    async def close(self, link_id: int) -> types.PaymentLink:
        answer = await self._client.request("POST", f"/payment-links/{_quoted(link_id)}/close")
        return cast("types.PaymentLink", answer["data"])


class AsyncPaymentModes(AsyncResource):
    async def list(self, **query: Unpack[types.ListModesQuery]) -> Sequence[types.PaymentMode]:
        return cast("Sequence[types.PaymentMode]", await self._client.get("/payment-modes", query))

    async def fees(self, **body: Unpack[types.FeeBody]) -> types.FeeQuote:
        """What a payment would cost. Nothing is created."""
        return cast("types.FeeQuote", (await self._client.request("POST", "/payment-modes/fees", body=body))["data"])


class AsyncBalance(AsyncResource):
    async def retrieve(self, **query: Unpack[types.ReadBalanceQuery]) -> types.Balance:
        return cast("types.Balance", await self._client.get("/balance", query))


class AsyncWebhookEndpoint(AsyncResource):
    async def retrieve(self) -> types.WebhookEndpoint:
        return cast("types.WebhookEndpoint", await self._client.get("/webhooks/endpoint"))

    async def update(self, **body: Unpack[types.EndpointBody]) -> types.WrittenWebhookEndpoint:
        """Not repeated with `rotate_secret`: a second rotation would end the secret that the first one made."""
        answer = await self._client.request(
            "PUT", "/webhooks/endpoint", body=body, repeatable=not body.get("rotate_secret")
        )
        return cast("types.WrittenWebhookEndpoint", answer["data"])

    async def test(self) -> types.WebhookTest:
        answer = await self._client.request("POST", "/webhooks/test", repeatable=False)
        return cast("types.WebhookTest", answer["data"])


class AsyncDeliveries(AsyncResource):
    def list(self, **query: Unpack[types.ListDeliveriesQuery]) -> AsyncIterator[types.WebhookDelivery]:
        return self._client.walk("/webhooks/deliveries", query)

    async def resend(self, delivery_id: str) -> types.WebhookDelivery:
        path = f"/webhooks/deliveries/{_quoted(delivery_id)}/resend"
        return cast("types.WebhookDelivery", (await self._client.request("POST", path, repeatable=False))["data"])


class AsyncEvents(AsyncResource):
    def list(self, **query: Unpack[types.ListEventsQuery]) -> AsyncIterator[types.Event]:
        """The oldest first. Keep the `id` of the last one, and continue with `after` the next time."""
        return self._client.walk("/events", query)


class AsyncDisputes(AsyncResource):
    def list(self, **query: Unpack[types.ListDisputesQuery]) -> AsyncIterator[types.Dispute]:
        return self._client.walk("/disputes", query)


def _quoted(reference: object) -> str:
    return quote(str(reference), safe="")
