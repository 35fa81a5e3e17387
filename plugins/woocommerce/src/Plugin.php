<?php

declare(strict_types=1);

namespace Guichet\WooCommerce;

/** Where WordPress and WooCommerce are told of everything else. */
final class Plugin
{
    /** One id for the classic checkout and for the blocks: with two of them the method is missing in one. */
    public const ID = 'guichet';
    public const DOMAIN = 'guichet-woocommerce';
    public const VERSION = '1.0.0';

    public static string $file;

    public static function start(string $file): void
    {
        self::$file = $file;
        add_action('before_woocommerce_init', [self::class, 'declareCompatibility']);
        add_action('init', [self::class, 'loadTranslations']);
        add_action('plugins_loaded', [self::class, 'load']);
        register_deactivation_hook($file, [Healing::class, 'stop']);
    }

    public static function declareCompatibility(): void
    {
        foreach (['custom_order_tables', 'cart_checkout_blocks'] as $feature) {
            \Automattic\WooCommerce\Utilities\FeaturesUtil::declare_compatibility($feature, self::$file, true);
        }
    }

    public static function loadTranslations(): void
    {
        load_plugin_textdomain(self::DOMAIN, false, dirname(plugin_basename(self::$file)) . '/languages');
    }

    /** Nothing is done without WooCommerce, whose class the gateway extends. */
    public static function load(): void
    {
        if (!class_exists('WC_Payment_Gateway')) {
            return;
        }
        require __DIR__ . '/Gateway.php';
        add_filter('woocommerce_payment_gateways', static function (array $gateways): array {
            return array_merge($gateways, [Gateway::class]);
        });
        add_action('woocommerce_blocks_payment_method_type_registration', [self::class, 'registerBlocks']);
        add_action('rest_api_init', [Webhook::class, 'register']);
        Visits::start();
        Healing::start();
        Diagnostics::start();
    }

    /** @param \Automattic\WooCommerce\Blocks\Payments\PaymentMethodRegistry $registry */
    public static function registerBlocks($registry): void
    {
        require_once __DIR__ . '/Blocks.php';
        $registry->register(new Blocks());
    }
}
