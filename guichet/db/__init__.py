"""Database access on one page: how a feature reads, writes, and waits in a queue.

A feature has a `repository.py` (or a file named by what it stores) with its SQL. A statement is a module constant in
SQLAlchemy Core, written once for both databases; a function gives it its parameters and makes objects of its rows::

    _FIND: Final = select(disputes).where(disputes.c.merchant_id == bindparam("merchant"), ...)

    async def find(db: Reader, merchant_id: MerchantId, reference: str) -> Dispute | None:
        return await db.one_as(Dispute, _FIND, merchant=merchant_id, reference=reference)

A function takes the least that it needs (`engine.py`):

- `Reader`: `one`, `one_as`, `all`; a `Database` or a `Transaction`, which also reads its own writes.
- `Writer`: `write` and `write_as` (the first row that comes back), `write_all` (all rows), `write_many` (one statement
  for many rows). On a `Database`, each of these is a transaction by itself.
- `Transaction`: several statements, all or none. The block `async with db.transaction() as tx:` awaits nothing but
  `tx`: a call to the network would keep its locks, and on SQLite every other writer, for as long as the network takes.
  Its `write_rows` is `write_many` of rows whose values stand in order.
- `Database`: both, and `scan` for reads that may take long. `write_grouped` and `find_grouped`: what many tasks do at
  the same time, each for a row of its own, shares a statement.

When a write returns, it is durable: on disk, and on the synchronous standby if there is one.

**Conflicts.** What two requests may do at the same time is decided by the statement and not by a read before it: an
INSERT that says ON CONFLICT DO NOTHING (`upsert`), an UPDATE with the expected state in its WHERE. No row comes back
when somebody else was first; the repository returns None, and the feature turns that into its error or reads what the
other one wrote. So a conflict breaks no transaction, and a write may be repeated when its answer was lost
(`lost_answers.py`). Named constraints stand behind that (`tables/`: `uq_payments_external_id`, `ck_refunds_amount`). If
one refuses a row all the same, that is a bug: `errors.ConstraintViolated` has its name, the same for both databases.
`errors.py` draws all errors.

**Queues.** Work that waits is a row with a status and a due time in its feature's table: it survives a crash, and is
written in the transaction that causes it. `queues/` claims due rows, so that one slow provider (`work_queue.py`) or
merchant (`fair_queue.py`) delays nobody else; a claim is a lease, after which the row is due again::

    QUEUE: Final = WorkQueue(refunds, "next_poll_at", "provider_account", lambda row: Refund(*row))

The table needs `columns.queue_indexes`, and the worker a loop (`worker/queue_loop.py`, `TableJobs`).

Where things are:

- `tables/`: every table; `migrations/` makes the same ones (held by a test), `migrate.py` runs them, and `schema.py`
  says whether this code may run on a database.
- `sqlite/`: one writer that commits in groups; readers never wait for it. `postgres/`: pools that wait while the server
  restarts, and the finder of the primary. Each has `database.py`, `statements.py`, `errors.py`; they and the migrations
  alone know a driver. `statement_cache.py` makes a text of a statement, `sql_functions.py` holds what many statements
  share and what the two write differently.
- `lists/`: a page of a long list, and its exact total, at the same cost however long it is.
- `batching.py` lets items that come at the same time or within a moment share a transaction; `read_cache.py` keeps for
  a second what every request reads; `worker_leases.py` lets one process do what all could; `write_probe.py` tells
  `/readyz` whether writes work; `references.py` makes references that rise with time.
"""
