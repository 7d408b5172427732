"""`python -m benchmarks.soak --minutes 60 --sessions 20`: the lecture hall of benchmarks/load.py with what goes
wrong in an hour: tabs that are torn away, workers that are killed, trainings that end in NaN, and uploads, good
ones and others. Prints what the server holds before and after, when everybody has left and what they left has
been forgotten.

What is drawn is kept for the next who looks, each kind up to a number of entries. So that this does not count as
growth, the hall is there for `--warm` minutes first, and leaves, before what is held is counted. With `--drawn` the
server has drawn every view and scene before that, as one that is deployed has. A hosted server
forgets a run half an hour after the last look: `--forget 60` makes it a minute, for this server only.

The server's memory is read twice a minute: an hour should end within 5% of its tenth minute. `all MB` counts the
processes beside it too, and what several share once (Pss).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import secrets
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.load import GONE, Operator, Tally, attend, server, tour, warmed
from benchmarks.visitor import Broken, Visitor
from runs.profiles import PROFILES
from tests.runs.running import workers_of
from ui.server import EMPTY_SECONDS

KILL, TEAR, BREAK = (
    45.0,
    20.0,
    60.0,
)  # seconds between two workers killed, tabs torn away, trainings that break
UPLOAD = 15.0  # seconds between two uploads
PROSE = b"The quick brown fox jumps over the lazy dog, and the dog does not mind. "
# NaN at its second step (with a rate of 10 it only learns badly)
SPOILT = "steps=200&learning_rate=1000000&muon_learning_rate=1000000&grad_clip=0&warmup_steps=0"
DIVERGED = "the training diverged"  # engine.training.loop
READ = 30.0  # seconds between two readings of the memory
EARLY = 10  # the minute with which the last one is compared
SESSION = 180.0  # seconds: Streamlit keeps a torn one for two minutes
SLACK = {
    "workers": 0,
    "files": 2,
    "descriptors": 8,
    "threads": 4,
    "memory MB": 60,
}  # more than before, at most


def held(process: int, home: Path) -> dict[str, int]:
    """What a server holds: processes, files in its folder, descriptors, threads, resident MB that are its own
    (what is mapped from files, such as SmolLM2's weights, the system takes back when it needs it).
    """
    folder = Path(f"/proc/{process}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
    return {
        "workers": len(workers_of(process)),
        "files": sum(path.is_file() for path in home.rglob("*")),
        "descriptors": len(list((folder / "fd").iterdir())),
        "threads": int(status["Threads"]),
        "memory MB": int(status["RssAnon"].split()[0]) // 1024,
    }


def taken(process: int) -> int:
    """MB that a server and the processes which it began take together; what they share counts once."""
    whole, waiting = 0, [process]
    while waiting:
        number = waiting.pop()
        with suppress(OSError):
            lines = Path(f"/proc/{number}/smaps_rollup").read_text().splitlines()
            whole += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        waiting += workers_of(number)
    return whole // 1024


async def weigh(process: int, home: Path, until: float) -> list[tuple[int, int, int]]:
    """Reads the memory until then: (minute, MB of the server, MB of all its processes), each `READ` seconds."""
    begun, read = time.monotonic(), []
    while time.monotonic() < until:
        minute = int((time.monotonic() - begun) // 60) + 1
        read.append((minute, held(process, home)["memory MB"], await asyncio.to_thread(taken, process)))
        await asyncio.sleep(READ)
    return read


def course(read: Sequence[tuple[int, int, int]]) -> str:
    """The memory by minute, and the last minute beside the tenth."""
    minutes = sorted({minute for minute, *_ in read})
    server = {each: statistics.mean(mb for minute, mb, _ in read if minute == each) for each in minutes}
    lines = [f"minute {each:3}: {server[each]:6.0f} MB" for each in minutes if each % 5 == 0 or each == 1]
    early, last = min(EARLY, minutes[-1]), minutes[-1]
    lines.append(f"the last minute is {server[last] / server[early]:.3f} times minute {early}")
    return "\n".join([*lines, f"all processes at most {max(whole for *_, whole in read)} MB"])


def table(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Both, and what has grown beyond SLACK."""
    lines = [f"{'':12} {'before':>8} {'after':>8}"]
    for name, value in before.items():
        grown = "  grown" if after[name] > value + SLACK[name] else ""
        lines.append(f"{name:12} {value:8} {after[name]:8}{grown}")
    return "\n".join(lines)


async def tear(address: str, until: float, chance: random.Random) -> None:
    """Tabs that open a page and are gone without a word, some of them with a training."""
    while time.monotonic() < until:
        visitor = Visitor(address, chance.randrange(1 << 30), secrets.token_urlsafe(32))
        with suppress(Broken):
            await visitor.enter()
            await visitor.visit(chance.choice(("", "train", "attention")), "")
            if visitor.name == "train":
                await visitor.press("train")
            await visitor.look(chance.random() * 3)
        await visitor.leave(abruptly=True)
        await asyncio.sleep(TEAR * (0.5 + chance.random()))


async def kill(process: int, until: float, chance: random.Random) -> int:
    """Kills a worker now and then, the spare too. Returns how many."""
    killed = 0
    while time.monotonic() < until:
        await asyncio.sleep(min(KILL, max(0.0, until - time.monotonic())))
        if found := workers_of(process):
            with suppress(ProcessLookupError):
                os.kill(chance.choice(found), signal.SIGKILL)
                killed += 1
    return killed


async def spoil(address: str, until: float, operator: Operator) -> Counter[str]:
    """Trainings whose learning rate is far too large: how each of them went. Where others train, one waits for its
    place.
    """
    went: Counter[str] = Counter()
    while time.monotonic() < until:
        visitor = Visitor(address, 0, secrets.token_urlsafe(32))
        try:
            await visitor.enter()
            await visitor.visit("train", SPOILT)
            await visitor.press("train")
            went["started"] += 1
            went[await _spoilt(visitor, min(time.monotonic() + BREAK, until), operator)] += 1
            await visitor.look(min(BREAK / 4, max(0.0, until - time.monotonic())))
        except Broken as error:
            went[f"broken: {error}"[:90]] += 1
        await visitor.leave()
    return went


async def _spoilt(visitor: Visitor, until: float, operator: Operator) -> str:
    """What the page says of a training that cannot go well, and whether the server has it among the failed."""
    while time.monotonic() < until:
        await visitor.look(min(1.0, max(0.0, until - time.monotonic())))
        if any(DIVERGED in said for said in visitor.page.said):
            failed = operator.read()['glassformer_runs{state="failed"}']
            return "diverged" if failed else "diverged, and the server knows no failed run"
    return "still waited or trained"


async def upload(address: str, until: float, chance: random.Random) -> tuple[int, int]:
    """Texts of one's own, every second one of them of noise. Returns (how many were taken, how many of them were
    refused with a sentence).
    """
    taken = refused = 0
    while time.monotonic() < until:
        visitor = Visitor(address, chance.randrange(1 << 30), secrets.token_urlsafe(32))
        noise = taken % 2
        with suppress(Broken):
            await visitor.enter()
            await visitor.visit("train", "data=upload")
            await visitor.upload("mine.txt", chance.randbytes(200_000) if noise else PROSE * 4_000)
            taken += 1
            refused += any("not UTF-8" in said for said in visitor.page.said)
        await visitor.leave()
        await asyncio.sleep(min(UPLOAD * (0.5 + chance.random()), max(0.0, until - time.monotonic())))
    return taken, refused


async def soak(
    address: str,
    operator: Operator,
    process: int,
    sessions: int,
    seconds: float,
    settle: float,
    warm: float,
) -> bool:
    """The whole. Whether everything was given back, and nobody saw an error."""
    environment, tally = Path(f"/proc/{process}/environ").read_bytes().split(b"\0"), Tally()
    home = Path(next(each for each in environment if each.startswith(b"TMPDIR=")).decode()[7:])
    await tour(address, tally)  # what is kept for everybody, and for good
    until = time.monotonic() + warm
    await asyncio.gather(*(attend(address, 10_001 + seed, until, tally) for seed in range(sessions)))
    await _gone(operator, settle)
    await asyncio.sleep(GONE if warm else 10)
    before, until = held(process, home), time.monotonic() + seconds
    people = [attend(address, 1 + seed, until, tally) for seed in range(sessions)]
    chances = random.Random(1), random.Random(2), random.Random(3)
    done: list[Any] = await asyncio.gather(
        *people,
        tear(address, until, chances[0]),
        kill(process, until, chances[1]),
        spoil(address, until, operator),
        upload(address, until, chances[2]),
        weigh(process, home, until),
    )
    *_, killed, went, (uploads, refused), read = done
    print(tally.table())
    print(f"errors: {len(tally.errors)}", *tally.errors[:5], sep="\n  ")
    print(f"killed workers: {killed}; uploads: {uploads}, refused: {refused}")
    print("trainings that cannot go well: " + "; ".join(f"{how} {n}" for how, n in went.items()))
    print(course(read))
    print(f"when they had left:\n{table(before, held(process, home))}", flush=True)
    left = time.monotonic() + settle
    await _gone(operator, settle)
    while time.monotonic() < left and "grown" in table(before, held(process, home)):
        await asyncio.sleep(5)
    said = table(before, held(process, home))
    print(f"{settle - (left - time.monotonic()):.0f} s later:\n{said}")
    return not tally.errors and "grown" not in said and not went["started"] - went["diverged"]


async def _gone(operator: Operator, patience: float) -> None:
    """Returns when no tab is open."""
    until = time.monotonic() + patience
    while time.monotonic() < until and operator.read()["glassformer_sessions"]:
        await asyncio.sleep(2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--profile", default="hosted")
    parser.add_argument("--warm", type=float, default=5.0, help="minutes of the hall before it counts")
    parser.add_argument(
        "--drawn", action="store_true", help="wait until the server is warm (GLASSFORMER_WARM)"
    )
    parser.add_argument("--forget", type=float, help="seconds unwatched until a run is removed, here only")
    parser.add_argument(
        "--settle", type=float, help="seconds to wait at the end (first: until runs are forgotten)"
    )
    given = parser.parse_args()
    if given.drawn and not PROFILES[given.profile].measure_workers:
        parser.error(f"a server of `{given.profile}` is never warm: it has no process that measures")
    forget = PROFILES[given.profile].forget_seconds if given.forget is None else given.forget
    settle = max(forget + SESSION, 1.2 * EMPTY_SECONDS) if given.settle is None else given.settle
    times = given.minutes * 60, settle, given.warm * 60
    warmth = {"GLASSFORMER_WARM": "yes" if given.drawn else "no"}
    with server(given.profile, given.forget, warmth) as (address, operator, process):
        if given.drawn:
            asyncio.run(warmed(address))
        fine = asyncio.run(soak(address, operator, process, given.sessions, *times))
    sys.exit(not fine)


if __name__ == "__main__":
    main()
