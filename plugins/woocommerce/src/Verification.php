<?php

declare(strict_types=1);

namespace Guichet\WooCommerce;

/**
 * The one way in which an order is paid: Guichet is asked, whoever says that something happened, and the order gets what
 * it answers. A webhook or an address of return proves nothing by itself.
 */
final class Verification
{
    /** The payment that the order is on hold for. */
    private const WAITING = '_guichet_waiting';

    /**
     * `$reference`: a payment that somebody speaks of, whose failure or waiting an open session does not show.
     * Throws what the client throws; nothing has changed then.
     */
    public static function check(\WC_Order $order, float $timeout, string $reference = ''): void
    {
        if ($order->get_meta(Sessions::ID) === '' || $order->get_meta(Sessions::ENDED) === 'yes') {
            return;
        }
        $client = Settings::client($order->get_meta(Sessions::LIVE) === 'yes', $timeout);
        $session = $client->checkoutSessions->retrieve($order->get_meta(Sessions::ID));
        if ($session['status'] === 'open' && ($order->is_paid() || $order->has_status(['cancelled', 'refunded']))) {
            $session = Sessions::expire($client, $session); // Paid in another way, or given up: nobody may pay it here.
        }
        $reference = $session['payment_reference'] ?? ($reference ?: $order->get_meta(self::WAITING));
        $payment = $reference === '' ? null : $client->payments->retrieve($reference);
        $done = Lock::hold($order->get_id(), static function (\WC_Order $order) use ($session, $payment): void {
            if (Sessions::isOf($session, $order) && $order->get_meta(Sessions::ENDED) !== 'yes') {
                self::settle($order, $session, $payment);
            }
        });
        if (!$done) {
            throw new \RuntimeException("Order {$order->get_id()} is being changed by another process.");
        }
    }

    /**
     * @param array<string, mixed> $session
     * @param array<string, mixed>|null $payment
     */
    private static function settle(\WC_Order $order, array $session, ?array $payment): void
    {
        if ($session['status'] === 'open') {
            self::wait($order, $session, $payment);
            return;
        }
        $session['status'] === 'completed' ? self::pay($order, $session, $payment) : self::giveUp($order);
        $order->update_meta_data(Sessions::ENDED, 'yes');
        $order->save_meta_data();
    }

    /**
     * @param array<string, mixed> $session
     * @param array<string, mixed>|null $payment
     */
    private static function wait(\WC_Order $order, array $session, ?array $payment): void
    {
        if ($payment === null || ($payment['checkout_session']['id'] ?? '') !== $session['id']) {
            return;
        }
        if ($payment['status'] === 'pending' && $order->has_status(['pending', 'failed'])) {
            /* translators: %s: the reference of a payment */
            $note = __('Guichet: payment %s waits for the customer or the operator.', 'guichet-woocommerce');
            $order->update_meta_data(self::WAITING, $payment['reference']);
            $order->update_status('on-hold', sprintf($note, $payment['reference']));
        }
        $waiting = $order->get_meta(self::WAITING);
        $current = $waiting === '' || $waiting === $payment['reference']; // Not an earlier one, told late.
        if ($payment['status'] === 'failed' && $current && $order->has_status(['pending', 'on-hold'])) {
            $order->delete_meta_data(self::WAITING);
            /* translators: 1: the reference of a payment, 2: why it failed */
            $note = __('Guichet: payment %1$s failed. %2$s', 'guichet-woocommerce');
            $order->update_status('failed', sprintf($note, $payment['reference'], self::why($payment)));
        }
    }

    /**
     * @param array<string, mixed> $session
     * @param array<string, mixed> $payment
     */
    private static function pay(\WC_Order $order, array $session, array $payment): void
    {
        $reference = $payment['reference'];
        if ($order->get_transaction_id() === $reference) {
            return; // Paid by this payment before; the process that did it was cut off.
        }
        $paid = $order->is_paid() || $order->has_status('refunded') || $order->get_date_paid() !== null;
        if ($paid) {
            /* translators: %s: the reference of a payment */
            $note = __('Guichet: this order was paid in another way before payment %s succeeded. Refund that one in the console of Guichet.', 'guichet-woocommerce');
            self::note($order, sprintf($note, $reference));
        } elseif ($payment['status'] !== 'succeeded') {
            /* translators: %s: the reference of a payment */
            $note = __('Guichet: payment %s was refunded before this shop heard of it. Nothing is to be delivered.', 'guichet-woocommerce');
            $order->update_status('cancelled', sprintf($note, $reference));
        } elseif (!Sessions::costs($session, $order) || !Sessions::costs($payment, $order)) {
            /* translators: 1: the reference of a payment, 2: its amount, 3: its currency */
            $note = __('Guichet: payment %1$s is of %2$s %3$s, which is not what this order costs. Decide by hand.', 'guichet-woocommerce');
            $order->update_status('on-hold', sprintf($note, $reference, (string) $payment['amount'], $payment['currency']));
        } else {
            self::complete($order, $reference);
        }
    }

    private static function complete(\WC_Order $order, string $reference): void
    {
        $cancelled = $order->has_status('cancelled');
        $order->payment_complete($reference);
        $order = Lock::fresh($order->get_id()) ?? $order;
        if ($order->get_transaction_id() !== $reference) {
            throw new \RuntimeException("Order {$order->get_id()} did not take payment $reference.");
        }
        if ($cancelled) {
            /* translators: %s: the reference of a payment */
            $note = __('Guichet: payment %s succeeded after this order was cancelled. Look at the stock.', 'guichet-woocommerce');
            self::note($order, sprintf($note, $reference));
        }
    }

    /** Nothing was paid, and nothing will be. */
    private static function giveUp(\WC_Order $order): void
    {
        if ($order->has_status(['pending', 'on-hold'])) {
            $note = __('Guichet: the payment page has closed, and nothing was paid.', 'guichet-woocommerce');
            $order->update_status($order->get_created_via() === 'admin' ? 'pending' : 'cancelled', $note);
        }
    }

    private static function note(\WC_Order $order, string $note): void
    {
        $order->add_order_note($note);
        Log::warning("Order {$order->get_id()}: $note");
    }

    /**
     * For the customer, in the language of the shop.
     *
     * @param array<string, mixed> $payment
     */
    public static function why(array $payment): string
    {
        switch ($payment['failure']['code'] ?? '') {
            case 'insufficient_funds':
                return __('The balance does not cover this payment.', 'guichet-woocommerce');
            case 'rejected_by_customer':
                return __('The payment was refused or cancelled.', 'guichet-woocommerce');
            case 'expired':
                return __('The payment was not confirmed in time.', 'guichet-woocommerce');
            case 'limit_reached':
                return __('A limit of the account or of the operator is reached.', 'guichet-woocommerce');
            case 'operator_unavailable':
                return __('The operator cannot be reached at the moment.', 'guichet-woocommerce');
            default:
                return __('The payment did not succeed.', 'guichet-woocommerce');
        }
    }
}
