"""Signed notifications: HMAC with a timestamp, and RFC 9421 with both encodings of ECDSA."""

import base64
import hashlib
import hmac

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from msgspec import structs

from guichet.clock import SECOND, earlier, later
from guichet.providers.base import Callback
from guichet.providers.pawapay import http_message_signatures as http_signatures
from guichet.providers.shared import signatures
from tests.providers.provider_under_test import NOW

BODY = b'{"depositId":"1","status":"COMPLETED"}'
MOMENT = NOW // SECOND


def hexed(secret: str, message: bytes) -> str:
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


GOOD = hexed("secret", f"{MOMENT}".encode() + b"." + BODY)


@pytest.mark.parametrize(
    ("header", "right"),
    [
        (f"t={MOMENT},v1={GOOD}", True),
        (f"t={MOMENT}, v0=xx, v1={'0' * 64}, v1={GOOD}", True),
        (f"v1={GOOD},t={MOMENT}", True),
        (f"t={MOMENT},v1={GOOD[:-1]}", False),
        (f"t={MOMENT + 1},v1={GOOD}", False),
        (f"t={MOMENT},v0={GOOD}", False),
        (f"v1={GOOD}", False),
        ("t=,v1=", False),
        ("t=²,v1=é", False),
        (f"t={'9' * 5_000},v1={GOOD}", False),
        ("", False),
    ],
)
def test_timestamped_signatures_are_verified(header: str, right: bool) -> None:
    assert signatures.verify_signature(header, BODY, secret="secret", separator=b".", now=NOW) is right


@pytest.mark.parametrize(("age", "right"), [(300, True), (301, False), (-300, True), (-301, False)])
def test_a_signature_expires_after_five_minutes(age: int, right: bool) -> None:
    header, now = f"t={MOMENT},v1={GOOD}", later(NOW, age * SECOND)
    assert signatures.verify_signature(header, BODY, secret="secret", separator=b".", now=now) is right


def test_the_separator_is_part_of_the_signed_text() -> None:
    for separator in (b"", b".", b","):
        header = f"t={MOMENT},v1={hexed('s', str(MOMENT).encode() + separator + BODY)}"
        accepted = [
            other
            for other in (b"", b".", b",")
            if signatures.verify_signature(header, BODY, secret="s", separator=other, now=NOW)
        ]
        assert accepted == [separator]


KEY = ec.generate_private_key(ec.SECP256R1())
URL = "https://pay.example.com/providers/pawapay/callback"


def signed_callback() -> Callback:
    """What our own signer sends, as it arrives at the other end."""
    headers = http_signatures.sign(KEY, key_id="K1", url=URL, body=BODY, now=NOW)
    arrived = {**headers, "Content-Type": "application/json", "Host": "pay.example.com"}
    return Callback("POST", "/providers/pawapay/callback", arrived, BODY)


def changed(callback: Callback, **headers: str) -> Callback:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return structs.replace(callback, headers={**callback.headers, **named})


def test_our_own_signatures_are_verified() -> None:
    assert http_signatures.verify(KEY.public_key(), signed_callback(), NOW)


def test_both_encodings_of_ecdsa_are_verified() -> None:
    callback = signed_callback()
    r, s = utils.decode_dss_signature(base64.b64decode(callback.headers["Signature"].split(":")[1]))
    raw = base64.b64encode(r.to_bytes(32, "big") + s.to_bytes(32, "big")).decode()
    assert http_signatures.verify(KEY.public_key(), changed(callback, Signature=f"sig-pp=:{raw}:"), NOW)


@pytest.mark.parametrize("encoding", ["der", "raw"])
def test_our_signature_is_what_the_samples_of_pawapay_make(encoding: http_signatures.Encoding) -> None:
    """Built again from the samples' description (docs/providers/pawapay.md, "Signatures"), and verified by the library
    alone: DER unless the setting says otherwise."""
    url, body = "https://api.pawapay.io/v2/payouts", b'{"payoutId":"1"}'
    headers = http_signatures.sign(KEY, key_id="K1", url=url, body=body, now=NOW, encoding=encoding)
    parameters = headers["Signature-Input"].removeprefix("sig-pp=")
    digest = base64.b64encode(hashlib.sha512(body).digest()).decode()
    signed = "\n".join(
        [
            '"@method": POST',
            '"@authority": api.pawapay.io',
            '"@path": /v2/payouts',
            f'"signature-date": {headers["Signature-Date"]}',
            f'"content-digest": sha-512=:{digest}:',
            '"content-type": application/json',
            f'"@signature-params": {parameters}',
        ]
    ).encode()
    signature = base64.b64decode(headers["Signature"].split(":")[1])
    if encoding == "raw":
        assert len(signature) == 64
        signature = utils.encode_dss_signature(
            int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
        )
    KEY.public_key().verify(signature, signed, ec.ECDSA(hashes.SHA256()))


