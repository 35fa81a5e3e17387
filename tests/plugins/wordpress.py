"""A real WordPress on SQLite, out of the npm package that carries its files, with the packed plugin active in it."""

import os
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from release.woocommerce import SLUG, pack

ROOT: Final = Path(__file__).parents[2]
#: Made by `make plugins/wordpress`.
PACKAGE: Final = ROOT / "plugins" / "wordpress"
FILES: Final = Path(__file__).with_name("woocommerce")
PHP: Final = ("php", "-d", "error_reporting=-1", "-d", "display_errors=stderr")
_SQLITE: Final = "sqlite-database-integration-main"
_CONFIG: Final = """<?php
define('DB_NAME', 'shop'); define('DB_USER', ''); define('DB_PASSWORD', ''); define('DB_HOST', '');
define('DB_DIR', __DIR__ . '/wp-content/database/'); define('DB_FILE', 'shop.sqlite');
define('WP_DEBUG', true); define('WP_DEBUG_DISPLAY', false); define('WP_DEBUG_LOG', __DIR__ . '/debug.log');
define('DISABLE_WP_CRON', true); define('WP_HTTP_BLOCK_EXTERNAL', true); define('AUTOMATIC_UPDATER_DISABLED', true);
define('AUTH_KEY', 'a'); define('NONCE_KEY', 'b'); define('AUTH_SALT', 'c'); define('NONCE_SALT', 'd');
$table_prefix = 'wp_';
define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
"""
_INSTALL: Final = """
define('WP_INSTALLING', true);
[$_SERVER['HTTP_HOST'], $_SERVER['REQUEST_URI']] = [$argv[2], '/'];
require $argv[1] . '/wp-load.php';
function wp_mail() { return true; }
require ABSPATH . 'wp-admin/includes/upgrade.php';
wp_install('Boutique', 'admin', 'admin@example.test', true, '', 'password', 'en_US');
update_option('active_plugins', [$argv[3]]);
"""


def missing() -> list[str]:
    """What is needed and is not there."""
    found = [each for each in ("php", "phpunit", "phpcs") if shutil.which(each) is None]
    if "php" not in found and "pdo_sqlite" not in run(["php", "-m"]):
        found.append("php-sqlite3")
    return found if PACKAGE.is_dir() else [*found, "plugins/wordpress (make plugins/wordpress)"]


def install(folder: Path, host: str) -> Path:
    """WordPress in `folder`, at http://`host`, with the plugin as it would be uploaded and the fakes of WooCommerce."""
    _unzip(PACKAGE / "wordpress.zip", folder)
    shutil.copytree(PACKAGE / "public", folder, dirs_exist_ok=True)
    content = folder / "wp-content"
    _unzip(PACKAGE / "sqlite.zip", content / "plugins")
    drop_in = (content / "plugins" / _SQLITE / "db.copy").read_text(encoding="utf-8")
    drop_in = drop_in.replace("{SQLITE_IMPLEMENTATION_FOLDER_PATH}", str(content / "plugins" / _SQLITE))
    (content / "db.php").write_text(drop_in, encoding="utf-8")
    shutil.rmtree(content / "database", ignore_errors=True)
    (folder / "wp-config.php").write_text(_CONFIG, encoding="utf-8")
    _unzip(pack(ROOT, folder), content / "plugins")
    (content / "mu-plugins").mkdir()
    run([*PHP, "-r", _INSTALL, str(folder), host, f"{SLUG}/{SLUG}.php"])
    shutil.copyfile(FILES / "fakes.php", content / "mu-plugins" / "fakes.php")
    return content / "plugins" / SLUG


def run(command: Sequence[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _unzip(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)
