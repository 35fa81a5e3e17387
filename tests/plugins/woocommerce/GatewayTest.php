<?php

declare(strict_types=1);

use Guichet\WooCommerce\Blocks;
use Guichet\WooCommerce\Diagnostics;
use Guichet\WooCommerce\Gateway;
use Guichet\WooCommerce\Healing;
use Guichet\WooCommerce\Lock;
use Guichet\WooCommerce\Plugin;
use Guichet\WooCommerce\Refunds;
use Guichet\WooCommerce\Sessions;
use Guichet\WooCommerce\Settings;
use Guichet\WooCommerce\Visits;
use Guichet\WooCommerce\Webhook;
use PHPUnit\Framework\TestCase;

/** In a real WordPress with the plugin active; WooCommerce is fakes.php, Guichet is FakeService. */
final class GatewayTest extends TestCase
{
    private FakeService $service;

    protected function setUp(): void
    {
        $this->service = new FakeService();
        Settings::$transport = $this->service;
        foreach (['fake_orders', 'fake_log', Webhook::SEEN, Webhook::REFUSED] as $option) {
            update_option($option, []);
        }
        $GLOBALS['fake_notices'] = [];
        update_option(Settings::OPTION, ['enabled' => 'yes', 'mode' => 'test', 'base_url' => 'https://api.test/v1',
            'test_key' => 'sk_test_secret1', 'live_key' => 'sk_live_secret3', 'test_secret' => FakeService::SECRET]);
    }

    protected function tearDown(): void
    {
        self::assertDoesNotMatchRegularExpression('/secret\d/', json_encode([get_option('fake_log'), get_option('fake_orders')]));
    }

    /** The order, with a customer on the page of Guichet, and the id of its session. */
    private function begun(string $total = '5000', string $currency = 'XOF'): array
    {
        $order = WC_Order::make($total, $currency);
        self::assertSame('success', (new Gateway())->process_payment($order->get_id())['result']);
        $order = wc_get_order($order->get_id());
        return [$order, $order->get_meta(Sessions::ID)];
    }

    /** No page was opened, which the customer was told. */
    private function refused(WC_Order $order): void
    {
        try {
            (new Gateway())->process_payment($order->get_id());
        } catch (Exception $error) {
            self::assertStringContainsString('Nothing was debited', $error->getMessage());
            return;
        }
        self::fail('a page was opened');
    }

    private function status(WC_Order $order): string
    {
        return wc_get_order($order->get_id())->get_status();
    }

    /** The scheduler, when everything is due. */
    private function heal(): void
    {
        foreach (get_option('fake_orders') as $id => $row) {
            if (isset($row['meta'][Healing::CHECK_AT])) {
                Healing::postpone(new WC_Order($id), 0, 0);
            }
        }
        Healing::run();
    }

    private function post(string $event, array $data, string $secret = FakeService::SECRET, bool $livemode = false): int
    {
        $body = json_encode(['id' => 'evt', 'event' => $event, 'livemode' => $livemode, 'data' => $data]);
        $time = (string) time();
        $signature = base64_encode(hash_hmac('sha256', "evt.$time.$body", base64_decode(substr($secret, 6)), true));
        $request = new WP_REST_Request('POST', '/guichet/v1/webhook');
        $request->set_headers(['webhook-id' => 'evt', 'webhook-timestamp' => $time, 'webhook-signature' => "v1,$signature",
            'content-type' => 'application/json']);
        $request->set_body($body);
        return rest_do_request($request)->get_status();
    }

