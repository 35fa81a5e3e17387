<?php

declare(strict_types=1);

/** Guichet, as far as the plugin asks it: sessions, payments and refunds in memory, and faults. */
final class FakeService
{
    public const SECRET = 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';

    /** @var array<string, array<string, mixed>> by external_id */
    public array $sessions = [];
    /** @var array<string, array<string, mixed>> by reference */
    public array $payments = [];
    /** @var array<string, array<string, mixed>> by reference */
    public array $refunds = [];
    /** @var string[] "GET /balance" */
    public array $seen = [];
    public bool $down = false;
    /** The answer of the next POST is lost after it was carried out. */
    public bool $cut = false;
    /** The field that a session with a customer is refused for. */
    public string $refused = '';
    public string $refundStatus = 'succeeded';
    /** Happens after the next POST was carried out, and before it is answered. */
    public ?Closure $meanwhile = null;

    public function __invoke(string $method, string $url, array $headers, ?string $body): array
    {
        $path = substr((string) parse_url($url, PHP_URL_PATH), strlen('/v1'));
        $this->seen[] = "$method $path";
        if ($this->down) {
            throw new Guichet\ApiConnection('down, with sk_test_secret1 and whsec_secret2');
        }
        [$status, $answer] = $this->answer($method, explode('/', substr($path, 1)), json_decode((string) $body, true) ?? [], $url);
        if ($this->meanwhile !== null && $method === 'POST') {
            [$happens, $this->meanwhile] = [$this->meanwhile, null];
            $happens();
            if ($this->down) {
                throw new Guichet\ApiConnection('down');
            }
        }
        if ($this->cut && $method === 'POST') {
            $this->cut = false;
            throw new Guichet\ApiConnection('cut');
        }
        $whole = $status < 300 ? ['data' => $answer, 'meta' => ['has_more' => false, 'per_page' => 100]] : ['error' => $answer];
        return [$status, ['date' => gmdate(DATE_RFC7231)], json_encode($whole)];
    }

    public function pay(string $external, string $status, array $changes = []): string
    {
        $session = &$this->sessions[$external];
        $reference = wp_generate_uuid4();
        $this->payments[$reference] = $changes + ['reference' => $reference, 'status' => $status, 'amount' => $session['amount'],
            'currency' => $session['currency'], 'failure' => $status === 'failed' ? ['code' => 'insufficient_funds', 'message' => ''] : null,
            'checkout_session' => ['id' => $session['id'], 'external_id' => $external]];
        if ($status === 'succeeded') {
            $session = ['status' => 'completed', 'payment_reference' => $session['payment_reference'] ?? $reference] + $session;
        }
        return $reference;
    }

    private function answer(string $method, array $path, array $body, string $url): array
    {
        switch ("$method $path[0]" . (isset($path[2]) ? " $path[2]" : '')) {
            case 'POST checkout-sessions':
                if ($this->refused !== '' && $body['customer'] !== null) {
                    return [422, ['code' => 'invalid_request', 'message' => 'Non.', 'details' => [$this->refused => ['Non.']]]];
                }
                $external = $body['external_id'];
                $this->sessions[$external] ??= ['id' => wp_generate_uuid4(), 'url' => "https://pay.test/$external", 'status' => 'open',
                    'payment_reference' => null] + $body;
                return [201, $this->sessions[$external]];
            case 'GET checkout-sessions':
                $found = $this->session($path[1]);
                return $found === null ? self::error(404, 'not_found') : [200, $found];
            case 'POST checkout-sessions expire':
                return $this->expire($path[1]);
            case 'GET payments':
                return isset($this->payments[$path[1]]) ? [200, $this->payments[$path[1]]] : self::error(404, 'not_found');
            case 'POST payments refund':
                $refund = ['reference' => wp_generate_uuid4(), 'payment_reference' => $path[1], 'status' => $this->refundStatus,
                    'reason' => 'r', 'failure' => $this->refundStatus === 'failed' ? ['message' => 'Solde insuffisant'] : null];
                $this->refunds[$refund['reference']] = $refund;
                return [201, $refund];
            case 'GET refunds':
                parse_str((string) parse_url($url, PHP_URL_QUERY), $query);
                $of = static fn (array $refund): bool => $refund['payment_reference'] === $query['payment_reference'];
                return [200, isset($path[1]) ? $this->refunds[$path[1]] : array_values(array_filter($this->refunds, $of))];
            case 'GET webhooks':
                return [200, ['url' => 'https://elsewhere.test/hook']];
        }
        return self::error(404, 'not_found');
    }

    private function expire(string $id): array
    {
        $session = $this->session($id);
        $pending = array_filter($this->payments, static fn (array $each): bool => $each['status'] === 'pending'
            && $each['checkout_session']['id'] === $session['id']);
        if ($session['status'] === 'completed' || $pending !== []) {
            return self::error(409, 'conflict', $pending === [] ? 'session_completed' : 'session_pending');
        }
        return [200, $this->sessions[$session['external_id']] = ['status' => 'expired'] + $session];
    }

    private function session(string $id): ?array
    {
        foreach ($this->sessions as $external => $session) {
            if ($external === $id || $session['id'] === $id) {
                return $session;
            }
        }
        return null;
    }

    private static function error(int $status, string $code, ?string $reason = null): array
    {
        return [$status, ['code' => $code, 'message' => 'Non.', 'reason' => $reason]];
    }
}
