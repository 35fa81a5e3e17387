"""Webhooks: verify, then read (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from typing import cast

from guichet_sdk.errors import SignatureVerification
from guichet_sdk.types import Event

#: Seconds between our clock and the receiver's, in both directions.
TOLERANCE = 300


def unwrap(raw_body: bytes, headers: Mapping[str, str], secrets: str | Sequence[str]) -> Event:
    """The event, if one of the secrets signed it at most five minutes ago; else raises SignatureVerification.

    `raw_body`: the bytes that were received, before any decoding. `secrets`: one, or several while one replaces
    another.
    """
    if not isinstance(raw_body, bytes):
        raise TypeError("raw_body : les octets reçus, par exemple `request.body` ou `await request.body()`.")
    keys = [_key(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    if not keys:
        raise ValueError("Aucun secret de webhook n'est donné.")
    lower = {name.lower(): value for name, value in headers.items()}
    message_id = lower.get("webhook-id", "")
    timestamp = lower.get("webhook-timestamp", "")
    if not (timestamp.isascii() and timestamp.isdigit() and abs(time.time() - int(timestamp)) <= TOLERANCE):
        raise SignatureVerification("L'horodatage du webhook manque, ou est à plus de cinq minutes.")
    signed = f"{message_id}.{timestamp}.".encode() + raw_body
    expected = [hmac.new(key, signed, hashlib.sha256).digest() for key in keys]
    if not any(hmac.compare_digest(mine, theirs) for theirs in _signatures(lower) for mine in expected):
        raise SignatureVerification("Aucune signature du webhook n'est celle d'un de vos secrets.")
    return cast("Event", json.loads(raw_body))


def _key(secret: str) -> bytes:
    """An empty secret would accept what anybody signs."""
    try:
        key = base64.b64decode(secret.strip().removeprefix("whsec_"), validate=True)
    except binascii.Error:
        key = b""
    if not key:
        raise ValueError("Le secret de webhook est vide ou n'en est pas un : il commence par whsec_.")
    return key


def _signatures(lower: Mapping[str, str]) -> list[bytes]:
    """Those of version 1; each is told by its length, so one that is not base64 matches nothing."""
    parts = (each.partition(",") for each in lower.get("webhook-signature", "").split())
    found = []
    for version, _, text in parts:
        try:
            found += [base64.b64decode(text, validate=True)] if version == "v1" else []
        except (binascii.Error, ValueError):
            continue
    return found
