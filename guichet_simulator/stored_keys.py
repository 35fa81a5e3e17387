"""Private keys that are made once and stored. Whoever needs one imports it then: `cryptography` takes 8 MB."""

from collections.abc import Callable
from typing import TypeVar, cast

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from guichet_simulator.store import Store

Key = TypeVar("Key", ec.EllipticCurvePrivateKey, rsa.RSAPrivateKey)


def stored_key(store: Store, name: str, make: Callable[[], Key]) -> Key:
    """The private key of this name; `make` makes it when it is first needed."""
    saved: str | None = store.setting(name)
    if saved is not None:
        return cast(Key, serialization.load_pem_private_key(saved.encode(), None))
    key, plain = make(), serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    store.set_setting(name, pem.decode())
    return key
