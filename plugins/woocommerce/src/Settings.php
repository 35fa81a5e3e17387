<?php

declare(strict_types=1);

namespace Guichet\WooCommerce;

use Guichet\Guichet;

/** What the merchant has set, and the client that it makes. */
final class Settings
{
    public const OPTION = 'woocommerce_guichet_settings';
    public const CURRENCIES = ['XOF' => 0, 'XAF' => 0, 'EUR' => 2, 'USD' => 2];

    /** @var callable|null in place of the network, for tests */
    public static $transport = null;

    public static function get(string $name): string
    {
        return trim((string) (get_option(self::OPTION, [])[$name] ?? ''));
    }

    public static function livemode(): bool
    {
        return self::get('mode') === 'live';
    }

    /** Whether a customer can be sent to pay: a shop without an address or a key shows no method. */
    public static function ready(): bool
    {
        return self::get('base_url') !== '' && self::key(self::livemode()) !== '';
    }

    /** The key of this environment; one of the other environment is none. */
    private static function key(bool $livemode): string
    {
        $key = self::get($livemode ? 'live_key' : 'test_key');
        return strpos($key, $livemode ? 'sk_live_' : 'sk_test_') === 0 ? $key : '';
    }

    /**
     * @param float $timeout seconds for one attempt: a read of an open session may ask an operator first
     * @param array<string, mixed> $options
     */
    public static function client(bool $livemode, float $timeout, int $retries = 0, array $options = []): Guichet
    {
        $key = self::key($livemode);
        if ($key === '' || self::get('base_url') === '') {
            throw new \InvalidArgumentException($livemode ? 'No live key is set.' : 'No test key is set.');
        }
        $options += ['base_url' => self::get('base_url'), 'timeout' => $timeout, 'max_retries' => $retries];
        return new Guichet($key, $options + (self::$transport === null ? [] : ['transport' => self::$transport]));
    }

    /** @return string[] of both environments: a change of mode loses no webhook that is on its way */
    public static function webhookSecrets(): array
    {
        return array_values(array_filter([self::get('live_secret'), self::get('test_secret')]));
    }

    /** Written as WooCommerce writes what its form says. */
    public static function set(string $name, string $value): void
    {
        update_option(self::OPTION, [$name => $value] + (array) get_option(self::OPTION, []));
    }

    /**
     * In the smallest unit, or null where the currency has no such amount: 10.50 XOF cannot be paid, and nothing is
     * rounded on a guess.
     *
     * @param mixed $amount
     */
    public static function minor($amount, string $currency): ?int
    {
        if (!isset(self::CURRENCIES[$currency]) || !is_numeric($amount)) {
            return null;
        }
        $exact = (float) $amount * 10 ** self::CURRENCIES[$currency];
        return abs($exact - round($exact)) < 0.0001 ? (int) round($exact) : null;
    }
}
