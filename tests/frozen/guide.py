"""The JSON of the merchant's guides: each block follows the name of the recorded example that it shows.

<!-- example: answers / create_payment / Mobile Money -->
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

FILES: Final = tuple((Path(__file__).parents[2] / "docs").glob("guide-[mw]*.md"))
WIDTH: Final = 120
_BLOCK: Final = re.compile(r"(?:^<!-- example: (?P<name>.+?) -->\n)?^```json\n.*?^```$", re.MULTILINE | re.DOTALL)


def refreshed(text: str, examples: Mapping[str, Any]) -> str:
    """The guide with every block of JSON as it was recorded. Raises LookupError where a block has no name, or one that
    was not recorded."""

    def block(found: re.Match[str]) -> str:
        if found["name"] is None:
            raise LookupError(f"a block of JSON has no <!-- example: … --> before it: {found[0][:200]}")
        shown: Any = examples
        for part in found["name"].split(" / "):
            shown = shown[part]
        return f"<!-- example: {found['name']} -->\n```json\n{pretty(shown)}\n```"

    return _BLOCK.sub(block, text)


def pretty(value: Any, indent: str = "", before: int = 0) -> str:
    """JSON with an object or array on one line where it fits; `before` characters stand before it. The outermost ones
    are always spread out."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value:
        return flat
    if before and len(indent) + before + len(flat) < WIDTH:
        return flat
    inner = f"{indent}  "
    keys = [f"{json.dumps(key)}: " for key in value] if isinstance(value, dict) else [""] * len(value)
    items = value.values() if isinstance(value, dict) else value
    lines = [f"{inner}{key}{pretty(item, inner, len(key) or 1)}" for key, item in zip(keys, items, strict=True)]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n" + ",\n".join(lines) + f"\n{indent}{closing}"
