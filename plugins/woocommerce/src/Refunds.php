<?php

declare(strict_types=1);

namespace Guichet\WooCommerce;

use Guichet\ApiConnection;
use Guichet\Conflict;
use Guichet\GuichetError;
use Guichet\RateLimited;
use Guichet\ServerError;

/**
 * The whole payment, once. WooCommerce shows a refund as soon as the gateway says yes, so it is said only of one that is
 * done: of any other the order has a note, and the refund is recorded when Guichet says that it succeeded.
 */
final class Refunds
{
    /** When a refund was asked for, or told of, whose end is unknown. */
    public const ASKED = '_guichet_refund_asked';
    /** Seconds after which a refund that Guichet does not know was never made. */
    private const LOST = 600;

    /**
     * @param mixed $amount
     * @return true|\WP_Error
     */
    public static function ask(\WC_Order $order, $amount, string $reason)
    {
        $currency = $order->get_currency();
        $total = Settings::minor($order->get_total(), $currency);
        if ($total === null || Settings::minor($amount, $currency) !== $total) {
            $message = __('Guichet refunds a payment as a whole only. Refund the whole amount, or a part by other means.', 'guichet-woocommerce');
            return new \WP_Error('guichet_partial', $message);
        }
        if ($order->get_transaction_id() === '' || $order->get_meta(Sessions::ID) === '') {
            return new \WP_Error('guichet_unpaid', __('No payment of Guichet is known for this order.', 'guichet-woocommerce'));
        }
        self::told($order);
        try {
            $client = Settings::client($order->get_meta(Sessions::LIVE) === 'yes', 35, 1);
            $body = $reason === '' ? [] : ['reason' => mb_substr($reason, 0, 255)];
            $key = 'refund-' . $order->get_meta(Sessions::ID);
            $refund = $client->payments->refund($order->get_transaction_id(), $body, $key);
        } catch (GuichetError $error) {
            return self::refused($order, $error);
        }
        return self::answer($order, $refund);
    }

    /** The scheduler looks for a refund of this order from now on. */
    public static function told(\WC_Order $order): void
    {
        $order->update_meta_data(self::ASKED, (string) time());
        $order->save_meta_data();
        Healing::follow($order);
    }

    /** What became of a refund whose end is unknown. */
    public static function check(int $orderId, float $timeout): void
    {
        $order = Lock::fresh($orderId);
        if ($order === null || $order->get_meta(self::ASKED) === '') {
            return;
        }
        $client = Settings::client($order->get_meta(Sessions::LIVE) === 'yes', $timeout);
        $refund = null;
        foreach ($client->refunds->list(['payment_reference' => $order->get_transaction_id()]) as $refund) {
            $refund = $client->refunds->retrieve($refund['reference']); // Which asks the operator.
            break;
        }
        Lock::hold($orderId, static function (\WC_Order $order) use ($refund): void {
            if ($order->get_meta(self::ASKED) !== '') {
                self::settle($order, $refund);
            }
        });
    }

    /** @param array<string, mixed>|null $refund */
    private static function settle(\WC_Order $order, ?array $refund): void
    {
        if ($refund === null) {
            if (time() - (int) $order->get_meta(self::ASKED) > self::LOST) {
                self::end($order, __('Guichet: no refund was made. It can be asked for again.', 'guichet-woocommerce'));
            }
        } elseif ($refund['status'] === 'failed') {
            self::end($order, self::sentence($refund));
        } elseif ($refund['status'] === 'succeeded') {
            $left = (float) $order->get_remaining_refund_amount();
            if ($left > 0) {
                $record = ['order_id' => $order->get_id(), 'amount' => $left, 'reason' => $refund['reason']];
                $recorded = wc_create_refund($record + ['refund_payment' => false]);
                if (is_wp_error($recorded)) {
                    throw new \RuntimeException($recorded->get_error_message());
                }
            }
            self::end($order, self::sentence($refund));
        }
    }

    /**
     * @param array<string, mixed> $refund
     * @return true|\WP_Error
     */
    private static function answer(\WC_Order $order, array $refund)
    {
        $sentence = self::sentence($refund);
        if ($refund['status'] === 'pending') {
            return self::later($order, 'guichet_refund_pending', $sentence);
        }
        Lock::hold($order->get_id(), static function (\WC_Order $order) use ($sentence): void {
            if ($order->get_meta(self::ASKED) !== '') { // No webhook was faster.
                self::end($order, $sentence);
            }
        });
        return $refund['status'] === 'succeeded' ? true : new \WP_Error('guichet_refund_failed', $sentence);
    }

    private static function refused(\WC_Order $order, GuichetError $error): \WP_Error
    {
        Log::warning("Refund of order {$order->get_id()}: {$error->getMessage()}");
        $unknown = $error instanceof ApiConnection || $error instanceof ServerError || $error instanceof RateLimited;
        if ($unknown || ($error instanceof Conflict && $error->reason === 'already_refunded')) {
            $sentence = __('Guichet: whether the refund was made is not known yet. This order will show it by itself; do not pay back by other means before.', 'guichet-woocommerce');
            return self::later($order, 'guichet_refund_unknown', $sentence);
        }
        $order->delete_meta_data(self::ASKED);
        $order->save_meta_data();
        return new \WP_Error('guichet_refund_refused', Log::withoutSecrets($error->getMessage()));
    }

    /**
     * WooCommerce takes back its record of the refund now. A webhook that came meanwhile saw that record and had nothing
     * to do, so the order is asked about again.
     */
    private static function later(\WC_Order $order, string $code, string $sentence): \WP_Error
    {
        $order = Lock::fresh($order->get_id()) ?? $order;
        $order->add_order_note($sentence);
        self::told($order);
        return new \WP_Error($code, $sentence);
    }

    private static function end(\WC_Order $order, string $note): void
    {
        $order->delete_meta_data(self::ASKED);
        $order->save_meta_data();
        $order->add_order_note($note);
    }

    /** @param array<string, mixed> $refund */
    private static function sentence(array $refund): string
    {
        switch ($refund['status']) {
            case 'succeeded':
                /* translators: %s: the reference of a refund */
                return sprintf(__('Guichet: refund %s is done.', 'guichet-woocommerce'), $refund['reference']);
            case 'failed':
                /* translators: 1: the reference of a refund, 2: why it failed */
                $failed = __('Guichet: refund %1$s failed, and the customer has nothing back. %2$s', 'guichet-woocommerce');
                return sprintf($failed, $refund['reference'], $refund['failure']['message'] ?? '');
            default:
                /* translators: %s: the reference of a refund */
                $pending = __('Guichet: refund %s was asked for and is not done yet. This order will show it when the operator confirms it.', 'guichet-woocommerce');
                return sprintf($pending, $refund['reference']);
        }
    }
}
