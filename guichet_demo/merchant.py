"""The first demo merchant, which is empty: its keys are kept in `demo.json` in the data folder."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from guichet.back_office.merchants import create_merchant
from guichet.context import AppContext
from guichet.db import demonstration
from guichet.db.errors import ConstraintViolated
from guichet.domain.ids import MerchantId
from guichet.domain.merchants import ENVS, Environment
from guichet.merchants import api_keys
from guichet.merchants.api_keys import key_env, key_hash, new_key
from guichet.private_files import make_private_folder
from guichet.settings import SettingsError
from guichet.webhooks import endpoints

NAME: Final = "Boutique Démo"


@dataclass(frozen=True, slots=True)
class Demo:
    """The demo merchant: its keys by environment, and its webhook endpoint of the test environment."""

    merchant_id: MerchantId
    keys: dict[Environment, str]
    webhook_url: str | None
    webhook_secret: str
    name: str = NAME


class _File(msgspec.Struct):
    """`demo.json`."""

    merchant: str
    keys: dict[Environment, str]


async def demo_merchant(ctx: AppContext) -> Demo:
    """The demo merchant, created on the first call.

    The database holds only hashes of its keys, so the keys are kept in `demo.json` in the data folder. A database that
    does not have them yet gets the same keys.
    """
    await demonstration.mark(ctx.db)
    file = ctx.settings.home / "demo.json"
    keys = _read_keys(file) or _write_keys(file, {env: new_key(env) for env in ENVS})
    merchant_id = await _owner(ctx, keys)
    if merchant_id is None:
        try:
            merchant_id = (await create_merchant(ctx, NAME, keys=keys))[0].id
        except ConstraintViolated:  # A key was revoked: make new ones.
            keys = _write_keys(file, {env: new_key(env) for env in ENVS})
            merchant_id = (await create_merchant(ctx, NAME, keys=keys))[0].id
    endpoint = await endpoints.read(ctx.db, ctx.vault, merchant_id, "test")
    return Demo(merchant_id, keys, endpoint.url, endpoint.secret)


async def _owner(ctx: AppContext, keys: dict[Environment, str]) -> MerchantId | None:
    """The id of the merchant that all these keys belong to, if they all work."""
    callers = [await api_keys.caller_by_hash(ctx.db, key_hash(key)) for key in keys.values()]
    owners = {caller[0].merchant.id for caller in callers if caller}
    return owners.pop() if all(callers) and len(owners) == 1 else None


def _read_keys(file: Path) -> dict[Environment, str] | None:
    if not file.exists():
        return None
    try:
        keys = msgspec.json.decode(file.read_bytes(), type=_File).keys
    except msgspec.DecodeError:
        keys = {}
    if {env: key_env(key) for env, key in keys.items()} != {env: env for env in ENVS}:
        raise SettingsError(f"{file} is damaged: delete it, and a new demo merchant is made.")
    return keys


def _write_keys(file: Path, keys: dict[Environment, str]) -> dict[Environment, str]:
    """Writes the file atomically, readable by its owner only."""
    make_private_folder(file.parent)
    draft = file.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(msgspec.json.format(msgspec.json.encode(_File(NAME, keys))) + b"\n")
    draft.replace(file)
    return keys