def test_callbacks_that_are_not_authentic_are_refused() -> None:
    callback, public = signed_callback(), KEY.public_key()
    stripped = structs.replace(callback, headers={"Host": "pay.example.com"})
    wrong = {
        "another key": (ec.generate_private_key(ec.SECP256R1()).public_key(), callback, NOW),
        "another body": (public, structs.replace(callback, body=BODY + b" "), NOW),
        "another path": (public, structs.replace(callback, path="/providers/pawapay/callback/x"), NOW),
        "another method": (public, structs.replace(callback, method="PUT"), NOW),
        "another host": (public, changed(callback, Host="evil.example.com"), NOW),
        "too late": (public, callback, later(NOW, 400 * SECOND)),
        "too early": (public, callback, earlier(NOW, 400 * SECOND)),
        "unsigned": (public, stripped, NOW),
        "garbage": (public, changed(callback, Signature="sig-pp=:####:"), NOW),
        "another label": (public, changed(callback, Signature=callback.headers["Signature"].replace("pp", "xx")), NOW),
        "another digest": (public, changed(callback, Content_Digest="sha-512=:AAAA:"), NOW),
        "unknown digest": (public, changed(callback, Content_Digest="md5=:AAAA:"), NOW),
    }
    assert [name for name, given in wrong.items() if http_signatures.verify(*given)] == []


def test_a_signature_must_cover_the_body() -> None:
    base = f'"@method": POST\n"@signature-params": ("@method");alg="ecdsa-p256-sha256";keyid="K1";created={MOMENT}'
    made = base64.b64encode(KEY.sign(base.encode(), ec.ECDSA(hashes.SHA256()))).decode()
    headers = {
        **signed_callback().headers,
        "Signature-Input": f'sig-pp=("@method");alg="ecdsa-p256-sha256";keyid="K1";created={MOMENT}',
        "Signature": f"sig-pp=:{made}:",
    }
    assert not http_signatures.verify(KEY.public_key(), structs.replace(signed_callback(), headers=headers), NOW)


@pytest.mark.parametrize("algorithm", ["rsa-pss-sha512", "rsa-v1_5-sha256"])
def test_rsa_signatures_are_verified(algorithm: str) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    callback = signed_callback()
    parameters = callback.headers["Signature-Input"].removeprefix("sig-pp=").replace("ecdsa-p256-sha256", algorithm)
    covered = {
        "@method": "POST",
        "@authority": "pay.example.com",
        "@path": "/providers/pawapay/callback",
        "signature-date": callback.headers["Signature-Date"],
        "content-digest": callback.headers["Content-Digest"],
        "content-type": "application/json",
    }
    base = "\n".join([*(f'"{n}": {v}' for n, v in covered.items()), f'"@signature-params": {parameters}']).encode()
    if algorithm == "rsa-pss-sha512":
        made = key.sign(base, padding.PSS(padding.MGF1(hashes.SHA512()), 64), hashes.SHA512())
    else:
        made = key.sign(base, padding.PKCS1v15(), hashes.SHA256())
    carried = changed(
        callback,
        Signature_Input=f"sig-pp={parameters}",
        Signature=f"sig-pp=:{base64.b64encode(made).decode()}:",
    )
    assert http_signatures.verify(key.public_key(), carried, NOW)
    assert not http_signatures.verify(key.public_key(), structs.replace(carried, body=b"{}"), NOW)


def test_unusable_public_keys_are_refused() -> None:
    plain = serialization.NoEncryption()
    pem = KEY.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()
    on_one_line = pem.replace("\n", "\\n")
    assert http_signatures.private_key(on_one_line).private_numbers() == KEY.private_numbers()
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    wrong = other.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()
    for text in (wrong, "not a key"):
        with pytest.raises(ValueError, match=r".+"):
            http_signatures.private_key(text)
    with pytest.raises(ValueError, match=r".+"):
        http_signatures.public_key("not a key")
