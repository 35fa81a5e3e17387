"""Each provider's page ends with "Going live", whose commands, settings and key pairs work."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from guichet.clock import SystemClock
from guichet.http_client import HttpClient
from guichet.merchants.catalogue_file import load_catalogue
from guichet.providers.pawapay import http_message_signatures as http_signatures
from guichet.providers.provider_types import PROVIDER_TYPES
from guichet.providers.providers_file import ProvidersConfig, read_providers_file
from tests.cli.tree import parses
from tests.docs.test_provider_pages import FAMILIES, PAGES

CODES: Final = {mode.operator for mode in load_catalogue(None).modes}
_BLOCK: Final = re.compile(r"^ *```(sh|toml)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def going_live(family: str) -> str:
    """The last section of the page."""
    last = (PAGES / f"{family}.md").read_text(encoding="utf-8").split("\n## ")[-1]
    assert last.startswith("Going live\n"), f"{family}.md does not end with it"
    return last


def blocks(family: str, language: str) -> list[str]:
    """The code of that language, without the indentation of its list."""
    found = [text for name, text in _BLOCK.findall(going_live(family)) if name == language]
    return [re.sub(r"^   ", "", text, flags=re.MULTILINE) for text in found]


def accounts_in(family: str, tmp_path: Path) -> list[ProvidersConfig]:
    """The providers' files of the page, read as Guichet reads them."""
    found = []
    for number, text in enumerate(blocks(family, "toml")):
        path = tmp_path / f"{number}.toml"
        path.write_text(text, encoding="utf-8")
        environ = dict.fromkeys(re.findall(r'env = "(\w+)"', text), "secret")
        if "PAWAPAY_SIGNING_KEY" in environ:
            private, public = key_pair(tmp_path)
            environ |= {"PAWAPAY_SIGNING_KEY": private, "PAWAPAY_PUBLIC_KEY": public}
        found.append(read_providers_file(path, environ, CODES))
    assert found
    return found


def key_pair(folder: Path) -> tuple[str, str]:
    """What the `openssl` lines of pawaPay's page make."""
    if shutil.which("openssl") is None:
        pytest.skip("LOUD: openssl is not installed, so the lines that make key pairs were not run")
    [lines] = [block for block in blocks("pawapay", "sh") if "openssl" in block]
    made = [line for line in lines.splitlines() if line.startswith("openssl")]
    subprocess.run(["sh", "-ec", "\n".join(made)], cwd=folder, check=True, capture_output=True)
    return (folder / "pawapay.key").read_text(), (folder / "pawapay.pub").read_text()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_accounts_of_the_page_can_be_used(family: str, tmp_path: Path) -> None:
    for config in accounts_in(family, tmp_path):
        config.registry(SystemClock(), HttpClient())
        assert {account.provider for account in config.accounts.values()} == {family}
    live = accounts_in(family, tmp_path)[-1]
    live.refuse_sandboxes()
    [account] = live.accounts.values()
    assert set(PROVIDER_TYPES[family].required) <= account.settings.keys()
    assert live.routes, "the page shows the route"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_commands_of_the_page_exist_and_name_its_accounts(family: str, tmp_path: Path) -> None:
    lines = [line for block in blocks(family, "sh") for line in block.splitlines() if line.startswith("guichet ")]
    run = {parses(line) for line in lines}
    assert {"providers check", "providers try"} <= run
    known = {name for config in accounts_in(family, tmp_path) for name in config.accounts}
    named = {word for line in lines for word in re.findall(r"providers (?:check|try) (\w+)", line)}
    assert named <= known
    assert next(iter(accounts_in(family, tmp_path)[-1].accounts)) in named, "the live account is checked and tried"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_page_says_what_to_ask_for_where_callbacks_go_and_what_refusals_mean(family: str) -> None:
    text = going_live(family)
    assert re.search(r"^\d\. \*\*Ask |^\d\. \*\*Open the account", text, re.MULTILINE)
    address = f"/providers/{family}/callback" if family not in ("mtn", "orange") else "/providers/{account}/callback/"
    assert ("{GUICHET_PUBLIC_URL}" + address in text) or "There are no callbacks" in text
    refusals = text.split("| What comes | What it usually means |\n|---|---|\n")[1]
    assert len(re.findall(r"^\| .+ \| .+ \|$", refusals, re.MULTILINE)) >= 5


def test_the_key_pair_of_the_page_signs(tmp_path: Path) -> None:
    private, public = key_pair(tmp_path)
    http_signatures.private_key(private)
    http_signatures.public_key(public)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_setting_that_the_page_names_is_one(family: str) -> None:
    """Names in backquotes that look like settings, such as `refund_via = "transfer"`."""
    known = {*PROVIDER_TYPES[family].required, *PROVIDER_TYPES[family].optional, "base_url", "float_alert_below"}
    assert {*re.findall(r"`([a-z_]+) = ", going_live(family))} <= known
