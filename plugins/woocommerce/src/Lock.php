<?php

declare(strict_types=1);

namespace Guichet\WooCommerce;

use Automattic\WooCommerce\Caches\OrderCache;

/**
 * One process at a time changes an order: the customer's return, a webhook and the scheduler may come at one instant, and
 * would each reduce the stock and write to the customer. A row of the options, as WordPress locks its own updates, so it
 * works on any database.
 */
final class Lock
{
    /** Seconds after which a lock belongs to a process that died. */
    private const LIFE = 120;
    private const PATIENCE = 2;

    /**
     * Calls `$do` with the order as it is now. False: another process has it, and the scheduler comes later.
     *
     * @param callable(\WC_Order): void $do
     */
    public static function hold(int $orderId, callable $do): bool
    {
        $name = "guichet_lock_$orderId";
        $mine = time() . '.' . bin2hex(random_bytes(8));
        for ($tries = self::PATIENCE * 10; !self::take($name, $mine); $tries--) {
            if ($tries === 0) {
                return false;
            }
            usleep(100000);
        }
        try {
            $order = self::fresh($orderId);
            if ($order !== null) {
                $do($order);
            }
        } finally {
            global $wpdb;
            $wpdb->delete($wpdb->options, ['option_name' => $name, 'option_value' => $mine]);
        }
        return true;
    }

    private static function take(string $name, string $mine): bool
    {
        global $wpdb;
        $insert = "INSERT IGNORE INTO $wpdb->options (option_name, option_value, autoload) VALUES (%s, %s, 'no')";
        if ($wpdb->query($wpdb->prepare($insert, $name, $mine)) === 1) {
            return true;
        }
        $theirs = $wpdb->get_var($wpdb->prepare("SELECT option_value FROM $wpdb->options WHERE option_name = %s", $name));
        if ($theirs === null || (int) $theirs > time() - self::LIFE) {
            return false;
        }
        $where = ['option_name' => $name, 'option_value' => $theirs];
        return $wpdb->update($wpdb->options, ['option_value' => $mine], $where) === 1;
    }

    /** Not what this process read before it had the lock. */
    public static function fresh(int $orderId): ?\WC_Order
    {
        clean_post_cache($orderId);
        if (class_exists(OrderCache::class)) {
            wc_get_container()->get(OrderCache::class)->remove($orderId);
        }
        $order = wc_get_order($orderId);
        return $order instanceof \WC_Order ? $order : null;
    }
}
