"""TLS towards other servers: certificates are verified, except on loopback in the development profile."""

import ssl
from functools import cache
from pathlib import Path


def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """Trusts the system's authorities, and those in `ca_file` (PEM). Raises ValueError when it cannot be read."""
    if ca_file is None:
        return _system_tls_context()
    context = _new_system_tls_context()
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise ValueError(f"GUICHET_EGRESS_CA_FILE: {ca_file} is not a readable PEM file of certificates") from error
    return context


def _new_system_tls_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


@cache
def _system_tls_context() -> ssl.SSLContext:
    """Read once: parsing the system's authorities takes 20 ms."""
    return _new_system_tls_context()


@cache
def unverified_tls_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
