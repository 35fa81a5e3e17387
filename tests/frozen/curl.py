"""The curl commands of the documentation, read as a shell and curl would read them."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_COMMAND: Final = re.compile(r"^(?=curl )", re.MULTILINE)
_VARIABLE: Final = re.compile(r"\$([A-Z_]+)")


@dataclass(frozen=True)
class CurlCall:
    """What a command sends; `url` is as it is written, `body` None without `-d`."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None


def curl_calls(script: str, variables: Mapping[str, str]) -> list[CurlCall]:
    """Every curl command of a script; each begins a line. `$NAME` is replaced by its value."""
    filled = _VARIABLE.sub(lambda found: variables[found[1]], script)
    return [_call(command) for command in _COMMAND.split(filled) if command.startswith("curl ")]


def _call(command: str) -> CurlCall:
    words = iter(shlex.split(command.replace("\\\n", " ")))
    assert next(words) == "curl"
    method, url, headers, data, in_query = None, "", {}, [], False
    for word in words:
        match word:
            case "-s":
                pass
            case "-G":
                in_query = True
            case "-X":
                method = next(words)
            case "-H":
                name, _, value = next(words).partition(": ")
                headers[name] = value
            case "-d":
                data.append(next(words))
            case _:
                assert not word.startswith("-"), f"curl {word} is not known here"
                url = word
    if in_query:
        return CurlCall("GET", f"{url}?{'&'.join(data)}", headers, None)
    body = "&".join(data).encode() if data else None
    return CurlCall(method or ("GET" if body is None else "POST"), url, headers, body)
