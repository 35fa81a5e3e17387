"""Databases at another revision than the last one, and the next release's."""

import os
from pathlib import Path
from typing import Final

from alembic.config import Config
from sqlalchemy import text

from guichet.bootstrap import database
from guichet.db.migrate import MIGRATIONS, alembic_config
from guichet.settings import Settings

#: The migration of a next release, which exists in tests only.
NEXT_VERSIONS: Final = Path(__file__).parent / "next_versions"
NEXT_REVISION: Final = "v0034_admits_v0033"


def next_release() -> Config:
    """Alembic's settings of the next release: the migrations that there are, and one more."""
    config = alembic_config()
    config.set_main_option("version_locations", os.pathsep.join(map(str, (MIGRATIONS / "versions", NEXT_VERSIONS))))
    return config


async def name_revision(settings: Settings, revision: str) -> None:
    """As another version of Guichet would have left it. The tables stay as they are."""
    db = database(settings)
    await db.open()
    try:
        await db.write(text("UPDATE alembic_version SET version_num = :revision"), revision=revision)
    finally:
        await db.close()
