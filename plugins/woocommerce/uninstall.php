<?php

/** Forgets keys, secrets and what was seen. Notes and references stay with the orders: they are the shop's books. */

declare(strict_types=1);

defined('WP_UNINSTALL_PLUGIN') || exit;

foreach (['woocommerce_guichet_settings', 'guichet_shop', 'guichet_webhook_seen', 'guichet_webhook_refused', 'guichet_healed_at'] as $option) {
    delete_option($option);
}
if (function_exists('as_unschedule_all_actions')) {
    as_unschedule_all_actions('guichet_heal');
}
