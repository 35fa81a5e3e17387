<?php

declare(strict_types=1);

namespace Guichet\WooCommerce;

/** The payment method, as WooCommerce knows it. */
final class Gateway extends \WC_Payment_Gateway
{
    public function __construct()
    {
        $this->id = Plugin::ID;
        $this->method_title = 'Guichet';
        $this->method_description = __('Mobile Money and cards on the payment page of Guichet.', 'guichet-woocommerce');
        $this->has_fields = false;
        $this->supports = ['products', 'refunds'];
        $this->init_form_fields();
        $this->init_settings();
        $this->title = $this->get_option('title');
        $this->description = $this->get_option('description');
        $this->order_button_text = __('Continue to payment', 'guichet-woocommerce');
        add_action('woocommerce_update_options_payment_gateways_' . $this->id, [$this, 'process_admin_options']);
    }

    // phpcs:disable PSR1.Methods.CamelCapsMethodName -- The names are WooCommerce's.

    public function init_form_fields(): void
    {
        $secret = __('From the console of Guichet.', 'guichet-woocommerce');
        $this->form_fields = [
            'enabled' => self::field('checkbox', __('Enable', 'guichet-woocommerce'), 'no'),
            'title' => self::field('text', __('Title', 'guichet-woocommerce'), __('Mobile Money or card', 'guichet-woocommerce')),
            'description' => self::field('textarea', __('Description', 'guichet-woocommerce'), __('You choose your operator on the next page.', 'guichet-woocommerce')),
            'base_url' => self::field('text', __('Address of the API, ending in /v1', 'guichet-woocommerce'), ''),
            'mode' => self::field('select', __('Mode', 'guichet-woocommerce'), 'test') + [
                'options' => ['test' => __('Test', 'guichet-woocommerce'), 'live' => __('Live', 'guichet-woocommerce')],
            ],
            'test_key' => self::field('password', __('Test key (sk_test_…)', 'guichet-woocommerce'), '', $secret),
            'test_secret' => self::field('password', __('Test webhook secret (whsec_…)', 'guichet-woocommerce'), '', $secret),
            'live_key' => self::field('password', __('Live key (sk_live_…)', 'guichet-woocommerce'), '', $secret),
            'live_secret' => self::field('password', __('Live webhook secret (whsec_…)', 'guichet-woocommerce'), '', $secret),
        ];
    }

    /** @return array<string, mixed> */
    private static function field(string $type, string $title, string $default, string $description = ''): array
    {
        return ['type' => $type, 'title' => $title, 'default' => $default, 'description' => $description];
    }

    /** @param mixed $value */
    public function validate_test_key_field(string $name, $value): string
    {
        return self::beginningWith('sk_test_', $value);
    }

    /** @param mixed $value */
    public function validate_live_key_field(string $name, $value): string
    {
        return self::beginningWith('sk_live_', $value);
    }

    /** @param mixed $value */
    public function validate_test_secret_field(string $name, $value): string
    {
        return self::beginningWith('whsec_', $value);
    }

    /** @param mixed $value */
    public function validate_live_secret_field(string $name, $value): string
    {
        return self::beginningWith('whsec_', $value);
    }

    /** @param mixed $value */
    private static function beginningWith(string $prefix, $value): string
    {
        $value = trim((string) $value);
        if ($value !== '' && strpos($value, $prefix) !== 0) {
            /* translators: %s: how the value begins */
            throw new \Exception(sprintf(__('This begins with %s; another value was not kept.', 'guichet-woocommerce'), $prefix));
        }
        return $value;
    }

    public function admin_options(): void
    {
        parent::admin_options();
        $link = '<a href="%s">%s</a>';
        printf($link, esc_url(Diagnostics::url()), esc_html__('Does it work? Diagnostics of Guichet', 'guichet-woocommerce'));
    }

    public function is_available(): bool
    {
        return parent::is_available() && Settings::ready() && isset(Settings::CURRENCIES[get_woocommerce_currency()]);
    }

    /**
     * What it throws is shown in both checkouts; the block checkout forgets notices.
     *
     * @param int $order_id
     * @return array<string, string>
     */
    public function process_payment($order_id): array
    {
        $order = wc_get_order($order_id);
        try {
            $url = Sessions::url($order);
        } catch (\Throwable $error) {
            Log::warning("Order $order_id: {$error->getMessage()}");
            throw new \Exception(__('The payment page cannot be opened at the moment. Nothing was debited; please try again.', 'guichet-woocommerce'));
        }
        return ['result' => 'success', 'redirect' => $url ?? Visits::settled($order, '')];
    }

    /**
     * @param int $order_id
     * @param float|string|null $amount
     * @param string $reason
     * @return true|\WP_Error
     */
    public function process_refund($order_id, $amount = null, $reason = '')
    {
        return Refunds::ask(wc_get_order($order_id), $amount, (string) $reason);
    }
}
