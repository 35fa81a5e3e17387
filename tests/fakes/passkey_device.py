"""A device that makes passkeys and answers with them (WebAuthn level 2, ES256, without attestation)."""

import base64
import hashlib
import json
import struct
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

_PRESENT, _VERIFIED, _HAS_KEY = 0x01, 0x04, 0x40


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


@dataclass
class PasskeyDevice:
    """`verifies`: it asks for a finger or a PIN. `count`: its counter, one more with each answer."""

    host: str
    origin: str
    verifies: bool = True
    count: int = 0
    credential: bytes = b"0123456789abcdef"
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def make(self, question: dict[str, Any]) -> str:
        numbers = self.key.public_key().public_numbers()
        public = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        made = bytes(16) + struct.pack(">H", len(self.credential)) + self.credential + cbor2.dumps(public)
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": self._data(_HAS_KEY) + made})
        client = self._client("webauthn.create", question)
        return self._answer({"clientDataJSON": _text(client), "attestationObject": _text(attestation)})

    def use(self, question: dict[str, Any]) -> str:
        self.count += 1
        data, client = self._data(0), self._client("webauthn.get", question)
        signature = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        return self._answer(
            {"clientDataJSON": _text(client), "authenticatorData": _text(data), "signature": _text(signature)}
        )

    def _data(self, flags: int) -> bytes:
        flags |= _PRESENT | (_VERIFIED if self.verifies else 0)
        return hashlib.sha256(self.host.encode()).digest() + bytes([flags]) + struct.pack(">I", self.count)

    def _client(self, kind: str, question: dict[str, Any]) -> bytes:
        return json.dumps({"type": kind, "challenge": question["challenge"], "origin": self.origin}).encode()

    def _answer(self, response: dict[str, str]) -> str:
        name = _text(self.credential)
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response})
