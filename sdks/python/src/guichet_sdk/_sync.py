"""The synchronous client. Written by `python -m tests.frozen` from _async.py."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
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


class Guichet:
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
        http_client: httpx.Client | None = None,
    ) -> None:
        if not key.startswith("sk_"):
            raise ValueError("Une clé secrète commence par sk_test_ ou sk_live_.")
        self.livemode = not key.startswith("sk_test_")
        self._base_url = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}", "User-Agent": f"guichet-python/{VERSION}"}
        self._timeout = timeout
        self._max_retries = max_retries
        self._http = http_client or httpx.Client()
        self.payments = Payments(self)
        self.refunds = Refunds(self)
        self.checkout_sessions = CheckoutSessions(self)
        self.payment_links = PaymentLinks(self)
        self.payment_modes = PaymentModes(self)
        self.balance = Balance(self)
        self.webhook_endpoint = WebhookEndpoint(self)
        self.deliveries = Deliveries(self)
        self.events = Events(self)
        self.disputes = Disputes(self)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Guichet:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(
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
                response = self._http.request(
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
            time.sleep(wait)
            attempt += 1

    def create(self, path: str, body: Mapping[str, Any], idempotency_key: str | None) -> Any:
        """A creation. Its key is made once and kept over the repetitions, so nothing is created twice."""
        key = idempotency_key or str(uuid.uuid4())
        return (self.request("POST", path, body=body, idempotency_key=key))["data"]

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        return (self.request("GET", path, query=query))["data"]

    def walk(self, path: str, query: Mapping[str, Any]) -> Iterator[Any]:
        """Every row, page after page: none is skipped or repeated, whatever happens to the list meanwhile."""
        query = {"per_page": 100, **query}
        while True:
            page = self.request("GET", path, query=query)
            for row in page["data"]:
                yield row
            meta = page["meta"]
            if not page["data"] or not meta.get("has_more", len(page["data"]) >= meta["per_page"]):
                return
            query["after"] = page["data"][-1].get("reference") or page["data"][-1]["id"]


class Resource:
    def __init__(self, client: Guichet) -> None:
        self._client = client


class Payments(Resource):
    def create(self, *, idempotency_key: str | None = None, **body: Unpack[types.PaymentBody]) -> types.Payment:
        """A payment, `pending` as a rule: deliver when it is `succeeded`. Raises PaymentFailed where it is `failed`,
        also when it is the existing payment of this `external_id`."""
        payment: types.Payment = self._client.create("/payments", body, idempotency_key)
        failure = payment["failure"]
        if payment["status"] == "failed" and failure:
            raise PaymentFailed(
                failure["message"],
                code="payment_failed",
                reason=failure["code"],
                reference=payment["reference"],
            )
        return payment

    def retrieve(self, reference: str) -> types.Payment:
        """`reference`: the payment's, or your `external_id`. A pending payment is asked about first."""
        return cast("types.Payment", self._client.get(f"/payments/{_quoted(reference)}"))

    def list(self, **query: Unpack[types.ListPaymentsQuery]) -> Iterator[types.Payment]:
        return self._client.walk("/payments", query)

    def refund(
        self, reference: str, *, idempotency_key: str | None = None, **body: Unpack[types.RefundBody]
    ) -> types.Refund:
        """The whole payment, and once only. `pending` is not done yet."""
        path = f"/payments/{_quoted(reference)}/refund"
        return cast("types.Refund", self._client.create(path, body, idempotency_key))


class Refunds(Resource):
    def retrieve(self, reference: str) -> types.Refund:
        """`reference`: the refund's, not the payment's."""
        return cast("types.Refund", self._client.get(f"/refunds/{_quoted(reference)}"))

    def list(self, **query: Unpack[types.ListRefundsQuery]) -> Iterator[types.Refund]:
        return self._client.walk("/refunds", query)


