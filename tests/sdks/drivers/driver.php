<?php

/** Makes the calls of cases.json through the installed PHP library: one line of JSON in, one out. */

declare(strict_types=1);

use Guichet\Guichet;
use Guichet\GuichetError;
use Guichet\Webhooks;

set_error_handler(static function (int $level, string $message, string $file, int $line): bool {
    throw new ErrorException($message, 0, $level, $file, $line);
});
require $argv[1];

function answer(array $call)
{
    if ($call['call'] === 'webhooks.unwrap') {
        return Webhooks::unwrap(base64_decode($call['body']), $call['headers'], $call['secrets']);
    }
    [$resource, $method] = explode('.', lcfirst(str_replace('_', '', ucwords($call['call'], '_'))));
    $key = $call['client']['key'];
    unset($call['client']['key']);
    $given = [$call['at'], $call['with'] ?? ($call['key'] === null ? null : []), $call['key']];
    $given = array_values(array_filter($given, static fn ($each): bool => $each !== null));
    $found = (new Guichet($key, $call['client']))->$resource->$method(...$given);
    return $found instanceof Traversable ? iterator_to_array($found, false) : $found;
}

while (($line = fgets(STDIN)) !== false) {
    try {
        $said = ['value' => answer(json_decode($line, true))];
    } catch (GuichetError $error) {
        $said = ['error' => [
            'type' => substr(get_class($error), strlen('Guichet\\')),
            'status' => $error->status,
            'code' => $error->code,
            'reason' => $error->reason,
            'reference' => $error->reference,
            'request_id' => $error->requestId,
            'retry_after' => $error->retryAfter,
            'fields' => array_keys($error->details),
        ]];
    } catch (InvalidArgumentException $error) {
        $said = ['error' => ['type' => 'InvalidArgument', 'message' => $error->getMessage()]];
    }
    echo json_encode($said, JSON_THROW_ON_ERROR), "\n";
}
