<?php

declare(strict_types=1);

namespace Guichet;

abstract class ApiResource
{
    protected Guichet $client;

    public function __construct(Guichet $client)
    {
        $this->client = $client;
    }
}

/**
 * @phpstan-import-type Payment from Types
 * @phpstan-import-type PaymentBody from Types
 * @phpstan-import-type ListPaymentsQuery from Types
 * @phpstan-import-type Refund from Types
 * @phpstan-import-type RefundBody from Types
 */
final class Payments extends ApiResource
{
    /**
     * A payment, `pending` as a rule: deliver when it is `succeeded`. Throws PaymentFailed where it is `failed`, also when
     * it is the existing payment of this `external_id`.
     *
     * @param PaymentBody $body
     * @return Payment
     */
    public function create(array $body, ?string $idempotencyKey = null): array
    {
        $payment = $this->client->create('/payments', $body, $idempotencyKey);
        if ($payment['status'] === 'failed' && isset($payment['failure'])) {
            throw new PaymentFailed($payment['failure']['message'], [
                'code' => 'payment_failed',
                'reason' => $payment['failure']['code'],
                'reference' => $payment['reference'],
            ]);
        }
        return $payment;
    }

    /**
     * `$reference`: the payment's, or your `external_id`. A pending payment is asked about first.
     *
     * @return Payment
     */
    public function retrieve(string $reference): array
    {
        return $this->client->get('/payments/' . rawurlencode($reference));
    }

    /**
     * @param ListPaymentsQuery $query
     * @return \Generator<int, Payment>
     */
    public function list(array $query = []): \Generator
    {
        return $this->client->walk('/payments', $query);
    }

    /**
     * The whole payment, and once only. `pending` is not done yet.
     *
     * @param RefundBody $body
     * @return Refund
     */
    public function refund(string $reference, array $body = [], ?string $idempotencyKey = null): array
    {
        return $this->client->create('/payments/' . rawurlencode($reference) . '/refund', $body, $idempotencyKey);
    }
}

/**
 * @phpstan-import-type Refund from Types
 * @phpstan-import-type ListRefundsQuery from Types
 */
final class Refunds extends ApiResource
{
    /**
     * `$reference`: the refund's, not the payment's.
     *
     * @return Refund
     */
    public function retrieve(string $reference): array
    {
        return $this->client->get('/refunds/' . rawurlencode($reference));
    }

    /**
     * @param ListRefundsQuery $query
     * @return \Generator<int, Refund>
     */
    public function list(array $query = []): \Generator
    {
        return $this->client->walk('/refunds', $query);
    }
}

/**
 * A hosted page for one order, where the customer chooses the operator: send them to `url`.
 *
 * @phpstan-import-type CheckoutSession from Types
 * @phpstan-import-type CheckoutSessionBody from Types
 */
final class CheckoutSessions extends ApiResource
{
    /**
     * @param CheckoutSessionBody $body
     * @return CheckoutSession
     */
    public function create(array $body, ?string $idempotencyKey = null): array
    {
        return $this->client->create('/checkout-sessions', $body, $idempotencyKey);
    }

    /**
     * `$id`: the session's, or your `external_id`. A pending payment is asked about first.
     *
     * @return CheckoutSession
     */
    public function retrieve(string $id): array
    {
        return $this->client->get('/checkout-sessions/' . rawurlencode($id));
    }

    /**
     * Nothing will be paid any more. Throws Conflict while a payment of it is pending.
     *
     * @return CheckoutSession
     */
    public function expire(string $id): array
    {
        return $this->client->request('POST', '/checkout-sessions/' . rawurlencode($id) . '/expire')['data'];
    }
}

/**
 * With a live key only.
 *
 * @phpstan-import-type PaymentLink from Types
 * @phpstan-import-type LinkBody from Types
 * @phpstan-import-type ListLinksQuery from Types
 */
final class PaymentLinks extends ApiResource
{
    /**
     * @param LinkBody $body
     * @return PaymentLink
     */
    public function create(array $body, ?string $idempotencyKey = null): array
    {
        return $this->client->create('/payment-links', $body, $idempotencyKey);
    }

