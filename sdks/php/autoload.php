<?php

/** For a shop without Composer: require 'guichet/autoload.php'; */

declare(strict_types=1);

foreach (['Errors', 'Retries', 'Types', 'Resources', 'Guichet', 'Webhooks', 'FakeGuichet'] as $file) {
    require_once __DIR__ . "/src/$file.php";
}
