"""`guichet serve --ssl-certfile … --ssl-keyfile …`: https without a proxy."""

import json
import ssl
import urllib.request
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from guichet.settings import Settings
from tests.cli.conftest import Cli, answers, until
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.processes.conftest import new_database

__all__ = ["new_database"]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def issued(authority: trustme.CA, folder: Path) -> tuple[Path, Path]:
    made = authority.issue_cert("127.0.0.1")
    cert, key = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
    key.write_bytes(made.private_key_pem.bytes())
    return cert, key


@pytest.mark.parametrize("workers", [1, 2])
def test_the_server_answers_over_https(
    request: pytest.FixtureRequest, sqlite_cli: Cli, authority: trustme.CA, tmp_path: Path, workers: int
) -> None:
    cli = sqlite_cli
    if workers > 1:
        fleet: Settings = request.getfixturevalue("new_database")()
        cli = cli.having(GUICHET_DATABASE_URL=fleet.database_url)
    merchant = cli("merchant", "create", "Awa", "--json").json
    cert, key = issued(authority, tmp_path)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    port = free_port()
    address = f"https://127.0.0.1:{port}"
    options = ("--ssl-certfile", cert, "--ssl-keyfile", key, "--workers", workers)

    def ready() -> bool:
        try:
            with urllib.request.urlopen(address + "/readyz", context=trusting, timeout=PATIENCE):
                return True
        except OSError:
            return False

    with cli.start("serve", "--port", port, *options) as process:
        try:
            until(lambda: process.poll() is not None or ready())
            assert process.poll() is None, process.communicate()
            link_request = urllib.request.Request(
                address + "/v1/payment-links",
                json.dumps({"amount": 5000, "description": "Sac"}).encode(),
                {"Authorization": f"Bearer {merchant['keys']['live']}"},
            )
            with urllib.request.urlopen(link_request, context=trusting, timeout=PATIENCE) as answer:
                created = json.load(answer)
            assert created["data"]["url"].startswith(address), created
            with urllib.request.urlopen(created["data"]["url"], context=trusting, timeout=PATIENCE) as page:
                assert page.status == 200
            assert not answers(f"http://127.0.0.1:{port}/readyz")
            process.terminate()
            assert process.wait(timeout=PATIENCE) == 0
        finally:
            process.kill()


def test_unusable_certificate_files_are_refused(sqlite_cli: Cli, authority: trustme.CA, tmp_path: Path) -> None:
    cert, key = issued(authority, tmp_path)
    (tmp_path / "other").mkdir()
    _, foreign = issued(authority, tmp_path / "other")
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        serialization.load_pem_private_key(key.read_bytes(), None).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )

    def refusal(*options: object) -> str:
        return sqlite_cli("serve", "--port", free_port(), *options).refusal

    assert refusal("--ssl-keyfile", key) == "--ssl-keyfile belongs to an --ssl-certfile."
    for pair in ((tmp_path / "none.pem", key), (cert, foreign), (cert, locked), (key, cert)):
        sentence = refusal("--ssl-certfile", pair[0], "--ssl-keyfile", pair[1])
        assert sentence.startswith(f"No certificate with its unencrypted key is in {pair[0]} and {pair[1]}: "), sentence
    assert refusal("--ssl-certfile", cert).startswith(f"No certificate with its unencrypted key is in {cert}: ")
