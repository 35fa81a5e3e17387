"""A certificate authority for the tests' own servers."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True)
class CertificateAuthority:
    """A certificate authority of the test's own, and its PEM file."""

    ca: trustme.CA
    file: Path

    @classmethod
    def create(cls, folder: Path) -> "CertificateAuthority":
        ca = trustme.CA()
        file = folder / "ca.pem"
        ca.cert_pem.write_to_path(str(file))
        return cls(ca, file)

    def server(self, *names: str) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.ca.issue_cert(*names).configure_cert(context)
        return context
