<?php

declare(strict_types=1);

namespace Guichet;

/** For the tests of a shop: Guichet as it answered when it was recorded, without a network. */
final class FakeGuichet
{
    public const SECRET = 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';

    /** @var list<array{method: string, path: string, body: mixed}> what was sent */
    public array $requests = [];
    /** @var list<array{status: int, body: mixed}> */
    private array $next = [];
    /** @var array{answers: array<string, mixed>, errors: array<string, mixed>, events: array<string, mixed>} */
    private array $recordings;

    public function __construct()
    {
        $text = (string) file_get_contents(__DIR__ . '/../recordings.json');
        $this->recordings = json_decode($text, true, 512, JSON_THROW_ON_ERROR);
    }

    /** @param array<string, mixed> $options */
    public function client(string $key = 'sk_test_fake', array $options = []): Guichet
    {
        $transport = fn (string $method, string $url, array $headers, ?string $body): array => $this->answer($method, $url, $body);
        return new Guichet($key, ['base_url' => 'https://fake.test/v1', 'transport' => $transport] + $options);
    }

    /** The next request is answered with this error, for example `payment_failed`. */
    public function failNext(string $code): void
    {
        $this->next[] = $this->recordings['errors'][$code];
    }

    /**
     * The recorded event, signed now; `$data` replaces fields of its object.
     *
     * @param array<string, mixed> $data
     * @return array{string, array<string, string>} body and headers
     */
    public function webhook(string $event, array $data = [], string $secret = self::SECRET): array
    {
        $recorded = $this->recordings['events'][$event];
        $body = json_encode(['data' => $data + $recorded['data']] + $recorded, JSON_THROW_ON_ERROR);
        $timestamp = (string) time();
        $key = (string) base64_decode(substr($secret, strlen('whsec_')), true);
        $signature = base64_encode(hash_hmac('sha256', "{$recorded['id']}.$timestamp.$body", $key, true));
        return [$body, [
            'webhook-id' => $recorded['id'],
            'webhook-timestamp' => $timestamp,
            'webhook-signature' => "v1,$signature",
        ]];
    }

    /** @return array{int, array<string, string>, string} */
    private function answer(string $method, string $url, ?string $body): array
    {
        $path = substr((string) parse_url($url, PHP_URL_PATH), strlen('/v1'));
        $this->requests[] = ['method' => $method, 'path' => $path, 'body' => json_decode((string) $body, true)];
        $answer = array_shift($this->next) ?? $this->recorded("$method $path");
        return [$answer['status'], ['x-request-id' => 'fake'], json_encode($answer['body'], JSON_THROW_ON_ERROR)];
    }

    /**
     * The answer of the route whose segments are these, a braced one being any.
     *
     * @return array{status: int, body: mixed}
     */
    private function recorded(string $line): array
    {
        foreach ($this->recordings['answers'] as $route => $answer) {
            if (preg_match('#^' . preg_replace('/\{\w+\}/', '[^/]+', $route) . '$#D', $line) === 1) {
                return $answer;
            }
        }
        return $this->recordings['errors']['not_found'];
    }
}
