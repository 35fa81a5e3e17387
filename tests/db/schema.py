"""Databases at another revision than the last one, and the next release's."""

import os
from pathlib import Path
from typing import Final

from alembic.config import Config
from sqlalchemy import text

from guichet.bootstrap import database
from guichet.db.migrate import MIGRATIONS, alembic_config
from guichet.db.schema import REQUIRED_REVISION, parse_revision
from guichet.settings import Settings

_OWN: Final = parse_revision(REQUIRED_REVISION).number
NEXT_REVISION: Final = f"v{_OWN + 1:04}_admits_v{_OWN:04}"
#: What a next release might add: tests upgrade to it and go back.
NEXT_MIGRATION: Final = f"""
import sqlalchemy as sa
from alembic import op

revision = "{NEXT_REVISION}"
down_revision = "{REQUIRED_REVISION}"


def upgrade() -> None:
    op.create_table(
        "nicknames",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("nickname", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_nicknames"),
    )
    op.add_column("merchants", sa.Column("nickname_id", sa.Integer()))
    op.add_column("payments", sa.Column("nicknamed", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index("ix_merchants_nickname_id", "merchants", ["nickname_id"], unique=True)
"""


def next_release(folder: Path) -> Config:
    """Alembic's settings of the next release, whose one migration more is written to `folder`."""
    (folder / "next_release.py").write_text(NEXT_MIGRATION)
    config = alembic_config()
    config.set_main_option("version_locations", os.pathsep.join((str(MIGRATIONS / "versions"), str(folder))))
    return config


async def name_revision(settings: Settings, revision: str) -> None:
    """As another version of Guichet would have left it. The tables stay as they are."""
    db = database(settings)
    await db.open()
    try:
        await db.write(text("UPDATE alembic_version SET version_num = :revision"), revision=revision)
    finally:
        await db.close()
