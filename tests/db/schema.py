"""Databases at another revision than the last one."""

import asyncio
from functools import partial

import asyncpg
from alembic import command
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from guichet.bootstrap import database
from guichet.db.migrate import alembic_config
from guichet.settings import Settings


async def migrate_to(url: str, revision: str) -> None:
    """Brings the database to this revision."""
    if url.startswith("sqlite:"):
        await asyncio.to_thread(_migrate_sqlite, url, revision)
        return
    engine = create_async_engine(
        "postgresql+asyncpg://", poolclass=NullPool, connect_args={"async_creator_fn": partial(asyncpg.connect, url)}
    )
    try:
        async with engine.connect() as connection:
            await connection.run_sync(_migrate, revision)
    finally:
        await engine.dispose()


def _migrate_sqlite(url: str, revision: str) -> None:
    engine = create_engine(url, poolclass=NullPool)
    try:
        with engine.connect() as connection:
            _migrate(connection, revision)
    finally:
        engine.dispose()


def _migrate(connection: Connection, revision: str) -> None:
    config = alembic_config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
    connection.commit()


async def name_revision(settings: Settings, revision: str) -> None:
    """As a newer version of Guichet would have left it. The tables stay as they are."""
    db = database(settings)
    await db.open()
    try:
        await db.write(text("UPDATE alembic_version SET version_num = :revision"), revision=revision)
    finally:
        await db.close()
