<?php

declare(strict_types=1);

namespace Guichet\WooCommerce;

use Automattic\WooCommerce\Blocks\Payments\Integrations\AbstractPaymentMethodType;

/** The same payment method in the block checkout, under the same id. */
final class Blocks extends AbstractPaymentMethodType
{
    private const SCRIPT = 'guichet-blocks';

    /** @var string */
    protected $name = Plugin::ID;

    // phpcs:disable PSR1.Methods.CamelCapsMethodName -- The names are WooCommerce's.

    public function initialize(): void
    {
        $this->settings = get_option(Settings::OPTION, []);
    }

    public function is_active(): bool
    {
        return ($this->settings['enabled'] ?? 'no') === 'yes' && (new Gateway())->is_available();
    }

    /** @return string[] */
    public function get_payment_method_script_handles(): array
    {
        $needs = ['wc-blocks-registry', 'wc-settings', 'wp-element', 'wp-html-entities', 'wp-i18n'];
        wp_register_script(self::SCRIPT, plugins_url('assets/blocks.js', Plugin::$file), $needs, Plugin::VERSION, true);
        wp_set_script_translations(self::SCRIPT, Plugin::DOMAIN, dirname(Plugin::$file) . '/languages');
        return [self::SCRIPT];
    }

    /** @return array<string, mixed> */
    public function get_payment_method_data(): array
    {
        $gateway = new Gateway();
        return ['title' => $gateway->title, 'description' => $gateway->description, 'supports' => $gateway->supports];
    }
}
