"""What a server has imported when it listens: each module is time of its start, and memory for as long as it runs."""

import subprocess
import sys

#: Modules of `guichet serve` when it listens, and with its worker, as they are before its first request.
_LISTENING = "import guichet.cli.serve, sys; print(*sys.modules)"
_SERVER = "import guichet.cli.serve, guichet.worker.worker, sys; print(*sys.modules)"
_SIMULATOR = "import guichet_simulator.app, sys; print(*sys.modules)"


def imported(program: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_a_server_on_sqlite_imports_nothing_of_postgresql_and_no_http_client_before_it_calls() -> None:
    modules = imported(_SERVER)
    assert "sqlalchemy.dialects.sqlite" in modules
    assert not modules & {"asyncpg", "sqlalchemy.dialects.postgresql", "aiohttp", "pycares"}


def test_a_server_listens_before_it_imports_what_a_first_payment_does_not_need() -> None:
    later = {"guichet.api.refunds", "guichet.payments.settlement", "guichet.payments.polling", "guichet.worker.worker"}
    later |= {"guichet.links.repository", "guichet.webhooks.outbox", "guichet.provider_callbacks.receive"}
    assert not imported(_LISTENING) & later


def test_a_server_imports_no_pages_files_and_commands_before_somebody_asks() -> None:
    modules = imported(_SERVER)
    others = {"guichet.console", "guichet.checkout", "guichet.exports.file_writers", "guichet.ledger.reconciliation"}
    others |= {"guichet.back_office.jobs.tasks", "uvicorn", "prometheus_client", "cryptography"}
    assert not modules & {*others, "jinja2", "babel", "rich", "alembic", "email_validator", "guichet_simulator"}


def test_the_simulator_imports_templates_and_keys_when_somebody_asks_for_them() -> None:
    assert not imported(_SIMULATOR) & {"jinja2", "cryptography"}