    public function testTheMethodHasOneIdInBothCheckouts(): void
    {
        self::assertContains(Gateway::class, apply_filters('woocommerce_payment_gateways', []));
        $gateway = new Gateway();
        self::assertTrue($gateway->is_available());
        require_once dirname(Plugin::$file) . '/src/Blocks.php';
        $blocks = new Blocks();
        $blocks->initialize();
        self::assertTrue($blocks->is_active());
        self::assertSame($gateway->id, $blocks->get_name());
        self::assertStringContainsString("name: '{$gateway->id}'", file_get_contents(dirname(Plugin::$file) . '/assets/blocks.js'));
        self::assertSame(['guichet-blocks'], $blocks->get_payment_method_script_handles());
        self::assertSame($gateway->supports, $blocks->get_payment_method_data()['supports']);
        do_action('before_woocommerce_init');
        $declared = \Automattic\WooCommerce\Utilities\FeaturesUtil::$declared;
        self::assertSame(['custom_order_tables' => true, 'cart_checkout_blocks' => true], $declared);
        Settings::set('test_key', 'sk_live_secret3');
        self::assertFalse((new Gateway())->is_available(), 'a live key is none in test mode');
    }

    public function testTheFormRefusesAValueOfAnotherKind(): void
    {
        $this->expectExceptionMessage('sk_live_');
        (new Gateway())->validate_live_key_field('live_key', 'sk_test_secret1');
    }

    public function testFrenchTextsAreThere(): void
    {
        $folder = dirname(Plugin::$file) . '/languages/guichet-woocommerce-fr_FR';
        self::assertTrue(load_textdomain('guichet-woocommerce', "$folder.mo", 'fr_FR'));
        self::assertSame('Continuer vers le paiement', (new Gateway())->order_button_text);
        unload_textdomain('guichet-woocommerce', true);
        wp_register_script('guichet-blocks', 'x.js');
        add_filter('determine_locale', $french = static fn (): string => 'fr_FR');
        $texts = load_script_textdomain('guichet-blocks', 'guichet-woocommerce', dirname("$folder.mo"));
        remove_filter('determine_locale', $french);
        self::assertSame(['Continuer vers le paiement'], json_decode($texts, true)['locale_data']['messages']['Continue to payment']);
    }

    public function testARepeatedCheckoutIsOneSession(): void
    {
        $this->service->cut = true;
        [$order, $session] = $this->begun();
        self::assertSame("https://pay.test/$session", (new Gateway())->process_payment($order->get_id())['redirect']);
        self::assertCount(1, $this->service->sessions);
        self::assertSame(5000, $this->service->sessions[$session]['amount']);
        self::assertSame('pending', $this->status($order));
    }

    public function testACustomerWhomGuichetRefusesCostsNoSale(): void
    {
        $this->service->refused = 'customer.email';
        [, $session] = $this->begun();
        self::assertNull($this->service->sessions[$session]['customer']);
        $this->service->refused = 'amount';
        $this->refused(WC_Order::make('5000'));
    }

    public function testAnOutageDebitsNothingAndIsSaid(): void
    {
        $this->service->down = true;
        $this->refused(WC_Order::make('5000'));
        self::assertNotEmpty(get_option('fake_log'));
    }

    public function testAnAmountThatTheCurrencyDoesNotHaveIsNotRounded(): void
    {
        $this->refused(WC_Order::make('10.50'));
        self::assertSame([], $this->service->sessions);
        [, $session] = $this->begun('10.50', 'EUR');
        self::assertSame(10.5, $this->service->sessions[$session]['amount']);
    }

    public function testAReturnPaysOnceWhateverItIsAccompaniedBy(): void
    {
        [$order, $session] = $this->begun();
        $reference = $this->service->pay($session, 'succeeded');
        self::assertSame($order->get_checkout_order_received_url(), Visits::settled($order, $reference));
        self::assertSame('processing', $this->status($order));
        self::assertSame($reference, wc_get_order($order->get_id())->get_transaction_id());
        $this->post('payment.succeeded', $this->service->payments[$reference]);
        $this->post('checkout_session.completed', $this->service->sessions[$session]);
        $this->post('payment.failed', ['reference' => wp_generate_uuid4(), 'checkout_session' => ['external_id' => $session]]);
        $asked = count($this->service->seen);
        $this->heal();
        self::assertCount($asked, $this->service->seen, 'nobody asks about an order whose end is known');
        self::assertSame(1, $order->completions);
        self::assertSame('success', (new Gateway())->process_payment($order->get_id())['result']);
        self::assertSame(1, $order->completions);
    }

