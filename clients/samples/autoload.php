<?php

// Stands for Composer's vendor/autoload.php: the generated code beside Debian's packages. Run by itself, it loads every
// generated file, so that PHP compiles all of them.

declare(strict_types=1);

foreach (['Psr7', 'Promise', ''] as $part) {
    require_once '/usr/share/php/GuzzleHttp/' . ($part === '' ? '' : "$part/") . 'autoload.php';
}
const GENERATED = __DIR__ . '/../generated/lib/';
spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Guichet\\')) {
        require GENERATED . strtr(substr($class, strlen('Guichet\\')), '\\', '/') . '.php';
    }
});

if (realpath($argv[0]) === __FILE__) {
    $files = new RecursiveIteratorIterator(new RecursiveDirectoryIterator(GENERATED, FilesystemIterator::SKIP_DOTS));
    foreach ($files as $file) {
        $name = strtr(substr($file->getPathname(), strlen(GENERATED), -strlen('.php')), '/', '\\');
        if (!class_exists("Guichet\\$name") && !interface_exists("Guichet\\$name")) {
            throw new RuntimeException("$file holds no class Guichet\\$name");
        }
    }
}
