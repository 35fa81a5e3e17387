"""TLS towards other servers: certificates are verified, except on loopback in the development profile."""

import ssl
from functools import cache
from pathlib import Path


@cache
def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """Trusts the system's authorities, and those in `ca_file` (PEM). Read once: parsing the system's takes 20 to 90 ms.
    Raises ValueError when the file cannot be read."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    if ca_file is not None:
        try:
            context.load_verify_locations(ca_file)
        except OSError as error:  # ssl.SSLError is one
            raise ValueError(f"GUICHET_EGRESS_CA_FILE: {ca_file} is not a readable PEM file of certificates") from error
    return context


@cache
def unverified_tls_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