    public function testAReturnProvesNothing(): void
    {
        [$order] = $this->begun();
        [, $another] = $this->begun('7000');
        $reference = $this->service->pay($another, 'succeeded');
        Visits::settled($order, $reference);
        self::assertSame('pending', $this->status($order));
    }

    public function testAFailureAndThenASuccess(): void
    {
        [$order, $session] = $this->begun();
        $first = $this->service->pay($session, 'failed');
        self::assertSame($order->get_checkout_payment_url(), Visits::settled($order, $first));
        self::assertSame('failed', $this->status($order));
        self::assertStringContainsString('balance', implode($order->notes));
        $second = $this->service->pay($session, 'pending');
        Visits::settled($order, $second);
        self::assertSame('on-hold', $this->status($order));
        self::assertSame(200, $this->post('payment.failed', $this->service->payments[$first]));
        self::assertSame('on-hold', $this->status($order), 'an earlier failure, told late');
        $this->service->payments[$second]['status'] = 'succeeded';
        $this->service->sessions[$session] = ['status' => 'completed', 'payment_reference' => $second] + $this->service->sessions[$session];
        $this->heal();
        self::assertSame('processing', $this->status($order));
    }

    public function testAFailureIsFoundWithoutWebhookOrBrowser(): void
    {
        [$order, $session] = $this->begun();
        $reference = $this->service->pay($session, 'pending');
        Visits::settled($order, $reference);
        $this->service->payments[$reference]['status'] = 'failed';
        $this->heal();
        self::assertSame('failed', $this->status($order));
    }

    public function testOnlyASignedWebhookIsHeard(): void
    {
        [$order, $session] = $this->begun();
        $this->service->pay($session, 'succeeded');
        $data = $this->service->sessions[$session];
        self::assertSame(401, $this->post('checkout_session.completed', $data, 'whsec_' . str_repeat('B', 40)));
        self::assertSame('pending', $this->status($order));
        self::assertSame(200, $this->post('checkout_session.completed', $data, FakeService::SECRET, true));
        self::assertSame('pending', $this->status($order), 'of the other environment');
        self::assertSame(200, $this->post('checkout_session.completed', $data));
        self::assertSame('processing', $this->status($order));
        Settings::set('test_secret', '');
        self::assertSame(401, $this->post('checkout_session.completed', $data));
    }

    public function testASignedWebhookIsStillNotBelieved(): void
    {
        [$order, $session] = $this->begun();
        self::assertSame(200, $this->post('checkout_session.completed', ['status' => 'completed'] + $this->service->sessions[$session]));
        self::assertSame('pending', $this->status($order));
    }

    public function testWebhooksOfNoOrderAreReceived(): void
    {
        self::assertSame(200, $this->post('webhook.test', ['message' => 'x']));
        self::assertSame(200, $this->post('checkout_session.completed', ['external_id' => "wc-000000000000-99-1\n"]));
    }

    public function testAnHourWithoutGuichetLeavesNoPaidOrderUnpaid(): void
    {
        $begun = [];
        for ($each = 0; $each < 3; $each++) {
            $begun[] = [$order, $session] = $this->begun();
            $this->service->pay($session, 'succeeded');
        }
        $this->service->down = true;
        Visits::settled($begun[0][0], '');
        self::assertSame('on-hold', $this->status($begun[0][0]));
        self::assertSame(200, $this->post('checkout_session.completed', $this->service->sessions[$begun[1][1]]));
        for ($minute = 0; $minute < 60; $minute++) {
            $seen = count($this->service->seen);
            $this->heal();
            self::assertCount($seen + 1, $this->service->seen, 'a run stops at the first order without an answer');
        }
        $this->service->down = false;
        Healing::run();
        foreach ($begun as [$order]) {
            self::assertSame('processing', $this->status($order));
            self::assertSame(1, $order->completions);
        }
    }

