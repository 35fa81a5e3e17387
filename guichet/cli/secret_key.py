"""`guichet secret-key`: a new encryption key for `GUICHET_SECRET_KEYS`."""

import typer
from cryptography.fernet import Fernet

from guichet.cli.support import Json, print_json


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: `GUICHET_SECRET_KEYS=$(guichet secret-key) guichet serve`")(secret_key)


def secret_key(as_json: Json = False) -> None:
    """Print a new encryption key for GUICHET_SECRET_KEYS. It is stored nowhere: keep it with your backups."""
    key = Fernet.generate_key().decode()
    if as_json:
        print_json({"secret_key": key})
    else:
        typer.echo(key)
