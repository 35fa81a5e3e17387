"""The WooCommerce plugin as it would be uploaded: `plugins/woocommerce`, the PHP library that is its only way to the
API, and the compiled translations. The same files give the same bytes: names are sorted, and times are always the same.
"""

import io
import json
import re
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

SLUG: Final = "guichet-woocommerce"
_TIME: Final = (2026, 1, 1, 0, 0, 0)
#: Name under which WordPress knows it → file. WordPress reads a script's texts from a file of its own.
_SCRIPTS: Final = {"guichet-blocks": "assets/blocks.js"}


def pack(root: Path, target: Path) -> Path:
    """The zip, in the folder `target`. `root`: the files of the project."""
    plugin = root / "plugins" / "woocommerce"
    files = {path.relative_to(plugin).as_posix(): path.read_bytes() for path in _files(plugin)}
    library = root / "sdks" / "php"
    for path in [library / "autoload.php", *_files(library / "src")]:
        files[f"guichet/{path.relative_to(library).as_posix()}"] = path.read_bytes()
    for name in [name for name in files if name.endswith(".po")]:
        catalog = read_po(io.BytesIO(files[name]))
        # Otherwise the time of the build would stand in the head, and two builds differ.
        catalog.creation_date = catalog.revision_date = datetime(*_TIME, tzinfo=UTC)
        catalog.last_translator = catalog.language_team = catalog.msgid_bugs_address = "Guichet"
        files |= _compiled(catalog, name.removesuffix(".po"), files)
    version = re.search(r"^ \* Version: (\S+)$", files[f"{SLUG}.php"].decode(), re.MULTILINE)
    assert version is not None
    archive = target / f"{SLUG}-{version[1]}.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(f"{SLUG}/{name}", _TIME)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o100644 << 16
            packed.writestr(entry, content, compresslevel=9)
    return archive


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def _compiled(catalog: Catalog, name: str, files: dict[str, bytes]) -> dict[str, bytes]:
    compiled = io.BytesIO()
    write_mo(compiled, catalog)
    made = {f"{name}.mo": compiled.getvalue()}
    for handle, script in _SCRIPTS.items():
        used = set(re.findall(r"\b__\('([^']+)', '" + SLUG, files[script].decode()))
        head = {"domain": "messages", "lang": str(catalog.locale), "plural-forms": catalog.plural_forms}
        texts = {str(each.id): [str(each.string)] for each in catalog if each.id in used}
        document = {"domain": "messages", "locale_data": {"messages": {"": head, **texts}}}
        made[f"{name}-{handle}.json"] = json.dumps(document, ensure_ascii=False, sort_keys=True).encode()
    return made
