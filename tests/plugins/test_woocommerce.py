"""The WooCommerce plugin as it would be uploaded, in a real WordPress; WooCommerce itself is a few fakes."""

import base64
import hashlib
import hmac
import http.client
import io
import json
import os
import re
import subprocess
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from babel.messages.pofile import read_po

from release.woocommerce import SLUG, pack
from tests.plugins import wordpress
from tests.ports import free_port

PLUGIN: Final = wordpress.ROOT / "plugins" / "woocommerce"
SECRET: Final = "whsec_" + "A" * 40
pytestmark = pytest.mark.slow


@pytest.fixture
def _tools() -> None:
    """Skips, loudly; GUICHET_REQUIRE_CLIENTS=1 fails instead."""
    if lacking := wordpress.missing():
        message = f"LOUD: plugins/woocommerce was NOT tested, {', '.join(lacking)} is not there"
        if os.environ.get("GUICHET_REQUIRE_CLIENTS"):
            pytest.fail(message)
        pytest.skip(message)


@pytest.fixture
def shop(tmp_path: Path, _tools: None) -> Iterator[int]:
    """The port of a WordPress with the plugin, whose folder is `tmp_path`."""
    port = free_port()
    wordpress.install(tmp_path, f"127.0.0.1:{port}")
    server = subprocess.Popen(
        ["php", "-S", f"127.0.0.1:{port}", "-t", str(tmp_path)], stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None
    server.stderr.readline()
    try:
        yield port
    finally:
        server.kill()
        server.wait()
        server.stderr.close()


def test_in_a_real_wordpress(shop: int, tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        style = pool.submit(_check_style)
        assert _post(shop, SECRET) == (401, {"error": "signature"})
        settings = f"update_option('woocommerce_guichet_settings', ['test_secret' => '{SECRET}']);"
        load = f"$_SERVER += ['HTTP_HOST' => 'x', 'REQUEST_URI' => '/']; require '{tmp_path}/wp-load.php';"
        wordpress.run([*wordpress.PHP, "-r", load + settings])
        assert _post(shop, SECRET) == (200, {"received": True})
        assert _post(shop, "whsec_" + "B" * 40) == (401, {"error": "signature"})
        tests = ["phpunit", "--bootstrap", str(wordpress.FILES / "bootstrap.php"), "--do-not-cache-result"]
        said = wordpress.run([*tests, str(wordpress.FILES / "GatewayTest.php")], {"WORDPRESS": str(tmp_path)})
        assert re.search(r"OK \(\d\d tests", said), said
        style.result()
    log = tmp_path / "debug.log"
    assert not log.exists(), log.read_text(encoding="utf-8")


def _check_style() -> None:
    wordpress.run(["phpcs", "--standard=PSR12", "--extensions=php", "-n", str(PLUGIN)])


def _post(port: int, secret: str) -> tuple[int, object]:
    event = {"id": "evt", "event": "webhook.test", "livemode": False, "data": {"message": "é"}}
    body = json.dumps(event, ensure_ascii=False).encode()
    now = str(int(time.time()))
    digest = hmac.digest(base64.b64decode(secret.removeprefix("whsec_")), f"evt.{now}.".encode() + body, hashlib.sha256)
    signature = "v1," + base64.b64encode(digest).decode()
    headers = {"Content-Type": "application/json", "webhook-id": "evt", "webhook-timestamp": now}
    headers["webhook-signature"] = signature
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(
        "POST", "/?rest_route=/guichet/v1/webhook", body, {**headers, "Content-Type": "application/json"}
    )
    answer = connection.getresponse()
    content = answer.status, json.loads(answer.read())
    connection.close()
    return content


def test_every_text_is_translated() -> None:
    used = set()
    for file in [*PLUGIN.rglob("*.php"), *PLUGIN.rglob("*.js")]:
        found = re.findall(rf"""__\((?:'([^']*)'|"([^"]*)"), '{SLUG}'""", file.read_text(encoding="utf-8"))
        assert len(found) == len(re.findall(r"(?:_|html)_(?:_|x|n)?\(", file.read_text(encoding="utf-8"))), file
        used |= {single or double for single, double in found}
    [catalog] = (PLUGIN / "languages").glob("*.po")
    translated = {str(each.id): str(each.string) for each in read_po(io.BytesIO(catalog.read_bytes())) if each.id}
    assert set(translated) == used
    [template] = (PLUGIN / "languages").glob("*.pot")
    assert {str(each.id) for each in read_po(io.BytesIO(template.read_bytes())) if each.id} == used
    for text, french in translated.items():
        assert french
        assert sorted(re.findall(r"%(?:\d\$)?[sd]", text)) == sorted(re.findall(r"%(?:\d\$)?[sd]", french)), text


def test_the_package_is_the_same_twice(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    first, second = (pack(wordpress.ROOT, tmp_path / folder) for folder in ("one", "two"))
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as packed:
        texts = packed.read(f"{SLUG}/languages/{SLUG}-fr_FR.mo")
    assert re.findall(rb"-Date: (\S+)", texts) == [b"2026-01-01"] * 2, "not those of the build"
    assert f"Stable tag: {first.stem.removeprefix(f'{SLUG}-')}\n" in (PLUGIN / "readme.txt").read_text(encoding="utf-8")
