"""pawaPay's official way to sign a request, written with `cryptography` alone, without any code of Guichet.

Source: the samples pawaPay/signatures-node-example and pawaPay/signatures-java-example, and docs.pawapay.io,
"Signatures".
"""

import base64
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils


@dataclass(frozen=True)
class SignedRequest:
    body: bytes
    headers: dict[str, str]


def signed(
    key: ec.EllipticCurvePrivateKey,
    url: str,
    content: Any,
    *,
    key_id: str = "K1",
    raw: bool = False,
    age: int = 0,
    without: Sequence[str] = (),
) -> SignedRequest:
    """A JSON POST that was signed `age` seconds ago. `raw`: r and s side by side; `without`: components left out."""
    body = json.dumps(content).encode()
    address, created = urlsplit(url), int(time.time()) - age
    digest = f"sha-512=:{base64.b64encode(hashlib.sha512(body).digest()).decode()}:"
    date = datetime.fromtimestamp(created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    components = {
        "@method": "POST",
        "@authority": address.netloc,
        "@path": address.path,
        "signature-date": date,
        "content-digest": digest,
        "content-type": "application/json",
        "content-length": str(len(body)),
    }
    covered = {name: value for name, value in components.items() if name not in without}
    names = " ".join(f'"{name}"' for name in covered)
    parameters = f'({names});keyid="{key_id}";alg="ecdsa-p256-sha256";created={created};expires={created + 300}'
    lines = [f'"{name}": {value}' for name, value in covered.items()]
    base = "\n".join([*lines, f'"@signature-params": {parameters}'])
    signature = key.sign(base.encode(), ec.ECDSA(hashes.SHA256()))
    if raw:
        r, s = utils.decode_dss_signature(signature)
        signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    headers = {
        "Content-Type": "application/json",
        "Content-Digest": digest,
        "Signature-Date": date,
        "Signature-Input": f"sig-pp={parameters}",
        "Signature": f"sig-pp=:{base64.b64encode(signature).decode()}:",
    }
    return SignedRequest(body, headers)
