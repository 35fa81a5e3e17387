"""Fixed vectors of signatures that others made, each with its source: our code must agree with all of them."""

import base64
import hashlib

import pytest
import stripe
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from wave_business_api import WebhookVerifier

from guichet.clock import SECOND, Instant
from guichet.providers.base import Callback
from guichet.providers.pawapay import http_message_signatures
from guichet.providers.shared import signatures
from guichet_simulator.signatures import is_signed_now

# docs.wave.com/webhook: the example of its samples of code, with the secret, the time, the raw body and the signature.
WAVE_SECRET = "wave_sn_WHS_xz4m6g8rjs9bshxy05xj4khcvjv7j3hcp4fbpvv6met0zdrjvezg"
WAVE_TIME = 1667920421
WAVE_SIGNATURE = "53c971695230e9c51b1030d673eee76e70bbcdf8a7c5b8c1d44e0b8b1329647b"
WAVE_BODY = (
    b'{"id": "AE_ijzo7oGgrlM7", "type": "checkout.session.completed", "data": {"id": "cos-1b01sghpg100j", '
    b'"amount": "100", "checkout_status": "complete", "client_reference": null, "currency": "XOF", '
    b'"error_url": "https://example.com/error", "last_payment_error": null, "business_name": "Annas Apiaries", '
    b'"payment_status": "succeeded", "success_url": "https://example.com/success", '
    b'"wave_launch_url": "https://pay.wave.com/c/cos-1b01sghpg100j?a=100&c=XOF&m=Annas%20Apiaries", '
    b'"when_completed": "2022-11-08T15:05:45Z", "when_created": "2022-11-08T15:05:32Z", '
    b'"when_expires": "2022-11-09T15:05:32Z", "transaction_id": "TCN4Y4ZC3FM"}}'
)


def test_the_example_of_waves_documentation() -> None:
    header, now = f"t={WAVE_TIME},v1={WAVE_SIGNATURE}", Instant(WAVE_TIME * SECOND)
    assert signatures.hmac_sha256_hex(WAVE_SECRET, str(WAVE_TIME).encode() + WAVE_BODY) == WAVE_SIGNATURE
    assert signatures.verify_signature(header, WAVE_BODY, secret=WAVE_SECRET, separator=b"", now=now)
    assert not signatures.verify_signature(header, WAVE_BODY + b" ", secret=WAVE_SECRET, separator=b"", now=now)
    assert is_signed_now(header, WAVE_BODY, secret=WAVE_SECRET, now=now)  # The simulator reads the same.
    verifier = WebhookVerifier(WAVE_SECRET, tolerance_seconds=0)  # And so does the published client, at any time.
    assert verifier.verify_and_parse(WAVE_BODY.decode(), header)["id"] == "AE_ijzo7oGgrlM7"


# Made with openssl: printf '1795255200.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_test_secret
STRIPE_SECRET, STRIPE_TIME, STRIPE_BODY = "whsec_test_secret", 1795255200, b'{"id":"evt_1"}'
STRIPE_SIGNATURE = "483e66027dda9ba6545551176c657aef1f7b4ee24bf87e0696cd0cc660e74642"


def test_a_signature_that_stripes_own_library_accepts() -> None:
    header, now = f"t={STRIPE_TIME},v1={STRIPE_SIGNATURE}", Instant(STRIPE_TIME * SECOND)
    assert stripe.WebhookSignature.verify_header(STRIPE_BODY.decode(), header, STRIPE_SECRET, tolerance=None)
    assert signatures.verify_signature(header, STRIPE_BODY, secret=STRIPE_SECRET, separator=b".", now=now)
    for wrong in (f"t={STRIPE_TIME + 1},v1={STRIPE_SIGNATURE}", f"t={STRIPE_TIME},v0={STRIPE_SIGNATURE}"):
        assert not signatures.verify_signature(wrong, STRIPE_BODY, secret=STRIPE_SECRET, separator=b".", now=now)
        with pytest.raises(stripe.SignatureVerificationError):
            stripe.WebhookSignature.verify_header(STRIPE_BODY.decode(), wrong, STRIPE_SECRET, tolerance=None)


