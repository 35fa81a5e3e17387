"""Which functions of which files run on the way of a payment, of a refund and of a provider's callback.

    .venv/bin/python -m bench.ways            prints each way as markdown
    .venv/bin/python -m bench.ways --write    writes them into docs/architecture.md, between their markers

Each way is gone twice over HTTP, on SQLite. The first time fills caches and opens connections; the second is recorded
by a profiling hook. Functions are counted, not modules' bodies, comprehensions, lambdas or generated methods. The
worker's loops turn when the way needs them; timers and housekeeping, which belong to no payment, are left out.
"""
