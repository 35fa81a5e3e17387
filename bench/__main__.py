"""The bench.

python -m bench                         every measure, side by side, into bench/results.md (`make bench`)
python -m bench --seconds 4 --rounds 1   the same in less time
python -m bench --requests 50            every measure with fifty requests that must be answered right; writes nothing
python -m bench flat [--most 10000000]  what each read and write costs as the payments grow
python -m bench seed N --database URL   only loads N payments; prints the merchant's key
python -m bench exports N --database URL  loads N payments (more than 10 000), then exports them
python -m bench production              only the production layout, printed (needs nginx and PgBouncer)
"""

import argparse
import asyncio
import tempfile
from pathlib import Path

import uvloop

from bench import flat_report, report, seed, servers
from bench.measures import exports


def main() -> None:
    arguments = _parser().parse_args()
    if arguments.what == "seed":
        uvloop.run(_seed(arguments.count, arguments.database))
    elif arguments.what == "exports":
        uvloop.run(_exports(arguments.count, arguments.database))
    elif arguments.what == "flat":
        sizes = [n for n in (10_000, 100_000, 1_000_000, 10_000_000) if n <= arguments.most]
        work = flat_report.growing(
            sizes, arguments.rounds, sqlite=arguments.only != "postgresql", postgresql=arguments.only != "sqlite"
        )
        asyncio.run(work)
    else:
        effort = report.Effort(arguments.seconds, arguments.rounds, arguments.lives, arguments.queued, arguments.many)
        parts = [report.production_rows] if arguments.what == "production" else report.PARTS
        requests: int | None = arguments.requests
        asyncio.run(report.quick(requests, parts) if requests else report.everything(effort, parts))


async def _seed(count: int, url: str) -> None:
    with tempfile.TemporaryDirectory() as home:
        merchant = await seed.seed(servers.settings_for(Path(home), url), count)
    print(f"merchant {merchant.id}, test key {merchant.key}")


async def _exports(count: int, url: str) -> None:
    with tempfile.TemporaryDirectory() as home:
        settings = servers.settings_for(Path(home), url)
        merchant = await seed.seed(settings, count)
        print(exports.table(await exports.measure(settings, merchant.id)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    usual = report.Effort()
    parser.add_argument("--seconds", type=float, default=usual.seconds, help="of one run")
    parser.add_argument("--rounds", type=int, default=usual.rounds, help="runs of each")
    parser.add_argument(
        "--lives", type=int, default=usual.lives, help="payments of a run that are settled and told as fast as possible"
    )
    parser.add_argument("--queued", type=int, default=usual.queued, help="webhooks queued")
    parser.add_argument("--many", type=int, default=usual.many, help="payments before the memory is read again")
    parser.add_argument("--requests", type=int, help="of each measure, without the peers in FastAPI and Node")
    parts = parser.add_subparsers(dest="what")
    seeding = parts.add_parser("seed")
    seeding.add_argument("count", type=int)
    seeding.add_argument("--database", required=True, help="postgresql://… or sqlite:///… of an empty database")
    exporting = parts.add_parser("exports")
    exporting.add_argument("count", type=int)
    exporting.add_argument("--database", required=True, help="postgresql://… or sqlite:///… of an empty database")
    parts.add_parser("production")
    growing = parts.add_parser("flat")
    growing.add_argument("--most", type=int, default=10_000_000)
    growing.add_argument("--rounds", type=int, default=3, help="runs of each")
    growing.add_argument("--only", choices=("sqlite", "postgresql"))
    return parser


if __name__ == "__main__":
    main()
