"""The endpoint written the usual way: FastAPI, SQLAlchemy's async ORM session, one commit a request.

BENCH_KEY=… BENCH_DATABASE=sqlite:///… python -m bench.peers.usual PORT      (aiosqlite, synchronous=FULL)
BENCH_KEY=… BENCH_DATABASE=postgresql://… python -m bench.peers.usual PORT   (asyncpg)
"""

import os
import sys
from collections.abc import AsyncIterator
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, Header, HTTPException
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase

from bench.peers.common import Answer, Body, known, rendered, row_of
from guichet.db.tables import payments

URL = os.environ["BENCH_DATABASE"]
ASYNC_URL = URL.replace("sqlite:", "sqlite+aiosqlite:").replace("postgresql:", "postgresql+asyncpg:")
OPTIONS: dict[str, Any] = {"connect_args": {"timeout": 30}} if URL.startswith("sqlite") else {"pool_size": 16}
engine = create_async_engine(ASYNC_URL, **OPTIONS)
Session = async_sessionmaker(engine, expire_on_commit=False)


class Base(DeclarativeBase):
    pass


class Payment(Base):
    __table__ = payments
    __mapper_args__ = {"exclude_properties": ["metadata"]}


if URL.startswith("sqlite"):

    @event.listens_for(engine.sync_engine, "connect")
    def _durable(connection: Any, _: Any) -> None:
        cursor = connection.cursor()
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "busy_timeout = 30000"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()


async def session() -> AsyncIterator[AsyncSession]:
    async with Session() as opened:
        yield opened


async def caller(authorization: Annotated[str | None, Header()] = None) -> None:
    if not known(authorization):
        raise HTTPException(401)


async def create_payment(body: Body, db: Annotated[AsyncSession, Depends(session)]) -> Any:
    try:
        row, mode = row_of(body)
    except ValueError as error:
        raise HTTPException(422, str(error)) from None
    row.pop("metadata")
    payment = Payment(**row)
    db.add(payment)
    await db.commit()
    payment_id: int = payment.id  # type: ignore[attr-defined]
    return {"success": True, "data": rendered(payment_id, {**row, "metadata": None}, mode)}


app = FastAPI()
app.add_api_route(
    "/v1/payments",
    create_payment,
    methods=["POST"],
    status_code=201,
    response_model=Answer,
    dependencies=[Depends(caller)],
)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
