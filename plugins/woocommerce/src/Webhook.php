<?php

declare(strict_types=1);

namespace Guichet\WooCommerce;

use Guichet\Webhooks;

/**
 * What Guichet posts. It only says which order to ask about, so an event that comes twice, late or before another does no
 * harm; and it is answered 200 whatever that brings, since the scheduler goes on.
 */
final class Webhook
{
    /** The last event with a good signature, and the last one without. */
    public const SEEN = 'guichet_webhook_seen';
    public const REFUSED = 'guichet_webhook_refused';
    /** Seconds for each question, because Guichet waits for the answer. */
    private const TIMEOUT = 3;

    public static function register(): void
    {
        register_rest_route('guichet/v1', '/webhook', [
            'methods' => 'POST',
            'callback' => [self::class, 'receive'],
            'permission_callback' => '__return_true', // The signature is the permission.
        ]);
    }

    public static function url(): string
    {
        return rest_url('guichet/v1/webhook');
    }

    public static function receive(\WP_REST_Request $request): \WP_REST_Response
    {
        try {
            $event = Webhooks::unwrap($request->get_body(), $request->get_headers(), Settings::webhookSecrets());
        } catch (\Exception $error) {
            update_option(self::REFUSED, ['at' => time(), 'why' => Log::withoutSecrets($error->getMessage())], false);
            return new \WP_REST_Response(['error' => 'signature'], 401);
        }
        update_option(self::SEEN, ['at' => time(), 'livemode' => $event['livemode']], false);
        self::act($event);
        return new \WP_REST_Response(['received' => true], 200);
    }

    /** @param array<string, mixed> $event */
    private static function act(array $event): void
    {
        $data = $event['data'];
        $ofPayment = strpos($event['event'], 'payment.') === 0;
        $session = (string) ($ofPayment ? $data['checkout_session']['external_id'] ?? '' : $data['external_id'] ?? '');
        $order = wc_get_order(Sessions::orderId($session));
        if (
            !$order instanceof \WC_Order
            || $order->get_meta(Sessions::ID) !== $session
            || ($order->get_meta(Sessions::LIVE) === 'yes') !== $event['livemode']
        ) {
            return; // Another shop's, or of an attempt that has ended.
        }
        try {
            $refunded = $event['event'] === 'payment.refunded' && $order->get_transaction_id() === $data['reference'];
            if ($refunded && (float) $order->get_remaining_refund_amount() > 0) {
                Refunds::told($order);
            }
            Healing::check($order, self::TIMEOUT, $ofPayment ? $data['reference'] : '');
        } catch (\Throwable $error) {
            Log::warning("Order {$order->get_id()}: {$error->getMessage()}");
            Healing::postpone($order, 0, 0);
        }
    }
}
