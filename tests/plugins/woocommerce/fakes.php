<?php

/** The few classes and functions of WooCommerce that the plugin uses, in a real WordPress. Orders are kept in an option. */

declare(strict_types=1);

namespace Automattic\WooCommerce\Utilities {
    class FeaturesUtil
    {
        public static array $declared = [];

        public static function declare_compatibility(string $feature, string $file, bool $compatible): void
        {
            self::$declared[$feature] = $compatible;
        }
    }
}

namespace Automattic\WooCommerce\Blocks\Payments\Integrations {
    abstract class AbstractPaymentMethodType
    {
        protected $name = '';
        protected $settings = [];

        public function get_name(): string
        {
            return $this->name;
        }
    }
}

namespace {
    class WC_Payment_Gateway
    {
        public $id;
        public $title = '';
        public $description = '';
        public $supports = ['products'];
        public $form_fields = [];
        public $settings = [];
        public $enabled = 'no';
        public $method_title;
        public $method_description;
        public $has_fields;
        public $order_button_text;

        public function init_settings(): void
        {
            $defaults = array_map(static fn (array $field) => $field['default'], $this->form_fields);
            $this->settings = (array) get_option("woocommerce_{$this->id}_settings", []) + $defaults;
            $this->enabled = $this->settings['enabled'];
        }

        public function get_option(string $name): string
        {
            return $this->settings[$name];
        }

        public function is_available(): bool
        {
            return $this->enabled === 'yes';
        }

        public function admin_options(): void
        {
        }
    }

    class WC_Order
    {
        private const PAID = ['processing', 'completed'];
        private array $row;
        private array $changes = [];

        public function __construct(private int $id)
        {
            $this->row = get_option('fake_orders', [])[$id];
        }

        public static function make(string $total, string $currency = 'XOF'): self
        {
            $orders = get_option('fake_orders', []);
            $id = count($orders) + 101;
            $orders[$id] = ['status' => 'pending', 'total' => $total, 'currency' => $currency, 'meta' => [], 'notes' => [],
                'transaction' => '', 'paid_at' => null, 'completions' => 0, 'refunded' => 0.0, 'via' => 'checkout', 'modified' => 0];
            update_option('fake_orders', $orders);
            return new self($id);
        }

        public function __get(string $name)
        {
            return get_option('fake_orders')[$this->id][$name];
        }

        /** Only what was changed here, as WooCommerce saves. */
        public function put(array $changes): void
        {
            $orders = get_option('fake_orders');
            $orders[$this->id] = array_merge($orders[$this->id], $changes);
            update_option('fake_orders', $orders);
            $this->row = array_merge($this->row, $changes);
        }

        public function save(): void
        {
            $this->save_meta_data();
        }

        public function save_meta_data(): void
        {
            $this->put(['meta' => array_filter(array_merge($this->meta, $this->changes), static fn ($value) => $value !== null)]);
            $this->changes = [];
            if (apply_filters('woocommerce_orders_table_datastore_should_save_after_meta_change', true)) {
                $this->put(['modified' => $this->modified + 1]);
            }
        }

        public function get_meta(string $name): string
        {
            return $this->changes[$name] ?? $this->row['meta'][$name] ?? '';
        }

        public function update_meta_data(string $name, string $value): void
        {
            $this->changes[$name] = $value;
            $this->row['meta'][$name] = $value;
        }

        public function delete_meta_data(string $name): void
        {
            $this->changes[$name] = null;
            unset($this->row['meta'][$name]);
        }

        public function get_id(): int
        {
            return $this->id;
        }

        public function get_order_number(): string
        {
            return (string) $this->id;
        }

        public function get_order_key(): string
        {
            return "wc_order_key{$this->id}";
        }

        public function get_total(): string
        {
            return $this->row['total'];
        }

        public function get_currency(): string
        {
            return $this->row['currency'];
        }

        public function get_status(): string
        {
            return $this->row['status'];
        }

        public function has_status($statuses): bool
        {
            return in_array($this->row['status'], (array) $statuses, true);
        }

        public function is_paid(): bool
        {
            return $this->has_status(self::PAID);
        }

        public function get_date_paid(): ?int
        {
            return $this->row['paid_at'];
        }

        public function get_transaction_id(): string
        {
            return $this->row['transaction'];
        }

        public function get_created_via(): string
        {
            return $this->row['via'];
        }

        public function get_remaining_refund_amount(): float
        {
            return (float) $this->row['total'] - $this->refunded;
        }

        public function get_billing_first_name(): string
        {
            return 'Awa';
        }

        public function get_billing_last_name(): string
        {
            return 'Diop';
        }

        public function get_billing_email(): string
        {
            return 'awa@example.test';
        }

        public function get_checkout_payment_url(): string
        {
            return "https://shop.test/pay/{$this->id}";
        }

        public function get_checkout_order_received_url(): string
        {
            return "https://shop.test/received/{$this->id}";
        }

        public function add_order_note(string $note): void
        {
            $this->put(['notes' => array_merge($this->notes, [$note])]);
        }

        public function update_status(string $status, string $note = ''): void
        {
            $from = $this->row['status'];
            $this->save_meta_data();
            $this->put(['status' => $status]);
            $this->add_order_note($note);
            if ($from !== $status) {
                do_action('woocommerce_order_status_changed', $this->id, $from, $status, $this);
            }
        }

        public function payment_complete(string $transaction): bool
        {
            if ($this->has_status(['pending', 'on-hold', 'failed', 'cancelled'])) {
                $this->put(['transaction' => $transaction, 'paid_at' => time(), 'completions' => $this->completions + 1]);
                $this->update_status('processing', 'paid');
            }
            return true;
        }
    }

    function wc_get_order($id)
    {
        return isset(get_option('fake_orders', [])[$id]) ? new WC_Order((int) $id) : false;
    }

    function wc_get_orders(array $query): array
    {
        $due = array_filter(
            array_map(static fn (array $row) => $row['meta'][$query['meta_key']] ?? null, get_option('fake_orders', [])),
            static fn ($at) => $at !== null && (int) $at <= (int) $query['meta_value']
        );
        asort($due);
        return array_slice(array_keys($due), 0, $query['limit']);
    }

    function wc_create_refund(array $given)
    {
        $order = new WC_Order($given['order_id']);
        $order->put(['refunded' => $order->refunded + $given['amount']]);
        $order->update_status('refunded', 'refunded');
        return $order;
    }

    function wc_get_logger()
    {
        return new class {
            public function warning(string $message): void
            {
                update_option('fake_log', array_merge(get_option('fake_log', []), [$message]));
            }
        };
    }

    function wc_add_notice(string $notice): void
    {
        $GLOBALS['fake_notices'][] = $notice;
    }

    function wc_get_checkout_url(): string
    {
        return 'https://shop.test/checkout';
    }

    function wc_clean($value)
    {
        return sanitize_text_field($value);
    }

    function get_woocommerce_currency(): string
    {
        return 'XOF';
    }

    function wc_get_price_decimals(): int
    {
        return 0;
    }

    function as_has_scheduled_action(string $hook): bool
    {
        return isset($GLOBALS['fake_actions'][$hook]);
    }

    function as_schedule_recurring_action(int $at, int $every, string $hook): void
    {
        $GLOBALS['fake_actions'][$hook] = $every;
    }

    function as_unschedule_all_actions(string $hook): void
    {
        unset($GLOBALS['fake_actions'][$hook]);
    }

    function WC()
    {
        return new class {
            public function api_request_url(string $route): string
            {
                return "https://shop.test/wc-api/$route/";
            }
        };
    }
}
