"""pawaPay's official way to sign a request and to verify one, with `cryptography` alone, without any code of Guichet.

Source: the samples pawaPay/signatures-node-example and pawaPay/signatures-java-example, and docs.pawapay.io,
"Signatures".
"""

import base64
import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
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


def verify(
    key: ec.EllipticCurvePublicKey, *, method: str, host: str, path: str, headers: Mapping[str, str], body: bytes
) -> bool:
    """As the samples verify, with r and s side by side accepted as well. `headers` by their names in small letters."""
    digest = base64.b64encode(hashlib.sha512(body).digest()).decode()
    assert headers["content-digest"] == f"sha-512=:{digest}:"
    parameters = headers["signature-input"].removeprefix("sig-pp=")
    names = re.findall(r'"([^"]+)"', parameters[: parameters.index(")")])
    assert names[:6] == ["@method", "@authority", "@path", "signature-date", "content-digest", "content-type"]
    assert ';alg="ecdsa-p256-sha256"' in parameters
    found = re.search(r";created=(\d+);expires=(\d+)", parameters)
    assert found
    assert int(found[1]) < int(found[2]) <= int(found[1]) + 300
    values = {"@method": method, "@authority": host, "@path": path}
    lines = [f'"{name}": {values.get(name) or headers[name]}' for name in names]
    base = "\n".join([*lines, f'"@signature-params": {parameters}'])
    signature = signature_of(headers)
    if len(signature) == 64:
        r, s = (int.from_bytes(part, "big") for part in (signature[:32], signature[32:]))
        signature = utils.encode_dss_signature(r, s)
    try:
        key.verify(signature, base.encode(), ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def signature_of(headers: Mapping[str, str]) -> bytes:
    """64 bytes when r and s stand side by side; DER is longer."""
    found = re.fullmatch(r"sig-pp=:([A-Za-z0-9+/=]+):", headers["signature"])
    assert found
    return base64.b64decode(found[1], validate=True)
