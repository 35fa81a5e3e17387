<?php

/**
 * Plugin Name: Guichet for WooCommerce
 * Description: Mobile Money and card payments through Guichet, with orders that heal themselves.
 * Version: 1.0.0
 * Requires at least: 6.5
 * Requires PHP: 7.4
 * Requires Plugins: woocommerce
 * WC requires at least: 8.8
 * WC tested up to: 9.4
 * Author: Guichet
 * License: Proprietary
 * Text Domain: guichet-woocommerce
 * Domain Path: /languages
 */

declare(strict_types=1);

namespace Guichet\WooCommerce;

defined('ABSPATH') || exit;

if (!class_exists(\Guichet\Guichet::class, false)) {
    require __DIR__ . '/guichet/autoload.php';
}
foreach (['Settings', 'Log', 'Lock', 'Sessions', 'Verification', 'Refunds', 'Healing', 'Webhook', 'Visits', 'Diagnostics'] as $file) {
    require __DIR__ . "/src/$file.php";
}
require __DIR__ . '/src/Plugin.php';

Plugin::start(__FILE__);
