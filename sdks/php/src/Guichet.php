<?php

declare(strict_types=1);

namespace Guichet;

/** The client. `$key` chooses the environment, and `livemode` says which. */
final class Guichet
{
    private const VERSION = '1.0.0';

    public bool $livemode;
    public Payments $payments;
    public Refunds $refunds;
    public CheckoutSessions $checkoutSessions;
    public PaymentLinks $paymentLinks;
    public PaymentModes $paymentModes;
    public Balance $balance;
    public WebhookEndpoint $webhookEndpoint;
    public Deliveries $deliveries;
    public Events $events;
    public Disputes $disputes;

    private string $key;
    private string $baseUrl;
    private float $timeout;
    private int $maxRetries;
    /** @var callable(string, string, string[], ?string, float): array{int, array<string, string>, string} */
    private $transport;

    /**
     * `base_url` ends in `/v1`. `timeout`, in seconds, is for one attempt: a read of a pending payment asks the operator
     * first, so give it 30 at least.
     *
     * @param array{base_url: string, timeout?: float, max_retries?: int, transport?: callable} $options
     */
    public function __construct(string $key, array $options)
    {
        if (strpos($key, 'sk_') !== 0) {
            throw new \InvalidArgumentException('Une clé secrète commence par sk_test_ ou sk_live_.');
        }
        $this->livemode = strpos($key, 'sk_test_') !== 0;
        $this->key = $key;
        $this->baseUrl = rtrim($options['base_url'], '/');
        $this->timeout = $options['timeout'] ?? 35.0;
        $this->maxRetries = $options['max_retries'] ?? 3;
        $this->transport = $options['transport'] ?? new CurlTransport();
        $this->payments = new Payments($this);
        $this->refunds = new Refunds($this);
        $this->checkoutSessions = new CheckoutSessions($this);
        $this->paymentLinks = new PaymentLinks($this);
        $this->paymentModes = new PaymentModes($this);
        $this->balance = new Balance($this);
        $this->webhookEndpoint = new WebhookEndpoint($this);
        $this->deliveries = new Deliveries($this);
        $this->events = new Events($this);
        $this->disputes = new Disputes($this);
    }

    /**
     * The whole answer: `data`, and `meta` where there is some. Repeated as `Retries` says.
     *
     * @param array{query?: array<string, mixed>, body?: array<string, mixed>, idempotency_key?: string, repeatable?: bool} $call
     * @return array{data: mixed, meta?: array<string, mixed>}
     */
    public function request(string $method, string $path, array $call = []): array
    {
        for ($attempt = 0;; $attempt++) {
            try {
                return $this->send($method, $path, $call);
            } catch (GuichetError $error) {
                $wait = Retries::delay($error, $attempt, $call['repeatable'] ?? true);
                if ($wait === null || $attempt >= $this->maxRetries) {
                    throw $error;
                }
                usleep((int) ($wait * 1000000));
            }
        }
    }

    /**
     * A creation. Its key is made once and kept over the repetitions, so nothing is created twice.
     *
     * @param array<string, mixed> $body
     * @return array<string, mixed>
     */
    public function create(string $path, array $body, ?string $idempotencyKey): array
    {
        $key = $idempotencyKey ?? bin2hex(random_bytes(16));
        return $this->request('POST', $path, ['body' => $body, 'idempotency_key' => $key])['data'];
    }

    /**
     * @param array<string, mixed> $query
     * @return array<mixed>
     */
    public function get(string $path, array $query = []): array
    {
        return $this->request('GET', $path, ['query' => $query])['data'];
    }

    /**
     * Every row, page after page: none is skipped or repeated, whatever happens to the list meanwhile.
     *
     * @param array<string, mixed> $query
     */
    public function walk(string $path, array $query): \Generator
    {
        $query += ['per_page' => 100];
        do {
            ['data' => $rows, 'meta' => $meta] = $this->request('GET', $path, ['query' => $query]);
            foreach ($rows as $row) {
                yield $row;
                $query['after'] = $row['reference'] ?? $row['id'];
            }
        } while ($rows !== [] && ($meta['has_more'] ?? count($rows) >= $meta['per_page']));
    }

    /**
     * @param array<string, mixed> $call
     * @return array{data: mixed, meta?: array<string, mixed>}
     */
    private function send(string $method, string $path, array $call): array
    {
        $headers = ["Authorization: Bearer $this->key", 'User-Agent: guichet-php/' . self::VERSION];
        $body = null;
        if (isset($call['body'])) {
            $headers[] = 'Content-Type: application/json';
            $body = json_encode((object) $call['body'], JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE);
        }
        if (isset($call['idempotency_key'])) {
            $headers[] = "Idempotency-Key: {$call['idempotency_key']}";
        }
        $search = http_build_query($call['query'] ?? [], '', '&', PHP_QUERY_RFC3986);
        $url = $this->baseUrl . $path . ($search === '' ? '' : "?$search");
        return GuichetError::readAnswer(...($this->transport)($method, $url, $headers, $body, $this->timeout));
    }
}

/** One request by cURL, whose connection is kept for the next. */
final class CurlTransport
{
    /** @var \CurlHandle|resource|null */
    private $curl;

    /**
     * @param string[] $headers
     * @return array{int, array<string, string>, string}
     */
    public function __invoke(string $method, string $url, array $headers, ?string $body, float $timeout): array
    {
        $this->curl = $this->curl ?? curl_init();
        $answered = [];
        curl_reset($this->curl);
        curl_setopt_array($this->curl, [
            CURLOPT_CUSTOMREQUEST => $method,
            CURLOPT_URL => $url,
            CURLOPT_HTTPHEADER => array_merge($headers, ['Expect:']),
            CURLOPT_PROTOCOLS => CURLPROTO_HTTP | CURLPROTO_HTTPS,
            CURLOPT_TIMEOUT_MS => (int) ($timeout * 1000),
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_HEADERFUNCTION => static function ($curl, string $line) use (&$answered): int {
                [$name, $value] = array_pad(explode(':', $line, 2), 2, '');
                $answered[strtolower($name)] = trim($value);
                return strlen($line);
            },
        ]);
        if ($body !== null) {
            curl_setopt($this->curl, CURLOPT_POSTFIELDS, $body);
        }
        $text = curl_exec($this->curl);
        if (!is_string($text)) {
            throw new ApiConnection('Guichet ne répond pas : ' . curl_error($this->curl));
        }
        return [(int) curl_getinfo($this->curl, CURLINFO_RESPONSE_CODE), $answered, $text];
    }
}
