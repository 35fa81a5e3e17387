"""Reçoit les webhooks de Guichet. Aucune dépendance ; verify_signature.py est à côté de ce fichier.

WEBHOOK_SECRET=whsec_… INBOX=/var/lib/boutique PORT=8080 python handler.py
"""

import contextlib
import json
import os
import re
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from verify_signature import verify_signature

INBOX = Path(os.environ["INBOX"])
#: Un paiement ne recule jamais : un événement de rang inférieur ou égal est en retard, ou répété.
RANKS = {"payment.succeeded": 1, "payment.failed": 1, "payment.refunded": 2}
working = threading.Lock()


def receive(body: bytes, header: str | None) -> int:
    """Le statut de la réponse. L'événement est sur le disque quand c'est 200."""
    if not verify_signature(os.environ.get("WEBHOOK_SECRET", ""), header, body):
        return 400
    event_id = json.loads(body)["id"]
    if not re.fullmatch(r"[0-9a-f-]{36}", event_id):
        return 400
    part = INBOX / f"{uuid.uuid4()}.part"
    with part.open("wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    # Le lien échoue si cet id est déjà là : avec une base de données, une contrainte d'unicité sur l'id.
    with contextlib.suppress(FileExistsError):
        (INBOX / f"{event_id}.event").hardlink_to(part)
    part.unlink()
    return 200


def work() -> None:
    """Traite ce qui est reçu et ne l'est pas encore. À lancer aussi au démarrage : un arrêt n'oublie rien."""
    with working:
        for received in sorted(INBOX.glob("*.event")):
            done = received.with_suffix(".done")
            if not done.exists():
                apply(json.loads(received.read_bytes()))
                done.touch()


def apply(event: dict[str, Any]) -> None:
    """Avec une base de données : la commande verrouillée, son état et l'id de l'événement dans une transaction."""
    rank = RANKS.get(event["event"])
    if rank is None:
        return  # Un événement que vous ne connaissez pas encore, ou dont vous n'avez pas l'usage.
    order = INBOX / f"{event['data']['reference']}.order"
    state = order.read_text() if order.exists() else ""
    if RANKS.get(state, 0) >= rank:
        return
    part = order.with_suffix(".part")
    part.write_text(event["event"])
    part.replace(order)
    with (INBOX / "actions.log").open("a") as log:  # Ici : livrer, annuler, ou reprendre la marchandise.
        log.write(f"{event['data']['reference']} {event['event']}\n")


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))  # Brut, avant tout décodage.
        self.send_response(receive(body, self.headers.get("X-Service-Signature")))
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.wfile.flush()
        threading.Thread(target=work).start()  # Après la réponse.


if __name__ == "__main__":
    work()
    ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
