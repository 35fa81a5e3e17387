<?php

declare(strict_types=1);

namespace Guichet\WooCommerce;

use Guichet\CurlTransport;
use Guichet\GuichetError;
use Guichet\NotFound;

/** WooCommerce → Guichet: does everything work that orders need, and what is to be done where it does not? */
final class Diagnostics
{
    private const PAGE = 'guichet-diagnostics';
    /** Minutes in which a customer may still confirm; pages of cards last longer, and are asked about before a cancellation. */
    private const OPERATOR_DELAY = 30;
    /** Seconds; a webhook is refused beyond 300. */
    private const CLOCK = 60;

    public static function start(): void
    {
        add_action('admin_menu', [self::class, 'menu'], 60);
        add_action('admin_post_guichet_webhook', [self::class, 'act']);
    }

    public static function url(): string
    {
        return admin_url('admin.php?page=' . self::PAGE);
    }

    public static function menu(): void
    {
        add_submenu_page('woocommerce', 'Guichet', 'Guichet', 'manage_woocommerce', self::PAGE, [self::class, 'show']);
    }

    public static function show(): void
    {
        echo '<div class="wrap"><h1>Guichet</h1><table class="widefat striped"><tbody>';
        foreach (self::rows() as [$good, $title, $said]) {
            $mark = $good ? '✓' : '✗';
            $row = '<tr><td style="width:1em"><b>%s</b></td><th scope="row">%s</th><td>%s</td></tr>';
            printf($row, esc_html($mark), esc_html($title), esc_html($said));
        }
        echo '</tbody></table>';
        printf('<form method="post" action="%s">', esc_url(admin_url('admin-post.php')));
        wp_nonce_field('guichet_webhook');
        echo '<input type="hidden" name="action" value="guichet_webhook"><p>';
        $button = '<button class="button" name="what" value="%s">%s</button> ';
        printf($button, 'register', esc_html__("Make this shop the receiver of the account's webhooks", 'guichet-woocommerce'));
        printf($button, 'test', esc_html__('Send a test webhook', 'guichet-woocommerce'));
        echo '</p></form></div>';
    }

    /** @return list<array{bool, string, string}> good, what, details */
    public static function rows(): array
    {
        $rows = [[
            Settings::livemode(),
            __('Mode', 'guichet-woocommerce'),
            Settings::livemode() ? __('Live', 'guichet-woocommerce') : __('Test: no money moves.', 'guichet-woocommerce'),
        ]];
        return array_merge($rows, self::service(), [self::lastWebhook(), self::scheduler(), self::stock(), self::currency()]);
    }

    /** @return list<array{bool, string, string}> */
    private static function service(): array
    {
        $title = __('Key', 'guichet-woocommerce');
        $date = '';
        $network = Settings::$transport ?? new CurlTransport();
        $transport = static function (...$request) use ($network, &$date): array {
            $answer = $network(...$request);
            $date = $answer[1]['date'] ?? '';
            return $answer;
        };
        try {
            $client = Settings::client(Settings::livemode(), 10, 0, ['transport' => $transport]);
            try {
                $client->checkoutSessions->retrieve('none');
            } catch (NotFound $expected) {
                $rows = [[true, $title, __('Guichet accepts it, and it may open payment pages.', 'guichet-woocommerce')]];
            }
            $rows[] = self::clock($date);
            $rows[] = self::endpoint($client->webhookEndpoint->retrieve()['url'] ?? '');
        } catch (\Throwable $error) {
            $rows[] = [false, isset($rows) ? __('Webhook address', 'guichet-woocommerce') : $title, Log::withoutSecrets($error->getMessage())];
        }
        return $rows;
    }

    /** @return array{bool, string, string} */
    private static function clock(string $date): array
    {
        $theirs = strtotime($date);
        $off = $theirs === false ? 0 : time() - $theirs;
        /* translators: %d: seconds */
        $said = sprintf(__('%d seconds from that of Guichet; beyond 300, webhooks are refused.', 'guichet-woocommerce'), $off);
        return [abs($off) <= self::CLOCK, __('Clock', 'guichet-woocommerce'), $said];
    }