    public function testRunsAreBoundedAndAskLessAndLessOften(): void
    {
        for ($each = 0; $each < 25; $each++) {
            [$order] = $this->begun();
        }
        $this->service->seen = [];
        $this->heal();
        self::assertCount(20, $this->service->seen);
        $waits = [];
        for ($check = 0; $check < 6; $check++) {
            $order = wc_get_order($order->get_id());
            $order->update_meta_data(Healing::CHECK_AT, '1');
            $order->save();
            Healing::run();
            $waits[] = (int) round(((int) wc_get_order($order->get_id())->get_meta(Healing::CHECK_AT) - time()) / 60);
        }
        self::assertSame([1, 2, 4, 8, 15, 15], $waits);
    }

    public function testAnotherAmountOrCurrencyDoesNotPay(): void
    {
        foreach ([['total' => '5001'], ['currency' => 'XAF']] as $change) {
            [$order, $session] = $this->begun();
            $order->put($change);
            $this->service->pay($session, 'succeeded');
            $this->heal();
            self::assertSame('on-hold', $this->status($order));
            self::assertSame(0, $order->completions);
        }
        [$order, $session] = $this->begun();
        $this->service->pay($session, 'succeeded', ['amount' => 50]);
        $this->heal();
        self::assertSame('on-hold', $this->status($order));
    }

    public function testASessionOfAnotherOrderDoesNotPay(): void
    {
        [$order, $session] = $this->begun();
        $this->service->sessions[$session]['metadata']['order_check'] = 'of-a-copy-of-the-shop';
        $this->service->pay($session, 'succeeded');
        $this->heal();
        self::assertSame('pending', $this->status($order));
        $this->refused($order);
    }

    public function testAChangedOrderGetsANewSessionWhenTheOldOneCanBePaidNoMore(): void
    {
        [$order, $session] = $this->begun();
        $order->put(['total' => '6000']);
        $pending = $this->service->pay($session, 'pending');
        self::assertSame("https://pay.test/$session", (new Gateway())->process_payment($order->get_id())['redirect']);
        $this->service->payments[$pending]['status'] = 'failed';
        (new Gateway())->process_payment($order->get_id());
        self::assertSame('expired', $this->service->sessions[$session]['status']);
        $next = wc_get_order($order->get_id())->get_meta(Sessions::ID);
        self::assertNotSame($session, $next);
        self::assertSame(6000, $this->service->sessions[$next]['amount']);
        $this->service->pay($next, 'succeeded');
        $this->post('checkout_session.expired', $this->service->sessions[$session]);
        $this->heal();
        self::assertSame('processing', $this->status($order));
    }

    public function testAnOrderOfTestModeIsAskedAboutInTestMode(): void
    {
        [$order, $session] = $this->begun();
        $this->service->pay($session, 'succeeded');
        Settings::set('mode', 'live');
        (new Gateway())->process_payment($order->get_id());
        $live = wc_get_order($order->get_id())->get_meta(Sessions::ID);
        self::assertNotSame($session, $live, 'a test payment does not pay in live mode');
        $this->heal();
        self::assertSame('pending', $this->status($order));
    }

    public function testAnExpiredSessionFreesTheStock(): void
    {
        [$order, $session] = $this->begun();
        $this->service->sessions[$session]['status'] = 'expired';
        $this->heal();
        self::assertSame('cancelled', $this->status($order));
        self::assertSame('', wc_get_order($order->get_id())->get_meta(Healing::CHECK_AT));
    }

    public function testHoldStockCancelsNothingThatIsBeingPaid(): void
    {
        [$order, $session] = $this->begun();
        $may = static fn (): bool => apply_filters('woocommerce_cancel_unpaid_order', true, wc_get_order($order->get_id()));
        $this->service->down = true;
        self::assertFalse($may());
        $this->service->down = false;
        $pending = $this->service->pay($session, 'pending');
        self::assertFalse($may());
        $this->service->payments[$pending]['status'] = 'failed';
        self::assertTrue($may());
        self::assertSame('expired', $this->service->sessions[$session]['status']);
        self::assertTrue(apply_filters('woocommerce_cancel_unpaid_order', true, WC_Order::make('1')));
    }

    public function testAskingAboutAnOrderDoesNotProlongItsHold(): void
    {
        [$order] = $this->begun();
        $modified = $order->modified;
        $this->heal();
        $this->heal();
        self::assertSame($modified, $order->modified);
    }

