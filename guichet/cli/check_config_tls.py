"""The check of `guichet check-config` about the certificate that `guichet serve` gets."""

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from cryptography import x509

from guichet.clock import DAY, Instant, from_datetime, iso
from guichet.server.doctor.check import Check, age
from guichet.server.errors import StartupError
from guichet.server.http_server import Tls
from guichet.settings import Settings

#: A certificate that ends sooner is a problem: whatever renews it has failed for a while.
_TOO_SOON: Final = 14 * DAY


def certificate(tls: Tls, settings: Settings, now: Instant) -> Check:
    """Whether the files are a chain and its key, are valid now and for some days, and name the public address."""
    try:
        tls.check()
        chain = x509.load_pem_x509_certificates(tls.certfile.read_bytes())
    except (StartupError, ValueError, OSError) as error:
        return Check("certificate", [str(error)], note=str(tls.certfile))
    ends = min(from_datetime(each.not_valid_after_utc) for each in chain)
    begins = max(from_datetime(each.not_valid_before_utc) for each in chain)
    problems = []
    if begins > now:
        problems.append(f"it is not valid before {iso(begins)}")
    if ends <= now:
        problems.append(f"it expired on {iso(ends)}")
    elif ends < now + _TOO_SOON:
        problems.append(f"it expires in {age(now, ends)}, on {iso(ends)}: was it renewed?")
    host = urlsplit(settings.public_url).hostname or ""
    if not settings.development and not _covers(chain[0], host):
        problems.append(f"it does not name {host}, the host of GUICHET_PUBLIC_URL")
    return Check("certificate", problems, [{"expires_at": iso(ends)}], f"{tls.certfile}, until {iso(ends)}")


def _covers(leaf: x509.Certificate, host: str) -> bool:
    """As a client compares them: the whole name, or a `*` in place of its first part (RFC 6125)."""
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    try:
        return ip_address(host) in names.get_values_for_type(x509.IPAddress)
    except ValueError:
        known = [name.lower() for name in names.get_values_for_type(x509.DNSName)]
        return host.lower() in known or f"*.{host.lower().partition('.')[2]}" in known
