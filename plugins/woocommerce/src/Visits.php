<?php

declare(strict_types=1);

namespace Guichet\WooCommerce;

/** The customer comes back from the page of Guichet. */
final class Visits
{
    private const ROUTE = 'guichet_return';

    public static function start(): void
    {
        add_action('woocommerce_api_' . self::ROUTE, [self::class, 'answer']);
    }

    public static function returnUrl(\WC_Order $order): string
    {
        $known = ['order' => $order->get_id(), 'key' => $order->get_order_key()];
        return add_query_arg($known, WC()->api_request_url(self::ROUTE));
    }

    public static function answer(): void
    {
        $order = wc_get_order(absint($_GET['order'] ?? 0));
        $key = wc_clean(wp_unslash($_GET['key'] ?? ''));
        if (!$order instanceof \WC_Order || !is_string($key) || !hash_equals($order->get_order_key(), $key)) {
            wp_safe_redirect(wc_get_checkout_url());
            exit;
        }
        $reference = wc_clean(wp_unslash($_GET['reference'] ?? ''));
        wp_safe_redirect(self::settled($order, is_string($reference) && wp_is_uuid($reference) ? $reference : ''));
        exit;
    }

    /** Where the customer goes on, when the order is as Guichet says. */
    public static function settled(\WC_Order $order, string $reference): string
    {
        try {
            Healing::check($order, 20, $reference);
        } catch (\Throwable $error) {
            Log::warning("Order {$order->get_id()}: {$error->getMessage()}");
            self::hold($order);
        }
        $order = Lock::fresh($order->get_id()) ?? $order;
        if ($order->has_status('failed') && $order->get_meta(Sessions::ENDED) !== 'yes') {
            wc_add_notice(__('The payment did not succeed. You can try again.', 'guichet-woocommerce'), 'error');
            return $order->get_checkout_payment_url();
        }
        return $order->get_checkout_order_received_url();
    }

    /** Nobody knows whether it is paid: it is kept until the scheduler does. */
    private static function hold(\WC_Order $order): void
    {
        Lock::hold($order->get_id(), static function (\WC_Order $order): void {
            if ($order->has_status('pending')) {
                $note = __('Guichet: whether this order is paid is not known yet, and is asked again every minute.', 'guichet-woocommerce');
                $order->update_status('on-hold', $note);
            }
        });
        Healing::postpone($order, 0, 0);
    }
}
