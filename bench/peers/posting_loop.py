"""A bare aiohttp loop that posts webhook bodies: what sending alone costs.

python -m bench.peers.posting_loop URL COUNT AT_ONCE < body        prints seconds
"""

import asyncio
import sys
import time

import aiohttp
import uvloop


async def main(url: str, count: int, at_once: int, body: bytes) -> None:
    numbers = iter(range(count))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Guichet-Webhooks/1.0",
        "X-Service-Event": "payment.succeeded",
    }
    provider = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=provider) as session:

        async def post() -> None:
            for number in numbers:
                async with session.post(
                    url, data=body, headers={**headers, "X-Service-Delivery": str(number)}
                ) as answer:
                    assert answer.status == 200
                    await answer.read()

        started = time.perf_counter()
        await asyncio.gather(*(post() for _ in range(at_once)))
        print(time.perf_counter() - started)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.stdin.buffer.read()))