# pawaPay/signatures-node-example: its sample key, published as unsafe, and its steps, run by Node:
# createSign('SHA256').update(base).sign(key). It covers "content-length" as well, and the signature is DER.
PAWAPAY_KEY = """-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEI+obCRXCx1q2ryRWOnFCiz0wkG9o
JsHIxumXEWiHltozK17tVHEgGxrMKwlMhVGVtGfclcTJaadmJ35awrEA5w==
-----END PUBLIC KEY-----"""
PAWAPAY_TIME = Instant(1714653410 * SECOND)
PAWAPAY_BODY = (
    b'{"depositId":"f4401bd2-1568-4140-bf2d-eb77d2b2b639","amount":"15","currency":"ZMW","status":"COMPLETED"}'
)
PAWAPAY_PARAMETERS = (
    '("@method" "@authority" "@path" "signature-date" "content-digest" "content-type" "content-length")'
    ';alg="ecdsa-p256-sha256";keyid="CUSTOMER_TEST_KEY_ID";created=1714653405;expires=1714653465'
)
PAWAPAY_HEADERS = {
    "Host": "pay.example.com",
    "Content-Type": "application/json",
    "Content-Length": "104",
    "Signature-Date": "2024-05-02T12:36:45.058Z",
    "Content-Digest": (
        "sha-512=:4dEcZNfOhbibFrq72LTZmhHW5fkhOm0Giwg+DDtRhSroJXIf5w3gojJklgfVY6malgbw/HIZ0J4F+6OMT/U/kQ==:"
    ),
    "Signature-Input": f"sig-pp={PAWAPAY_PARAMETERS}",
    "Signature": (
        "sig-pp=:MEUCIFsKE7Kqxu9v/yU4Z44YIAYkdcj+CUJQi674J9k6KLHlAiEAm6xjnTwrc0OlaNFHX0Uo40jhvhsFDTLpZr+LT5Q8m9U=:"
    ),
}


def test_a_signature_that_pawapays_sample_makes() -> None:
    callback = Callback("POST", "/providers/pawapay/callback", PAWAPAY_HEADERS, PAWAPAY_BODY)
    key = http_message_signatures.public_key(PAWAPAY_KEY)
    assert http_message_signatures.verify(key, callback, PAWAPAY_TIME)
    other = Callback("POST", "/providers/pawapay/other", PAWAPAY_HEADERS, PAWAPAY_BODY)
    assert not http_message_signatures.verify(key, other, PAWAPAY_TIME)


def test_the_same_signature_verified_by_the_library_alone() -> None:
    covered = {"@method": "POST", "@authority": "pay.example.com", "@path": "/providers/pawapay/callback"}
    covered |= {name: PAWAPAY_HEADERS[name.title()] for name in ("signature-date", "content-digest")}
    covered |= {name: PAWAPAY_HEADERS[name.title()] for name in ("content-type", "content-length")}
    base = "\n".join([f'"{name}": {value}' for name, value in covered.items()])
    base += f'\n"@signature-params": {PAWAPAY_PARAMETERS}'
    signature = base64.b64decode(PAWAPAY_HEADERS["Signature"].split(":")[1])
    key = load_pem_public_key(PAWAPAY_KEY.encode())
    assert isinstance(key, ec.EllipticCurvePublicKey)
    key.verify(signature, base.encode(), ec.ECDSA(hashes.SHA256()))
    digest = base64.b64encode(hashlib.sha512(PAWAPAY_BODY).digest()).decode()
    assert PAWAPAY_HEADERS["Content-Digest"] == f"sha-512=:{digest}:"


# RFC 9421, appendix B.1.3 (test-key-ecc-p256) and B.2.4 (signing a response), and RFC 9530, section 4 (the digest).
RFC_BODY = b'{"message": "good dog"}'
RFC_DIGEST = "mEWXIS7MaLRuGgxOBdODa3xqM1XdEvxoYhvlCFJ41QJgJc4GTsPp29l5oGX69wWdXymyU0rjJuahq4l5aGgfLQ=="
RFC_BASE = (
    '"@status": 200\n'
    '"content-type": application/json\n'
    f'"content-digest": sha-512=:{RFC_DIGEST}:\n'
    '"content-length": 23\n'
    '"@signature-params": ("@status" "content-type" "content-digest" "content-length")'
    ';created=1618884473;keyid="test-key-ecc-p256"'
)
RFC_X, RFC_Y = "qIVYZVLCrPZHGHjP17CTW0_-D9Lfw0EkjqF7xB4FivA", "Mc4nN9LTDOBhfoUeg8Ye9WedFRhnZXZJA12Qp0zZ6F0"
RFC_SIGNATURE = "wNmSUAhwb5LxtOtOpNa6W5xj067m5hFrj0XQ4fvpaCLx0NKocgPquLgyahnzDnDAUy5eCdlYUEkLIj+32oiasw=="


def test_the_ecdsa_example_of_rfc_9421_is_r_and_s_side_by_side() -> None:
    """The RFC's encoding, which we accept beside DER and send with `signature_encoding = "raw"`."""
    x, y = (int.from_bytes(base64.urlsafe_b64decode(part + "="), "big") for part in (RFC_X, RFC_Y))
    key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    signature = base64.b64decode(RFC_SIGNATURE)
    assert len(signature) == 64
    assert base64.b64encode(hashlib.sha512(RFC_BODY).digest()).decode() == RFC_DIGEST
    numbers = (int.from_bytes(part, "big") for part in (signature[:32], signature[32:]))
    key.verify(utils.encode_dss_signature(*numbers), RFC_BASE.encode(), ec.ECDSA(hashes.SHA256()))