    /** @return PaymentLink */
    public function retrieve(int $id): array
    {
        return $this->client->get("/payment-links/$id");
    }

    /**
     * @param ListLinksQuery $query
     * @return \Generator<int, PaymentLink>
     */
    public function list(array $query = []): \Generator
    {
        return $this->client->walk('/payment-links', $query);
    }

    /** @return PaymentLink */
    public function close(int $id): array
    {
        return $this->client->request('POST', "/payment-links/$id/close")['data'];
    }
}

/**
 * @phpstan-import-type PaymentMode from Types
 * @phpstan-import-type ListModesQuery from Types
 * @phpstan-import-type FeeBody from Types
 * @phpstan-import-type FeeQuote from Types
 */
final class PaymentModes extends ApiResource
{
    /**
     * @param ListModesQuery $query
     * @return list<PaymentMode>
     */
    public function list(array $query = []): array
    {
        return $this->client->get('/payment-modes', $query);
    }

    /**
     * What a payment would cost. Nothing is created.
     *
     * @param FeeBody $body
     * @return FeeQuote
     */
    public function fees(array $body): array
    {
        return $this->client->request('POST', '/payment-modes/fees', ['body' => $body])['data'];
    }
}

/**
 * @phpstan-import-type Balance from Types as BalanceShape
 * @phpstan-import-type ReadBalanceQuery from Types
 */
final class Balance extends ApiResource
{
    /**
     * @param ReadBalanceQuery $query
     * @return BalanceShape
     */
    public function retrieve(array $query = []): array
    {
        return $this->client->get('/balance', $query);
    }
}

/**
 * @phpstan-import-type WebhookEndpoint from Types as EndpointShape
 * @phpstan-import-type WrittenWebhookEndpoint from Types
 * @phpstan-import-type EndpointBody from Types
 * @phpstan-import-type WebhookTest from Types
 */
final class WebhookEndpoint extends ApiResource
{
    /** @return EndpointShape */
    public function retrieve(): array
    {
        return $this->client->get('/webhooks/endpoint');
    }

    /**
     * Not repeated with `rotate_secret`: a second rotation would end the secret that the first one made.
     *
     * @param EndpointBody $body
     * @return WrittenWebhookEndpoint
     */
    public function update(array $body): array
    {
        $call = ['body' => $body, 'repeatable' => empty($body['rotate_secret'])];
        return $this->client->request('PUT', '/webhooks/endpoint', $call)['data'];
    }

    /** @return WebhookTest */
    public function test(): array
    {
        return $this->client->request('POST', '/webhooks/test', ['repeatable' => false])['data'];
    }
}

/**
 * @phpstan-import-type WebhookDelivery from Types
 * @phpstan-import-type ListDeliveriesQuery from Types
 */
final class Deliveries extends ApiResource
{
    /**
     * @param ListDeliveriesQuery $query
     * @return \Generator<int, WebhookDelivery>
     */
    public function list(array $query = []): \Generator
    {
        return $this->client->walk('/webhooks/deliveries', $query);
    }

    /** @return WebhookDelivery */
    public function resend(string $id): array
    {
        $path = '/webhooks/deliveries/' . rawurlencode($id) . '/resend';
        return $this->client->request('POST', $path, ['repeatable' => false])['data'];
    }
}

/**
 * @phpstan-import-type Event from Types
 * @phpstan-import-type ListEventsQuery from Types
 */
final class Events extends ApiResource
{
    /**
     * The oldest first. Keep the `id` of the last one, and continue with `after` the next time.
     *
     * @param ListEventsQuery $query
     * @return \Generator<int, Event>
     */
    public function list(array $query = []): \Generator
    {
        return $this->client->walk('/events', $query);
    }
}

/**
 * @phpstan-import-type Dispute from Types
 * @phpstan-import-type ListDisputesQuery from Types
 */
final class Disputes extends ApiResource
{
    /**
     * @param ListDisputesQuery $query
     * @return \Generator<int, Dispute>
     */
    public function list(array $query = []): \Generator
    {
        return $this->client->walk('/disputes', $query);
    }
}