    /** @return array{bool, string, string} */
    private static function endpoint(string $url): array
    {
        $ours = Webhook::url();
        /* translators: 1: the address that is set, 2: the address of this shop */
        $said = sprintf(__('Guichet sends to “%1$s”; this shop listens at %2$s', 'guichet-woocommerce'), $url, $ours);
        return [$url === $ours, __('Webhook address', 'guichet-woocommerce'), $said];
    }

    /** @return array{bool, string, string} */
    private static function lastWebhook(): array
    {
        $seen = (array) get_option(Webhook::SEEN, []) + ['at' => 0];
        $refused = (array) get_option(Webhook::REFUSED, []) + ['at' => 0, 'why' => ''];
        $said = __('None has been received yet.', 'guichet-woocommerce');
        if ($refused['at'] > $seen['at']) {
            /* translators: 1: date and time, 2: why */
            $said = sprintf(__('The last one, of %1$s, was refused: %2$s', 'guichet-woocommerce'), self::date($refused['at']), $refused['why']);
        } elseif ($seen['at'] > 0) {
            /* translators: %s: date and time */
            $said = sprintf(__('Received and verified: %s', 'guichet-woocommerce'), self::date($seen['at']));
        }
        return [$seen['at'] > 0 && $seen['at'] >= $refused['at'], __('Last webhook', 'guichet-woocommerce'), $said];
    }

    /** @return array{bool, string, string} */
    private static function scheduler(): array
    {
        $last = (int) get_option(Healing::LAST_RUN, 0);
        /* translators: 1: date and time, 2: a number */
        $said = __('Last run: %1$s. Orders waiting to be asked about: %2$d.', 'guichet-woocommerce');
        $when = $last === 0 ? '–' : self::date($last);
        return [$last > time() - 600, __('Scheduler', 'guichet-woocommerce'), sprintf($said, $when, count(Healing::due(100)))];
    }

    /** @return array{bool, string, string} */
    private static function stock(): array
    {
        $minutes = (int) get_option('woocommerce_hold_stock_minutes', 0);
        $good = get_option('woocommerce_manage_stock') !== 'yes' || $minutes === 0 || $minutes >= self::OPERATOR_DELAY;
        /* translators: 1: minutes, 2: minutes */
        $said = __('%1$d minutes; an operator may confirm a payment after %2$d. An order that is being paid is not cancelled, but its page closes early.', 'guichet-woocommerce');
        return [$good, __('Hold stock', 'guichet-woocommerce'), sprintf($said, $minutes, self::OPERATOR_DELAY)];
    }

    /** @return array{bool, string, string} */
    private static function currency(): array
    {
        $currency = get_woocommerce_currency();
        $decimals = Settings::CURRENCIES[$currency] ?? null;
        $said = $decimals === null
            ? __('Guichet does not know it: the method is not shown.', 'guichet-woocommerce')
            /* translators: %d: a number */
            : sprintf(__('Prices must have at most %d decimals; an order that has more cannot be paid.', 'guichet-woocommerce'), $decimals);
        $good = $decimals !== null && wc_get_price_decimals() <= $decimals;
        return [$good, __('Currency', 'guichet-woocommerce') . " $currency", $said];
    }

    private static function date(int $timestamp): string
    {
        return (string) wp_date('Y-m-d H:i:s', $timestamp);
    }

    /** The buttons. Making this shop the receiver also fetches the secret, so nobody copies it. */
    public static function act(): void
    {
        check_admin_referer('guichet_webhook');
        if (!current_user_can('manage_woocommerce')) {
            wp_die('', '', ['response' => 403]);
        }
        try {
            $client = Settings::client(Settings::livemode(), 15);
            if (($_POST['what'] ?? '') === 'register') {
                $endpoint = $client->webhookEndpoint->update(['url' => Webhook::url()]);
                Settings::set(Settings::livemode() ? 'live_secret' : 'test_secret', (string) $endpoint['secret']);
            } else {
                $client->webhookEndpoint->test();
            }
        } catch (\InvalidArgumentException | GuichetError $error) {
            wp_die(esc_html(Log::withoutSecrets($error->getMessage())), 'Guichet', ['back_link' => true]);
        }
        wp_safe_redirect(self::url());
        exit;
    }
}
