<?php

declare(strict_types=1);

namespace Guichet;

/**
 * What the library throws. Decide by the class, `code` and `reason`. The message is a sentence for people, and may change.
 *
 * GuichetError
 * ├── ApiConnection            no answer, or one that nobody can read
 * ├── Unauthorized             401
 * ├── PaymentFailed            402: `reason` says why, `reference` names the payment
 * ├── Forbidden                403
 * ├── NotFound                 404
 * ├── Conflict                 409: `reason` says why
 * ├── InvalidRequest           422: `details` names the fields
 * ├── RateLimited              429: `retryAfter`, in seconds
 * ├── ServerError              5xx
 * └── SignatureVerification    a webhook that is not ours, or too old
 */
class GuichetError extends \RuntimeException
{
    /** @var string|null */
    public $code;
    public ?int $status;
    public ?string $reason;
    public ?string $reference;
    /** @var array<string, list<string>> */
    public array $details;
    public ?string $requestId;
    public ?int $retryAfter;

    /** @param array<string, mixed> $facts */
    public function __construct(string $message, array $facts = [], ?\Throwable $previous = null)
    {
        $requestId = $facts['request_id'] ?? null;
        parent::__construct($requestId === null ? $message : "$message (X-Request-Id: $requestId)", 0, $previous);
        $this->code = $facts['code'] ?? null;
        $this->status = $facts['status'] ?? null;
        $this->reason = $facts['reason'] ?? null;
        $this->reference = $facts['reference'] ?? null;
        $this->details = $facts['details'] ?? [];
        $this->requestId = $requestId;
        $this->retryAfter = $facts['retry_after'] ?? null;
    }

    /**
     * The decoded body of a success; throws the error of anything else.
     *
     * @param array<string, string> $headers by names in lower case
     * @return array{data: mixed, meta?: array<string, mixed>}
     */
    public static function readAnswer(int $status, array $headers, string $body): array
    {
        $requestId = $headers['x-request-id'] ?? null;
        $answer = json_decode($body, true);
        if ($status >= 200 && $status < 300) {
            if (is_array($answer) && isset($answer['data'])) {
                return $answer;
            }
            throw new ApiConnection('La réponse est illisible.', ['status' => $status, 'request_id' => $requestId]);
        }
        $error = is_array($answer) ? $answer['error'] ?? [] : [];
        $seconds = $headers['retry-after'] ?? '';
        $class = self::CLASSES[$status] ?? ($status >= 500 ? ServerError::class : self::class);
        throw new $class($error['message'] ?? "Réponse inattendue : HTTP $status.", [
            'status' => $status,
            'request_id' => $requestId,
            'retry_after' => ctype_digit($seconds) ? (int) $seconds : null,
        ] + $error);
    }

    private const CLASSES = [
        401 => Unauthorized::class,
        402 => PaymentFailed::class,
        403 => Forbidden::class,
        404 => NotFound::class,
        409 => Conflict::class,
        422 => InvalidRequest::class,
        429 => RateLimited::class,
    ];
}

class ApiConnection extends GuichetError
{
}

class Unauthorized extends GuichetError
{
}

class PaymentFailed extends GuichetError
{
}

class Forbidden extends GuichetError
{
}

class NotFound extends GuichetError
{
}

class Conflict extends GuichetError
{
}

class InvalidRequest extends GuichetError
{
}

class RateLimited extends GuichetError
{
}

class ServerError extends GuichetError
{
}

class SignatureVerification extends GuichetError
{
}
