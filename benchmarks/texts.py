"""`python -m benchmarks.texts --profile small`: one address with 8 tabs, each of which opens every view with a long
text that nobody has read before, over and over. Prints what the server holds (its own memory in MB, without what is
mapped from files) as it goes, and what its processes hold beside it: docs/hosting.md promises the sums.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import secrets
import time
from pathlib import Path
from urllib.parse import quote, urlencode

from benchmarks.load import server
from benchmarks.soak import held
from benchmarks.visitor import Broken, Visitor
from tests.pages.rooms import views
from tests.runs.running import workers_of
from ui.site import built

TABS, LETTERS, EVERY = 8, 1_900, 15.0  # at once; of a text; seconds between two lines


async def read(address: str, seed: int, until: float) -> int:
    """One tab. Returns how many views it has opened."""
    chance, opened = random.Random(seed), 0
    visitor = Visitor(address, seed, secrets.token_urlsafe(32))
    await visitor.enter()
    places = [(entry.url, views(entry.url)) for entry in built()]
    while time.monotonic() < until:
        url, (key, ids) = chance.choice(places)
        query = {key: chance.choice(ids)} if ids else {}
        text = "".join(chance.choices("abcdefghij klmno prstuvw\n", k=LETTERS))
        try:
            await visitor.visit(url, urlencode(query | {"text": text}, quote_via=quote))
            await visitor.look(0.5)
            opened += 1
        except Broken:
            await visitor.leave()
            visitor = Visitor(address, seed, secrets.token_urlsafe(32))
            await visitor.enter()
    await visitor.leave()
    return opened


def resident(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    held = status.partition("VmRSS:")[2].split()  # empty for one that has ended
    return int(held[0]) // 1024 if held else 0


async def fill(address: str, process: int, seconds: float) -> int:
    """Returns the most that the server held, in MB."""
    begun, most = time.monotonic(), 0
    tabs = [asyncio.create_task(read(address, seed, begun + seconds)) for seed in range(TABS)]
    while not all(tab.done() for tab in tabs):
        own, whole = held(process, Path("/nowhere"))["memory MB"], resident(process)
        most = max(most, own)
        beside = sum(map(resident, workers_of(process)))
        print(
            f"{time.monotonic() - begun:5.0f} s {own:6} MB, {whole} with files, {beside} beside", flush=True
        )
        await asyncio.wait(tabs, timeout=EVERY)
    print(f"views opened: {sum(tab.result() for tab in tabs)}; the most: {most} MB")
    return most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", default="small")
    parser.add_argument("--seconds", type=float, default=240.0)
    given = parser.parse_args()
    with server(given.profile) as (address, _, process):
        asyncio.run(fill(address, process, given.seconds))


if __name__ == "__main__":
    main()
