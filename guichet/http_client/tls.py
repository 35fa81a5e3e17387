"""TLS towards other servers: certificates are verified, except on loopback in the development profile.

Without a file of our own it is aiohttp's: it reads the system's authorities when it is imported, 20 to 90 ms and a
megabyte, and another context would read them again.
"""

import ssl
from functools import cache
from pathlib import Path

#: What aiohttp's connector takes. True: it verifies with the system's authorities. False: it does not verify.
TlsContext = ssl.SSLContext | bool


@cache
def tls_context(ca_file: Path | None) -> TlsContext:
    """Trusts the system's authorities, and those in `ca_file` (PEM). Raises ValueError when the file cannot be read."""
    if ca_file is None:
        return True
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise ValueError(f"GUICHET_EGRESS_CA_FILE: {ca_file} is not a readable PEM file of certificates") from error
    return context


def unverified() -> TlsContext:
    return False