    public function testASuccessAfterACancellationIsKept(): void
    {
        [$order, $session] = $this->begun();
        $this->service->pay($session, 'succeeded');
        $order->update_status('cancelled');
        $this->heal();
        self::assertSame('processing', $this->status($order));
        self::assertStringContainsString('stock', implode($order->notes));
    }

    public function testAnOrderPaidOtherwiseIsNotPaidAgain(): void
    {
        [$order, $session] = $this->begun();
        $order->update_status('processing', 'by cheque');
        Healing::run();
        self::assertSame('expired', $this->service->sessions[$session]['status']);
        [$order, $session] = $this->begun();
        $reference = $this->service->pay($session, 'succeeded');
        $order->update_status('processing', 'by cheque');
        Healing::run();
        self::assertSame(0, $order->completions);
        self::assertStringContainsString($reference, implode($order->notes));
    }

    public function testAPaymentThatWasRefundedBeforeDoesNotPay(): void
    {
        [$order, $session] = $this->begun();
        $reference = $this->service->pay($session, 'succeeded');
        $this->service->payments[$reference]['status'] = 'refunded';
        $this->heal();
        self::assertSame('cancelled', $this->status($order));
        self::assertSame(0, $order->completions);
    }

    public function testAProcessThatWasKilledInTheMiddleDoesNoHarm(): void
    {
        [$order, $session] = $this->begun();
        $reference = $this->service->pay($session, 'succeeded');
        $order->payment_complete($reference);
        $this->heal();
        self::assertSame(1, $order->completions);
        self::assertSame('yes', wc_get_order($order->get_id())->get_meta(Sessions::ENDED));
    }

    public function testOneProcessAtATimeChangesAnOrder(): void
    {
        global $wpdb;
        [$order, $session] = $this->begun();
        $this->service->pay($session, 'succeeded');
        $name = "guichet_lock_{$order->get_id()}";
        $wpdb->insert($wpdb->options, ['option_name' => $name, 'option_value' => time() . '.other', 'autoload' => 'no']);
        self::assertSame(200, $this->post('checkout_session.completed', $this->service->sessions[$session]));
        self::assertSame('pending', $this->status($order));
        $wpdb->update($wpdb->options, ['option_value' => (time() - 600) . '.dead'], ['option_name' => $name]);
        $this->heal();
        self::assertSame('processing', $this->status($order));
        self::assertTrue(Lock::hold($order->get_id(), static fn () => null));
        self::assertNull($wpdb->get_var("SELECT option_value FROM $wpdb->options WHERE option_name = '$name'"));
    }

    private function paid(): WC_Order
    {
        [$order, $session] = $this->begun();
        $this->service->pay($session, 'succeeded');
        $this->heal();
        return wc_get_order($order->get_id());
    }

    public function testARefundIsOfTheWhole(): void
    {
        $order = $this->paid();
        $refused = (new Gateway())->process_refund($order->get_id(), '4999');
        self::assertSame('guichet_partial', $refused->get_error_code());
        self::assertSame([], $this->service->refunds);
        self::assertTrue((new Gateway())->process_refund($order->get_id(), '5000', 'cassé'));
        self::assertCount(1, $this->service->refunds);
    }

    public function testAPendingRefundIsNotDone(): void
    {
        $order = $this->paid();
        $this->service->refundStatus = 'pending';
        $pending = (new Gateway())->process_refund($order->get_id(), '5000');
        self::assertSame('guichet_refund_pending', $pending->get_error_code());
        $this->heal();
        self::assertSame(0.0, $order->refunded);
        $reference = array_key_first($this->service->refunds);
        $this->service->refunds[$reference]['status'] = 'succeeded';
        $this->heal();
        self::assertSame(5000.0, $order->refunded);
        $this->heal();
        self::assertSame(5000.0, $order->refunded);
    }

