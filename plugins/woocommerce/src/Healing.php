<?php

declare(strict_types=1);

namespace Guichet\WooCommerce;

use Guichet\ApiConnection;
use Guichet\GuichetError;
use Guichet\RateLimited;
use Guichet\ServerError;

/**
 * Action Scheduler asks about every order whose end is unknown, until there is one: a few at a time, each less and less
 * often. While Guichet does not answer, a run stops at the first order, and no order waits longer for that.
 */
final class Healing
{
    public const HOOK = 'guichet_heal';
    public const LAST_RUN = 'guichet_healed_at';
    /** When an order is asked about next; an order without it is not followed. */
    public const CHECK_AT = '_guichet_check_at';
    private const CHECKS = '_guichet_checks';
    private const EVERY = 60;
    private const BATCH = 20;
    /** A run takes no more seconds, so that other plugins' actions are not kept waiting. */
    private const SECONDS = 25;
    private const LONGEST = 900;
    /** Two days of asking for a session that Guichet does not know. */
    private const MISSING = 200;

    public static function start(): void
    {
        add_action(self::HOOK, [self::class, 'run']);
        add_action('action_scheduler_init', [self::class, 'schedule']);
        add_action('woocommerce_order_status_changed', [self::class, 'statusChanged'], 10, 4);
        add_filter('woocommerce_cancel_unpaid_order', [self::class, 'mayCancel'], 20, 2);
    }

    public static function schedule(): void
    {
        if ((is_admin() || wp_doing_cron()) && !as_has_scheduled_action(self::HOOK)) {
            as_schedule_recurring_action(time() + self::EVERY, self::EVERY, self::HOOK, [], Plugin::ID, true);
        }
    }

    public static function stop(): void
    {
        if (function_exists('as_unschedule_all_actions')) {
            as_unschedule_all_actions(self::HOOK);
        }
    }

    /** From now on, until the order's end is known. */
    public static function follow(\WC_Order $order): void
    {
        $order->update_meta_data(self::CHECKS, '0');
        $order->update_meta_data(self::CHECK_AT, (string) (time() + self::EVERY));
        $order->save();
    }

    public static function run(): void
    {
        update_option(self::LAST_RUN, time(), false);
        $began = time();
        foreach (self::due(self::BATCH) as $id) {
            $order = wc_get_order($id);
            if (time() - $began > self::SECONDS || ($order instanceof \WC_Order && !self::heal($order))) {
                return;
            }
        }
    }

    /** @return int[] the longest due first */
    public static function due(int $limit): array
    {
        return array_map('intval', wc_get_orders([
            'type' => 'shop_order',
            'limit' => $limit,
            'return' => 'ids',
            'meta_key' => self::CHECK_AT,
            'meta_value' => (string) time(),
            'meta_compare' => '<=',
            'meta_type' => 'NUMERIC',
            'orderby' => 'meta_value_num',
            'order' => 'ASC',
        ]));
    }

    /** False: Guichet does not answer, so nothing else need be asked now. */
    private static function heal(\WC_Order $order): bool
    {
        $checks = (int) $order->get_meta(self::CHECKS);
        // Before all else, or an order that kills the process would stay the first one.
        self::postpone($order, min(self::EVERY * 2 ** min($checks, 10), self::LONGEST), $checks + 1);
        try {
            self::check($order, 35);
        } catch (GuichetError $error) {
            Log::warning("Order {$order->get_id()}: {$error->getMessage()}");
            if ($error instanceof ApiConnection || $error instanceof ServerError || $error instanceof RateLimited) {
                self::postpone($order, 0, $checks);
                return false;
            }
            if ($error->status === 404 && $checks >= self::MISSING) {
                $note = __('Guichet: the payment session of this order is not known there. Nobody asks about it any more.', 'guichet-woocommerce');
                $order->add_order_note($note);
                self::forget($order);
            }
        } catch (\Throwable $error) {
            Log::warning("Order {$order->get_id()}: {$error->getMessage()}");
        }
        return true;
    }

    /** All that is open about an order; afterwards it is followed no more if nothing is. */
    public static function check(\WC_Order $order, float $timeout, string $reference = ''): void
    {
        Verification::check($order, $timeout, $reference);
        Refunds::check($order->get_id(), $timeout);
        $order = Lock::fresh($order->get_id());
        if ($order !== null && $order->get_meta(Sessions::ENDED) === 'yes' && $order->get_meta(Refunds::ASKED) === '') {
            self::forget($order);
        }
    }

    /** An order that is paid in another way, or cancelled, must not be paid here as well: its session is ended. */
    public static function statusChanged(int $id, string $from, string $to, \WC_Order $order): void
    {
        $known = $order->get_meta(Sessions::ID) === '' || $order->get_meta(Sessions::ENDED) === 'yes';
        if (!$known && ($order->is_paid() || in_array($to, ['cancelled', 'refunded'], true))) {
            self::postpone($order, 0, 0);
        }
    }

    /**
     * WooCommerce's "Hold stock" cancels nothing that can still be paid: the session is ended first, and an order whose
     * payment waits for its result is left alone.
     *
     * @param mixed $may
     * @param mixed $order
     */
    public static function mayCancel($may, $order): bool
    {
        $open = $order instanceof \WC_Order && $order->get_meta(Sessions::ID) !== '' && $order->get_meta(Sessions::ENDED) !== 'yes';
        if (!$may || !$open) {
            return (bool) $may;
        }
        try {
            $client = Settings::client($order->get_meta(Sessions::LIVE) === 'yes', 10);
            $session = $client->checkoutSessions->retrieve($order->get_meta(Sessions::ID));
            return ($session['status'] === 'open' ? Sessions::expire($client, $session) : $session)['status'] === 'expired';
        } catch (\Throwable $error) {
            Log::warning("Order {$order->get_id()}: {$error->getMessage()}");
            return $error instanceof GuichetError && $error->status === 404;
        }
    }

    public static function postpone(\WC_Order $order, int $seconds, int $checks): void
    {
        $order->update_meta_data(self::CHECKS, (string) $checks);
        $order->update_meta_data(self::CHECK_AT, (string) (time() + $seconds));
        self::save($order);
    }

    private static function forget(\WC_Order $order): void
    {
        $order->delete_meta_data(self::CHECKS);
        $order->delete_meta_data(self::CHECK_AT);
        self::save($order);
    }

    /** Asking is no change of the order: "Hold stock" counts its minutes from the last one. */
    private static function save(\WC_Order $order): void
    {
        $filter = 'woocommerce_orders_table_datastore_should_save_after_meta_change';
        add_filter($filter, '__return_false');
        $order->save_meta_data();
        remove_filter($filter, '__return_false');
    }
}
