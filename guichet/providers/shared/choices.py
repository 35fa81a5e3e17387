"""Settings of an account that must be one of a few words."""

from collections.abc import Collection, Mapping


def choice(settings: Mapping[str, str], name: str, options: Collection[str]) -> str:
    """The setting; the first option where it is not set. Raises ValueError for another word."""
    value = settings.get(name) or next(iter(options))
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(options)}")
    return value


def switch(settings: Mapping[str, str], name: str, *, default: bool) -> bool:
    """As `providers_file.py` reads true and false. Raises ValueError for anything else."""
    value = settings.get(name) or ("yes" if default else "no")
    if value not in ("yes", "no"):
        raise ValueError(f"{name} must be true or false")
    return value == "yes"