    public function testARefundThatFailsSaysWhy(): void
    {
        $order = $this->paid();
        $this->service->refundStatus = 'failed';
        $failed = (new Gateway())->process_refund($order->get_id(), '5000');
        self::assertStringContainsString('Solde insuffisant', $failed->get_error_message());
        self::assertSame('processing', $this->status($order));
    }

    public function testALostAnswerToARefundIsLookedUp(): void
    {
        $order = $this->paid();
        Settings::$transport = new class ($this->service) {
            public function __construct(private FakeService $service)
            {
            }

            public function __invoke(string $method, ...$rest): array
            {
                $this->service->cut = $method === 'POST';
                return ($this->service)($method, ...$rest);
            }
        };
        $unknown = (new Gateway())->process_refund($order->get_id(), '5000');
        self::assertSame('guichet_refund_unknown', $unknown->get_error_code());
        $this->heal();
        self::assertSame(5000.0, $order->refunded);
    }

    /** The record of the refund is there while the gateway is asked, and goes when it does not say yes. */
    public function testAWebhookThatIsFasterThanTheAnswerLosesNoRefund(): void
    {
        foreach ([true, false] as $lost) {
            $order = $this->paid();
            $payment = $this->service->payments[$order->get_transaction_id()];
            $order->put(['refunded' => 5000.0]);
            $this->service->meanwhile = function () use ($payment, $lost): void {
                $this->post('payment.refunded', ['status' => 'refunded'] + $payment);
                $this->service->down = $lost;
            };
            $said = (new Gateway())->process_refund($order->get_id(), '5000');
            $this->service->down = false;
            if ($lost) {
                self::assertSame('guichet_refund_unknown', $said->get_error_code());
                $order->put(['refunded' => 0.0]);
                $this->heal();
                self::assertSame(5000.0, $order->refunded);
            } else {
                self::assertTrue($said);
                self::assertSame('', wc_get_order($order->get_id())->get_meta(Refunds::ASKED));
                self::assertCount(1, preg_grep('/ is done/', $order->notes));
            }
        }
    }

    public function testARefundFromTheConsoleIsRecorded(): void
    {
        $order = $this->paid();
        $payment = $this->service->payments[$order->get_transaction_id()];
        ($this->service)('POST', "https://api.test/v1/payments/$payment[reference]/refund", [], null);
        $second = ['reference' => wp_generate_uuid4()] + $payment;
        self::assertSame(200, $this->post('payment.refunded', $second));
        self::assertSame(0.0, $order->refunded, 'a second success that Guichet gave back');
        self::assertSame(200, $this->post('payment.refunded', $payment));
        self::assertSame(200, $this->post('payment.refunded', $payment));
        self::assertSame(5000.0, $order->refunded);
        self::assertCount(1, preg_grep('/ is done/', $order->notes));
        self::assertSame('', wc_get_order($order->get_id())->get_meta(Refunds::ASKED));
    }

    public function testDiagnosticsSayWhatIsWrong(): void
    {
        update_option('woocommerce_manage_stock', 'yes');
        update_option('woocommerce_hold_stock_minutes', 10);
        update_option(Healing::LAST_RUN, time());
        $good = array_column(Diagnostics::rows(), 0, 1);
        $bad = array_keys(array_filter($good, static fn (bool $each): bool => !$each));
        self::assertSame(['Mode', 'Webhook address', 'Last webhook', 'Hold stock'], $bad);
        $this->post('webhook.test', ['message' => 'x']);
        self::assertTrue(array_column(Diagnostics::rows(), 0, 1)['Last webhook']);
        $this->service->down = true;
        ob_start();
        Diagnostics::show();
        $page = ob_get_clean();
        self::assertStringContainsString('✗', $page);
        self::assertDoesNotMatchRegularExpression('/secret\d/', $page);
    }

    public function testUninstallingForgetsKeysAndKeepsTheBooks(): void
    {
        $order = $this->paid();
        define('WP_UNINSTALL_PLUGIN', Plugin::$file);
        require dirname(Plugin::$file) . '/uninstall.php';
        self::assertFalse(get_option(Settings::OPTION));
        self::assertNotSame('', wc_get_order($order->get_id())->get_transaction_id());
    }
}
