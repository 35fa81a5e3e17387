<?php

/** WordPress in this process. Its folder is in the environment. */

declare(strict_types=1);

$_SERVER += ['HTTP_HOST' => '127.0.0.1', 'REQUEST_URI' => '/', 'SERVER_NAME' => '127.0.0.1', 'REQUEST_METHOD' => 'GET'];
require getenv('WORDPRESS') . '/wp-load.php';
require __DIR__ . '/FakeService.php';
