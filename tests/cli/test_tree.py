"""Every command explains itself, and its example is one that it understands."""

import re

import pytest

from guichet import __version__
from tests.cli.conftest import Cli
from tests.cli.tree import leaves, parses

LEAVES = dict(leaves())
#: These run until they are stopped: they print as they go.
SERVING = {"serve", "worker", "demo", "mcp", "listen", "simulator"}


@pytest.mark.parametrize("path", LEAVES)
def test_the_example_of_each_command_is_valid(path: str) -> None:
    examples = re.findall(r"`([^`]*guichet [^`]*)`", LEAVES[path].epilog or "")
    assert examples, f"{path} has no example"
    for example in examples:
        inner = re.search(r"\$\((.*)\)", example)
        assert parses(inner[1] if inner else example) == path


@pytest.mark.parametrize("path", sorted(LEAVES.keys() - SERVING))
def test_each_command_has_a_json_option(path: str) -> None:
    assert any("--json" in parameter.opts for parameter in LEAVES[path].params)


@pytest.mark.parametrize("path", ["merchant create", "wallet status", "mode fee", "demo", "migrate"])
def test_the_help_of_each_command_shows_its_example(fresh: Cli, path: str) -> None:
    done = fresh(*path.split(), "--help")
    assert done.code == 0
    assert "Example: " in done.out
    shown = re.sub(r"\s+", " ", done.out)
    assert re.sub(r"[`\s]+", " ", LEAVES[path].epilog).strip() in re.sub(r"[`\s]+", " ", shown)


def test_help_version_and_unknown_words_are_answered(fresh: Cli) -> None:
    assert "merchant" in fresh("--help").out
    assert fresh("--version").out.strip() == __version__
    assert "No such command" in fresh("nonsense").misuse
    assert "No such option" in fresh("merchant", "list", "--nonsense").misuse


def test_secret_key_is_usable(fresh: Cli) -> None:
    first, second = (fresh("secret-key", "--json").json["secret_key"] for _ in range(2))
    assert first != second
    cli = fresh.having(GUICHET_SECRET_KEYS=f"{first},{second}")
    assert cli("merchant", "create", "Awa").code == 0
    assert cli("check-config").code == 0
