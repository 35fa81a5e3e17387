"""Where a request may go: URLs, names with several addresses, development, certificates."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from guichet.http_client import Forbidden, HttpClient, NotSent
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.http_server import ScriptedServer
from tests.fakes.name_server import ScriptedResolver
from tests.http_client.egress import HOST, PUBLIC, SHORT, client, to_shop
from tests.patience import PATIENCE


@pytest.mark.parametrize(
    "url",
    [
        "http://shop.test/",
        "ftp://shop.test/",
        "file:///etc/passwd",
        "shop.test",
        "//shop.test/",
        "https://",
        "https:///path",
        "https://user@shop.test/",
        "https://user:secret@shop.test/",
        "https://:@shop.test/",
        "https://shop.test:99999/",
        "https://[::1/",
        "",
    ],
)
async def test_urls_are_checked_before_anything_is_looked_up(url: str) -> None:
    names = ScriptedResolver(shop_test=[["127.0.0.2"]])
    async with client(allow=[PUBLIC], resolver=names) as out:
        with pytest.raises(Forbidden) as caught:
            await out.request("POST", url, body=b"x", timeout=PATIENCE)
    assert not names.lookups
    assert "secret" not in str(caught.value)


async def test_a_name_with_a_public_and_a_private_address_is_reached_by_the_public_one(
    authority: CertificateAuthority,
) -> None:
    async with (
        ScriptedServer(tls=authority.server(HOST)) as receiver,
        to_shop(authority, "127.0.0.1", "127.0.0.2") as out,
    ):
        answer = await out.request("POST", receiver.url(HOST), body=b"x", timeout=PATIENCE)
    assert answer.status == 200
    assert [request.address for request in receiver.received] == ["127.0.0.2"]
    assert receiver.connections == 1


async def test_a_private_address_is_no_fallback_for_a_public_one_that_refuses(authority: CertificateAuthority) -> None:
    """The server listens on 127.0.0.1 only."""
    private = ScriptedServer(tls=authority.server(HOST), host="127.0.0.1")
    async with private as receiver, to_shop(authority, "127.0.0.2", "127.0.0.1") as out:
        with pytest.raises(NotSent):
            await out.request("POST", receiver.url(HOST), body=b"x", timeout=PATIENCE)
    assert receiver.connections == 0


async def test_a_name_that_turns_private_between_two_lookups_is_refused(authority: CertificateAuthority) -> None:
    """Rebinding: the first lookup is public, as any check beforehand would have seen it; the next one is not."""
    names = ScriptedResolver(shop_test=[["127.0.0.2"], ["127.0.0.1"]])
    tls = authority.server(HOST)
    rebound = client(allow=[PUBLIC], ca_file=authority.file, resolver=names)
    async with ScriptedServer(tls=tls) as first, ScriptedServer(tls=tls) as second, rebound as out:
        assert (await out.request("POST", first.url(HOST), timeout=PATIENCE)).status == 200
        with pytest.raises(Forbidden):
            await out.request("POST", second.url(HOST), timeout=PATIENCE)
    assert names.lookups == [HOST, HOST]
    assert second.connections == 0


async def test_a_connection_to_a_provider_is_not_reused_for_a_webhook(authority: CertificateAuthority) -> None:
    """Same host and port: an idle connection of an unguarded request must not serve a guarded one."""
    async with ScriptedServer(tls=authority.server(HOST)) as receiver, to_shop(authority, "127.0.0.1") as out:
        assert (await out.request("POST", receiver.url(HOST), timeout=PATIENCE, guarded=False)).status == 200
        with pytest.raises(Forbidden):
            await out.request("POST", receiver.url(HOST), timeout=PATIENCE)
    assert len(receiver.received) == 1


async def test_unguarded_requests_reach_private_addresses_without_tls() -> None:
    async with ScriptedServer() as receiver, client() as out:
        answer = await out.request("GET", receiver.url("127.0.0.1"), timeout=PATIENCE, guarded=False)
    assert (answer.status, answer.body, answer.complete) == (200, b"ok", True)


async def test_development_reaches_loopback_without_tls_or_with_any_certificate(tmp_path: Path) -> None:
    stranger = CertificateAuthority.create(tmp_path).server("someone.else.test")
    async with ScriptedServer() as plain, ScriptedServer(tls=stranger) as secure, client(loopback=True) as out:
        assert (await out.request("POST", plain.url("127.0.0.1"), timeout=PATIENCE)).status == 200
        assert (await out.request("POST", plain.url("localhost"), timeout=PATIENCE)).status == 200
        assert (await out.request("POST", secure.url("localhost"), timeout=PATIENCE)).status == 200
        assert (await out.request("POST", secure.url("localhost"), timeout=PATIENCE, guarded=False)).status == 200


async def test_development_verifies_certificates_of_every_other_name(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    stranger = CertificateAuthority.create(tmp_path)
    async with (
        ScriptedServer(tls=stranger.server(HOST)) as receiver,
        to_shop(authority, "127.0.0.1", loopback=True) as out,
    ):
        with pytest.raises(NotSent, match="certificate verify failed"):
            await out.request("POST", receiver.url(HOST), body=b"x", timeout=PATIENCE)
    assert receiver.received == []


async def test_development_refuses_a_localhost_that_resolves_elsewhere(tmp_path: Path) -> None:
    """A name service that sends `localhost` elsewhere does not turn certificate checks off elsewhere."""
    names = ScriptedResolver(localhost=[["203.0.113.7"]])
    async with client(loopback=True, resolver=names, allow=[ip_network("203.0.113.0/24")]) as out:
        with pytest.raises(Forbidden):
            await out.request("POST", "https://localhost/", timeout=PATIENCE)


@pytest.mark.parametrize("url", ["http://10.0.0.1/", "http://shop.test/", "https://169.254.169.254/"])
async def test_development_refuses_other_private_addresses(url: str) -> None:
    async with client(loopback=True, resolver=ScriptedResolver(shop_test=[["127.0.0.1"]])) as out:
        with pytest.raises(Forbidden):
            await out.request("POST", url, timeout=PATIENCE)


async def test_the_ca_file_decides_which_authority_is_trusted(authority: CertificateAuthority) -> None:
    async with ScriptedServer(tls=authority.server(HOST)) as receiver:
        async with to_shop(authority) as out:
            assert (await out.request("POST", receiver.url(HOST), timeout=PATIENCE)).status == 200
        async with to_shop(authority, ca_file=None) as out:
            with pytest.raises(NotSent, match="certificate verify failed") as caught:
                await out.request("POST", receiver.url(HOST), timeout=PATIENCE)
    assert not isinstance(caught.value, Forbidden)
    assert len(receiver.received) == 1


async def test_a_certificate_for_another_name_is_refused_before_sending(authority: CertificateAuthority) -> None:
    async with ScriptedServer(tls=authority.server("other.test")) as receiver, to_shop(authority) as out:
        with pytest.raises(NotSent, match="Hostname mismatch"):
            await out.request("POST", receiver.url(HOST), body=b"x", timeout=PATIENCE)
    assert receiver.received == []


async def test_a_server_without_tls_is_not_sent(authority: CertificateAuthority) -> None:
    async with ScriptedServer() as receiver, to_shop(authority) as out:
        with pytest.raises(NotSent):
            await out.request("POST", f"https://{HOST}:{receiver.port}/", body=b"x", timeout=SHORT)


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN CERTIFICATE-----\nnonsense\n"])
def test_an_unusable_ca_file_stops_the_start(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ValueError, match="GUICHET_EGRESS_CA_FILE"):
        HttpClient(ca_file=file)
