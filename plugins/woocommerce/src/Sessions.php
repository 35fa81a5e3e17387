<?php

declare(strict_types=1);

namespace Guichet\WooCommerce;

use Guichet\Conflict;
use Guichet\Guichet;
use Guichet\InvalidRequest;

/**
 * The checkout session of an order. Its `external_id` (shop, order, attempt) is kept with the order before Guichet hears
 * of it, so nothing that is cut off makes a second one; the next attempt begins when nothing of this one can be paid.
 */
final class Sessions
{
    public const ID = '_guichet_session';
    public const LIVE = '_guichet_live';
    /** `yes`: nothing more will come of it. */
    public const ENDED = '_guichet_ended';
    private const ATTEMPT = '_guichet_attempt';
    private const SHOP = 'guichet_shop';

    /** Where the customer pays; null where the order is paid. Throws what the client throws. */
    public static function url(\WC_Order $order): ?string
    {
        $live = Settings::livemode();
        if ($order->get_meta(self::ID) === '' || $order->get_meta(self::LIVE) !== ($live ? 'yes' : 'no')) {
            self::begin($order, $live);
        }
        $client = Settings::client($live, 15, 2);
        for ($tries = 0; $tries < 10; $tries++) {
            $session = self::create($client, self::body($order));
            if (!self::isOf($session, $order)) {
                throw new \RuntimeException("Guichet has a session $session[external_id] of another order.");
            }
            if ($session['status'] === 'open' && !self::costs($session, $order)) {
                $session = self::expire($client, $session);
            }
            if ($session['status'] === 'completed') {
                Verification::check($order, 15);
                return null;
            }
            if ($session['status'] === 'open') {
                return $session['url'];
            }
            self::begin($order, $live);
        }
        throw new \RuntimeException('No session of this order is open.');
    }

    /**
     * What is said of the customer only fills in a form, so an address that Guichet refuses must not cost the sale.
     *
     * @param array<string, mixed> $body
     * @return array<string, mixed>
     */
    private static function create(Guichet $client, array $body): array
    {
        try {
            return $client->checkoutSessions->create($body);
        } catch (InvalidRequest $error) {
            if ($body['customer'] === null || preg_grep('/^customer/', array_keys($error->details), PREG_GREP_INVERT)) {
                throw $error;
            }
            return $client->checkoutSessions->create(['customer' => null] + $body);
        }
    }

    /**
     * The session as it is after that: still `open` where a payment of it waits for its result.
     *
     * @param array<string, mixed> $session
     * @return array<string, mixed>
     */
    public static function expire(Guichet $client, array $session): array
    {
        try {
            return $client->checkoutSessions->expire($session['id']);
        } catch (Conflict $conflict) {
            return $client->checkoutSessions->retrieve($session['id']);
        }
    }

    /**
     * Whether it was made for this order: a copy of the shop, with the same key, counts its own orders.
     *
     * @param array<string, mixed> $session
     */
    public static function isOf(array $session, \WC_Order $order): bool
    {
        return $session['external_id'] === $order->get_meta(self::ID)
            && hash_equals(self::proof($order), (string) ($session['metadata']['order_check'] ?? ''));
    }

    /** @param array<string, mixed> $paid a session or a payment */
    public static function costs(array $paid, \WC_Order $order): bool
    {
        $total = Settings::minor($order->get_total(), $order->get_currency());
        return $total !== null
            && $paid['currency'] === $order->get_currency()
            && Settings::minor($paid['amount'], $paid['currency']) === $total;
    }

    /** The order of whose attempts this is one, or 0. */
    public static function orderId(string $externalId): int
    {
        return preg_match('/^wc-[0-9a-f]{12}-([0-9]{1,18})-[0-9]{1,9}$/D', $externalId, $found) === 1 ? (int) $found[1] : 0;
    }

    private static function begin(\WC_Order $order, bool $live): void
    {
        $attempt = (int) $order->get_meta(self::ATTEMPT) + 1;
        $order->update_meta_data(self::ATTEMPT, (string) $attempt);
        $order->update_meta_data(self::ID, 'wc-' . self::shop() . "-{$order->get_id()}-$attempt");
        $order->update_meta_data(self::LIVE, $live ? 'yes' : 'no');
        $order->delete_meta_data(self::ENDED);
        $order->save();
        Healing::follow($order);
    }

    /** Of this installation at this address: a copy under another address has its own. */
    private static function shop(): string
    {
        if (get_option(self::SHOP) === false) {
            add_option(self::SHOP, bin2hex(random_bytes(16)), '', false);
        }
        return substr(hash('sha256', get_option(self::SHOP) . home_url()), 0, 12);
    }

    private static function proof(\WC_Order $order): string
    {
        return substr(hash('sha256', 'guichet' . $order->get_order_key()), 0, 16);
    }

    /** @return array<string, mixed> */
    private static function body(\WC_Order $order): array
    {
        $currency = $order->get_currency();
        $minor = Settings::minor($order->get_total(), $currency);
        if ($minor === null) {
            throw new \RuntimeException("{$order->get_total()} $currency cannot be paid: that currency has no such amount.");
        }
        $name = wp_specialchars_decode((string) get_bloginfo('name'), ENT_QUOTES);
        /* translators: 1: the number of the order, 2: the name of the shop */
        $description = sprintf(__('Order %1$s, %2$s', 'guichet-woocommerce'), $order->get_order_number(), $name);
        $decimals = Settings::CURRENCIES[$currency];
        return [
            'amount' => $decimals === 0 ? $minor : round($minor / 10 ** $decimals, $decimals),
            'currency' => $currency,
            'description' => mb_substr($description, 0, 255),
            'external_id' => $order->get_meta(self::ID),
            'return_url' => Visits::returnUrl($order),
            'cancel_url' => wc_get_checkout_url(),
            'metadata' => ['order' => $order->get_order_number(), 'order_check' => self::proof($order)],
            'customer' => array_filter([
                'firstname' => mb_substr($order->get_billing_first_name(), 0, 100),
                'lastname' => mb_substr($order->get_billing_last_name(), 0, 100),
                'email' => is_email($order->get_billing_email()) ? $order->get_billing_email() : '',
            ]) ?: null,
        ];
    }
}
