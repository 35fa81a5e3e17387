"""An upgrade to the next release, and a database that a newer version migrated, before an older one."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import guichet
from guichet import __version__
from guichet.db.schema import REQUIRED_REVISION, parse_revision
from guichet.settings import Settings
from tests.cli.conftest import Cli
from tests.db.schema import NEXT_MIGRATION, NEXT_REVISION, name_revision
from tests.patience import PATIENCE
from tests.ports import free_port

pytestmark = pytest.mark.both_databases

OWN = parse_revision(REQUIRED_REVISION).number
NEWER = f"v{OWN + 1:04}"
ADMITTING = f"{NEWER}_admits_v{OWN:04}"
COMMANDS = (
    ("serve", "--port", "0"),
    ("serve", "--port", "0", "--workers", "2"),
    ("worker",),
    ("demo", "--port", "0"),
    ("migrate",),
    ("migrate", "--plan"),
    ("doctor",),
    ("merchant", "list"),
)


#: Commands one after the other, each forked from a process that has imported what they need.
FORKS = """\
import json, os, sys
from guichet import bootstrap
from guichet.cli import main
from guichet.db import migrate

for line in sys.stdin:
    arguments, environ = json.loads(line)
    pid = os.fork()
    if not pid:
        for descriptor, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        os.environ.clear()
        os.environ.update(environ)
        sys.argv = ["guichet", *arguments]
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class NextRelease:
    """Guichet as it is, with one migration more, in a folder of its own; what is the same is linked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        package = Path(guichet.__file__).parent
        _link(package, folder / "guichet", "db")
        _link(package / "db", folder / "guichet/db", "migrations", "schema.py", "__pycache__")
        _link(package / "db/migrations", folder / "guichet/db/migrations", "versions", "__pycache__")
        _link(package / "db/migrations/versions", folder / "guichet/db/migrations/versions", "__pycache__")
        (folder / "guichet/db/migrations/versions/next_release.py").write_text(NEXT_MIGRATION)
        required = 'REQUIRED_REVISION: Final = "{}"'.format
        source = (package / "db/schema.py").read_text()
        assert required(REQUIRED_REVISION) in source
        changed = source.replace(required(REQUIRED_REVISION), required(NEXT_REVISION))
        (folder / "guichet/db/schema.py").write_text(changed)
        environ = {**os.environ, "PYTHONPATH": str(folder)}
        command = [sys.executable, "-c", FORKS]
        self.process = subprocess.Popen(
            command, cwd=folder, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, cli: Cli, *arguments: str) -> tuple[int, str]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([arguments, dict(cli.environ)]), file=self.process.stdin, flush=True)
        code = int(self.process.stdout.readline())
        out, err = ((self._folder / name).read_text() for name in ("out", "err"))
        assert "Traceback" not in err
        return code, out if code == 0 else err


@pytest.fixture(scope="module")
def next_release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NextRelease]:
    release = NextRelease(tmp_path_factory.mktemp("next"))
    with release.process:
        yield release
        release.process.kill()


def _link(source: Path, target: Path, *others: str) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if path.name not in others:
            (target / path.name).symlink_to(path)


def test_the_next_release_migrates_and_this_one_goes_on(
    settings: Settings, cli: Cli, next_release: NextRelease
) -> None:
    merchant = cli("merchant", "create", "Awa", "--json").json
    after = partial(next_release, cli)
    code, said = after("migrate", "--plan")
    assert code == 0
    assert f"The schema would go from {REQUIRED_REVISION} to {NEXT_REVISION}." in said
    assert f"Versions of Guichet that need {REQUIRED_REVISION} run on it too: servers may go on" in said
    code, said = after("merchant", "list")
    if settings.embedded:
        assert code == 0, "every command migrates the file"
    else:
        assert code == 1
        assert f" is {REQUIRED_REVISION}, and this version of Guichet (" in said
        assert f" needs {NEXT_REVISION}: run `guichet migrate` first." in said
        assert after("serve", "--port", "0")[0] == 1
        code, said = after("migrate")
        assert code == 0
        assert f"The schema went from {REQUIRED_REVISION} to {NEXT_REVISION}." in said
    with cli.running("serve") as server:
        body = {"amount": 5000, "operator": "mtn", "phone_number": "2290197000002"}
        assert server.call("POST", "/v1/payments", merchant["keys"]["test"], body)[0] == 201
    assert cli("migrate", "--json").json["to"] == NEXT_REVISION


async def test_every_command_says_that_it_is_older(settings: Settings, cli: Cli) -> None:
    # The second admits an older version, but not this one: `is_usable` decides for all commands alike.
    for revision, commands in ((NEWER, COMMANDS), (f"v{OWN + 2:04}_admits_v{OWN + 1:04}", COMMANDS[-1:])):
        await name_revision(settings, revision)
        for command in commands:
            sentence = cli(*command).refusal
            assert sentence.startswith(f"This version of Guichet ({__version__}) is older than the database "), command
            assert f"knows the schema up to {REQUIRED_REVISION}, and the schema is {revision}, which" in sentence
            assert "migrate` first" not in sentence


async def test_an_older_version_that_is_admitted_works(settings: Settings, cli: Cli) -> None:
    merchant = cli("merchant", "create", "Awa", "--json").json
    await name_revision(settings, ADMITTING)
    with cli.running("serve") as server:
        body = {"amount": 5000, "operator": "mtn", "phone_number": "2290197000002"}
        assert server.call("POST", "/v1/payments", merchant["keys"]["test"], body)[0] == 201
    assert cli("merchant", "list").code == 0
    assert cli("check-config").code == 0
    for command in (("migrate", "--json"), ("migrate", "--plan", "--json")):
        assert cli(*command).json == {"from": ADMITTING, "to": ADMITTING, "oldest_code": f"v{OWN:04}"}


async def test_a_revision_that_is_not_ours_is_named(settings: Settings, cli: Cli) -> None:
    await name_revision(settings, "ab12cd34ef56")
    for command in COMMANDS:
        assert "'ab12cd34ef56' is not a revision of Guichet" in cli(*command).refusal, command


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_server_that_refuses_to_start_accepts_no_connection(settings: Settings, cli: Cli, workers: int) -> None:
    """Else a proxy would choose it, and answer 502."""
    await name_revision(settings, NEWER)
    port = free_port()
    with cli.start("serve", "--port", port, "--workers", workers) as process:
        assert accepted(port, lambda: process.poll() is not None) == 0
        assert process.wait(timeout=PATIENCE) == 1


def test_a_server_whose_metrics_port_is_taken_accepts_no_connection(cli: Cli) -> None:
    """The last thing that can go wrong in a start."""
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        environ = {"GUICHET_METRICS_PORT": str(taken.getsockname()[1])}
        with cli.having(**environ).start("serve", "--port", port) as process:
            assert accepted(port, lambda: process.poll() is not None) == 0
            assert process.wait(timeout=PATIENCE) == 1


def accepted(port: int, ended: Callable[[], bool]) -> int:
    """How many connections to the port were accepted until `ended`."""
    count, deadline = 0, time.monotonic() + PATIENCE
    while not ended() and time.monotonic() < deadline:
        with socket.socket() as client:
            count += client.connect_ex(("127.0.0.1", port)) == 0
        time.sleep(0.001)
    return count