class CheckoutSessions(Resource):
    """A hosted page for one order, where the customer chooses the operator: send them to `url`."""

    def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[types.CheckoutSessionBody]
    ) -> types.CheckoutSession:
        path = "/checkout-sessions"
        return cast("types.CheckoutSession", self._client.create(path, body, idempotency_key))

    def retrieve(self, session_id: str) -> types.CheckoutSession:
        """`session_id`: the session's, or your `external_id`. A pending payment is asked about first."""
        return cast("types.CheckoutSession", self._client.get(f"/checkout-sessions/{_quoted(session_id)}"))

    def expire(self, session_id: str) -> types.CheckoutSession:
        """Nothing will be paid any more. Raises Conflict while a payment of it is pending."""
        answer = self._client.request("POST", f"/checkout-sessions/{_quoted(session_id)}/expire")
        return cast("types.CheckoutSession", answer["data"])


class PaymentLinks(Resource):
    """With a live key only."""

    def create(self, *, idempotency_key: str | None = None, **body: Unpack[types.LinkBody]) -> types.PaymentLink:
        return cast("types.PaymentLink", self._client.create("/payment-links", body, idempotency_key))

    def retrieve(self, link_id: int) -> types.PaymentLink:
        return cast("types.PaymentLink", self._client.get(f"/payment-links/{_quoted(link_id)}"))

    def list(self, **query: Unpack[types.ListLinksQuery]) -> Iterator[types.PaymentLink]:
        return self._client.walk("/payment-links", query)

    def close(self, link_id: int) -> types.PaymentLink:
        answer = self._client.request("POST", f"/payment-links/{_quoted(link_id)}/close")
        return cast("types.PaymentLink", answer["data"])


class PaymentModes(Resource):
    def list(self, **query: Unpack[types.ListModesQuery]) -> Sequence[types.PaymentMode]:
        return cast("Sequence[types.PaymentMode]", self._client.get("/payment-modes", query))

    def fees(self, **body: Unpack[types.FeeBody]) -> types.FeeQuote:
        """What a payment would cost. Nothing is created."""
        return cast("types.FeeQuote", (self._client.request("POST", "/payment-modes/fees", body=body))["data"])


class Balance(Resource):
    def retrieve(self, **query: Unpack[types.ReadBalanceQuery]) -> types.Balance:
        return cast("types.Balance", self._client.get("/balance", query))


class WebhookEndpoint(Resource):
    def retrieve(self) -> types.WebhookEndpoint:
        return cast("types.WebhookEndpoint", self._client.get("/webhooks/endpoint"))

    def update(self, **body: Unpack[types.EndpointBody]) -> types.WrittenWebhookEndpoint:
        """Not repeated with `rotate_secret`: a second rotation would end the secret that the first one made."""
        answer = self._client.request(
            "PUT", "/webhooks/endpoint", body=body, repeatable=not body.get("rotate_secret")
        )
        return cast("types.WrittenWebhookEndpoint", answer["data"])

    def test(self) -> types.WebhookTest:
        answer = self._client.request("POST", "/webhooks/test", repeatable=False)
        return cast("types.WebhookTest", answer["data"])


class Deliveries(Resource):
    def list(self, **query: Unpack[types.ListDeliveriesQuery]) -> Iterator[types.WebhookDelivery]:
        return self._client.walk("/webhooks/deliveries", query)

    def resend(self, delivery_id: str) -> types.WebhookDelivery:
        path = f"/webhooks/deliveries/{_quoted(delivery_id)}/resend"
        return cast("types.WebhookDelivery", (self._client.request("POST", path, repeatable=False))["data"])


class Events(Resource):
    def list(self, **query: Unpack[types.ListEventsQuery]) -> Iterator[types.Event]:
        """The oldest first. Keep the `id` of the last one, and continue with `after` the next time."""
        return self._client.walk("/events", query)


class Disputes(Resource):
    def list(self, **query: Unpack[types.ListDisputesQuery]) -> Iterator[types.Dispute]:
        return self._client.walk("/disputes", query)


def _quoted(reference: object) -> str:
    return quote(str(reference), safe="")
