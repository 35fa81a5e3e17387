<?php

declare(strict_types=1);

namespace Guichet;

/**
 * The shapes of the API's arrays, for PHPStan, Psalm and editors. Written by `python -m tests.frozen` from the OpenAPI document.
 *
 * @phpstan-type Balance array{balance: float|int, balance_minor: int, currency: 'XOF'|'XAF'|'EUR'|'USD', status: 'Actif'|'Gelé'|'Fermé', updated_at: string}
 * @phpstan-type CheckoutSession array{amount: float|int, cancel_url: string|null, created_at: string, currency: 'XOF'|'XAF'|'EUR'|'USD', description: string, expires_at: string, external_id: string|null, id: string, metadata: array<string, mixed>|null, operators: list<string>|null, payment_reference: string|null, return_url: string|null, status: 'open'|'completed'|'expired', url: string}
 * @phpstan-type CheckoutSessionBody array{amount: float|int, cancel_url?: string|null, currency?: 'XOF'|'XAF'|'EUR'|'USD', customer?: Customer|null, description: string, expires_at?: string|null, external_id?: string|null, metadata?: array<string, mixed>|null, operators?: list<string>|null, return_url?: string|null}
 * @phpstan-type CheckoutSessionNotification array{created_at: string, data: CheckoutSession, event: 'checkout_session.completed'|'checkout_session.expired', id: string, livemode: bool}
 * @phpstan-type Customer array{address?: string|null, country?: string|null, email?: string|null, firstname?: string|null, lastname?: string|null}
 * @phpstan-type Dispute array{amount: float|int, closed_at: string|null, created_at: string, currency: 'XOF'|'XAF'|'EUR'|'USD', evidence_due_at: string|null, payment_reference: string, reason: string, reference: string, status: 'open'|'won'|'lost'}
 * @phpstan-type DisputeNotification array{created_at: string, data: Dispute, event: 'dispute.opened'|'dispute.won'|'dispute.lost', id: string, livemode: bool}
 * @phpstan-type EndpointBody array{overlap_hours?: int|null, rotate_secret?: bool, url: string|null}
 * @phpstan-type FeeBody array{amount: float|int, operator?: string|null, payment_mode_id?: int|null}
 * @phpstan-type FeeQuote array{amount: float|int, fee_amount: float|int, fee_fixed: float|int, fee_percent: float|int, operator: string, payment_mode_id: int, total_amount: float|int}
 * @phpstan-type LinkBody array{amount: float|int, description: string, expires_at?: string|null, external_id?: string|null, max_uses?: int|null, metadata?: array<string, mixed>|null, return_url?: string|null, starts_at?: string|null, type?: 'permanent'|'limité'}
 * @phpstan-type Payment array{amount: float|int, checkout_session?: PaymentSession, created_at: string, currency: 'XOF'|'XAF'|'EUR'|'USD', customer: PaymentCustomer, debited_amount: float|int, description: string, external_id: string|null, failure: PaymentFailure|null, fee_amount: float|int, identifier: string, metadata: array<string, mixed>|null, payment_link: PaymentSourceLink|null, payment_mode: PaymentModeSummary|null, payment_url: string|null, redirect_url?: string, reference: string, status: 'pending'|'succeeded'|'failed'|'refunded', total_amount: float|int, updated_at: string}
 * @phpstan-type PaymentBody array{amount: float|int, callback_url?: string|null, currency?: 'XOF'|'XAF'|'EUR'|'USD', customer?: Customer|null, description?: string|null, external_id?: string|null, metadata?: array<string, mixed>|null, operator?: string|null, otp?: string|null, payment_mode_id?: int|null, phone_number?: string|null, return_url?: string|null, test_scenario?: 'refund_failed'|'refund_pending'|'redirect'|'wrong_otp'|'expired'|'payment_link'|'amount_mismatch'|'webhook_twice'|'webhook_out_of_order'}
 * @phpstan-type PaymentCustomer array{email: string|null, firstname: string|null, lastname: string|null, phone_number: string|null}
 * @phpstan-type PaymentFailure array{code: string, message: string}
 * @phpstan-type PaymentLink array{amount: float|int, created_at: string, description: string, expires_at: string|null, external_id: string|null, id: int, max_uses: int|null, metadata: array<string, mixed>|null, return_url: string|null, starts_at: string|null, type: 'permanent'|'limité', url: string, uses_count: int, uses_left: int|null}
 * @phpstan-type PaymentMode array{availability: string, country: string|null, country_code: string|null, fee_fixed: float|int, fee_percent: float|int, id: int, logo: string|null, name: string, operator: string, requires_otp: bool, type: 'mobile_money'|'card'|'bank_transfer'|'e_wallet'|'other'}
 * @phpstan-type PaymentModeSummary array{country: string|null, country_code: string|null, id: int, name: string, operator: string, type: 'mobile_money'|'card'|'bank_transfer'|'e_wallet'|'other'}
 * @phpstan-type PaymentNotification array{created_at: string, data: Payment, event: 'payment.succeeded'|'payment.failed'|'payment.refunded', id: string, livemode: bool}
 * @phpstan-type PaymentSession array{external_id: string|null, id: string}
 * @phpstan-type PaymentSourceLink array{external_id: string|null, id: int}
 * @phpstan-type Refund array{amount: float|int, created_at: string, currency: 'XOF'|'XAF'|'EUR'|'USD', failure: RefundFailure|null, payment_reference: string, processed_at: string|null, reason: string, reference: string, refunded_amount: float|int, status: 'pending'|'succeeded'|'failed'}
 * @phpstan-type RefundBody array{reason?: string|null}
 * @phpstan-type RefundFailure array{code: string, message: string}
 * @phpstan-type RefundNotification array{created_at: string, data: Refund, event: 'refund.succeeded'|'refund.failed', id: string, livemode: bool}
 * @phpstan-type RefundProposal array{amount: float|int, created_at: string, currency: 'XOF'|'XAF'|'EUR'|'USD', expires_at: string, payment_reference: string, reason: string|null, refund_reference: string|null, status: 'open'|'confirmed'|'declined'|'expired', url: string}
 * @phpstan-type WebhookDelivery array{attempts: int, created_at: string, delivered_at: string|null, error: string|null, event: string, id: string, next_attempt_at: string|null, payment_reference: string|null, response_code: int|null, status: 'pending'|'success'|'failed', url: string}
 * @phpstan-type WebhookEndpoint array{events: list<string>, livemode: bool, secret: string|null, url: string|null}
 * @phpstan-type WebhookMessage array{message: string}
 * @phpstan-type WebhookTest array{delivery_id: string|null, message?: string, sent: bool, url: string|null}
 * @phpstan-type WebhookTestNotification array{created_at: string, data: WebhookMessage, event: 'webhook.test', id: string, livemode: bool}
 * @phpstan-type WrittenWebhookEndpoint array{livemode: bool, secret: string|null, url: string|null}
 * @phpstan-type ReadBalanceQuery array{currency?: string}
 * @phpstan-type ListDisputesQuery array{status?: 'open'|'won'|'lost', payment_reference?: string, per_page?: int, order?: 'desc'|'asc', after?: string}
 * @phpstan-type ListEventsQuery array{type?: 'payment.succeeded'|'payment.failed'|'payment.refunded'|'refund.succeeded'|'refund.failed'|'dispute.opened'|'dispute.won'|'dispute.lost'|'webhook.test'|'checkout_session.completed'|'checkout_session.expired', from?: string, to?: string, per_page?: int, after?: string}
 * @phpstan-type ListLinksQuery array{external_id?: string, per_page?: int, order?: 'desc'|'asc', after?: string}
 * @phpstan-type ListModesQuery array{country?: string, type?: 'mobile_money'|'card'|'bank_transfer'|'e_wallet'}
 * @phpstan-type ListPaymentsQuery array{status?: 'pending'|'succeeded'|'failed'|'refunded', external_id?: string, payment_link?: string, phone_number?: string, from?: string, to?: string, per_page?: int, order?: 'desc'|'asc', after?: string}
 * @phpstan-type ListRefundsQuery array{status?: 'pending'|'succeeded'|'failed', from?: string, to?: string, payment_reference?: string, per_page?: int, order?: 'desc'|'asc', after?: string}
 * @phpstan-type ListDeliveriesQuery array{status?: 'pending'|'success'|'failed', event?: 'payment.succeeded'|'payment.failed'|'payment.refunded'|'refund.succeeded'|'refund.failed'|'dispute.opened'|'dispute.won'|'dispute.lost'|'webhook.test'|'checkout_session.completed'|'checkout_session.expired', payment_reference?: string, from?: string, to?: string, per_page?: int, order?: 'desc'|'asc', after?: string}
 * @phpstan-type Event CheckoutSessionNotification|DisputeNotification|PaymentNotification|RefundNotification|WebhookTestNotification
 */
interface Types
{
}
