"""Names that begin with GUICHET_ and are no setting. A mistyped one would be a default that nobody notices
(docs/decisions.md, "Command names its database")."""

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

_PREFIX: Final = "GUICHET_"
#: What Kubernetes puts into the environment of every pod about a service whose name begins with `guichet`.
_KUBERNETES: Final = re.compile(
    r"GUICHET_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)=.*|"
    r"GUICHET_(\w+_)?PORT=(tcp|udp|sctp)://.*"
)


def unknown_names(environ: Mapping[str, str], known: Collection[str], providers_file: str | None) -> list[str]:
    """One sentence for each name that begins with GUICHET_ and is not in `known`.

    `providers_file`: its path. A name that stands in it is a secret of a provider's account, not a setting.
    """
    found = [
        name
        for name, value in environ.items()
        if name.startswith(_PREFIX) and name not in known and not _KUBERNETES.fullmatch(f"{name}={value}")
    ]
    if not found:
        return []
    secrets = _names_in(providers_file)
    return [_sentence(name, known) for name in found if name not in secrets]


def _names_in(file: str | None) -> set[str]:
    """Whoever uses the file says what is wrong with it."""
    try:
        text = Path(file).expanduser().read_text(encoding="utf-8", errors="replace") if file else ""
    except (OSError, RuntimeError):  # RuntimeError: `~nobody`, a home that does not exist.
        return set()
    return set(re.findall(rf"{_PREFIX}\w+", text))


def _sentence(name: str, known: Collection[str]) -> str:
    nearest = get_close_matches(name, known, 1, cutoff=0.8)
    hint = f"did you mean {nearest[0]}?" if nearest else "every setting is in docs/admin-guide.md."
    return f"{name} is unknown; {hint}"
