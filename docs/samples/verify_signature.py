"""Vérifie la signature d'un webhook. Aucune dépendance.

En ligne de commande : WEBHOOK_SECRET=whsec_… python verify_signature.py "<X-Service-Signature>" < corps.json
Code de sortie : 0 si la signature est valide, 1 sinon. Sans secret : une erreur.
"""

import hashlib
import hmac
import os
import sys
import time

MAX_AGE = 300  # secondes


def verify_signature(secret: str, header: str | None, body: bytes, now: float | None = None) -> bool:
    """`body` est le corps reçu, octet pour octet, avant tout décodage JSON. Sans secret : ValueError."""
    if not secret or not secret.strip():  # Une clé vide, tout le monde peut la deviner.
        raise ValueError("Le secret du webhook est vide : la signature ne prouverait rien.")
    if not isinstance(header, str):  # L'en-tête manque : la requête ne vient pas de Guichet.
        return False
    pairs = [part.strip().partition("=") for part in header.split(",")]
    times = [value for name, _, value in pairs if name == "t"]
    signatures = [value for name, _, value in pairs if name == "v1"]
    if len(times) != 1 or len(times[0]) > 15 or not (times[0].isascii() and times[0].isdigit()):
        return False
    if abs((time.time() if now is None else now) - int(times[0])) > MAX_AGE:  # Ni trop vieux, ni dans l'avenir.
        return False
    expected = hmac.new(secret.encode(), times[0].encode() + b"." + body, hashlib.sha256).hexdigest()
    # compare_digest prend le même temps quel que soit l'endroit où les deux textes diffèrent.
    return any(hmac.compare_digest(expected.encode(), given.encode(errors="replace")) for given in signatures)


if __name__ == "__main__":
    given_header = sys.argv[1] if len(sys.argv) > 1 else ""
    given_secret = os.environ.get("WEBHOOK_SECRET", "")
    sys.exit(0 if verify_signature(given_secret, given_header, sys.stdin.buffer.read()) else 1)
