"""Every screen as files, so that what stood there before a restructuring can be compared with what stands there after.

    python -m tests.screens write FOLDER [ROOM | ADDRESS ...] [--jobs 2]
    python -m tests.screens compare BEFORE AFTER

`write` opens every view, part and mode (of rooms such as attention, of addresses, or of all) at five addresses: as it opens, with all
folds open, with another model, at a step of a training or with another kind of model, and with its controls moved. What a
page sends is written to FOLDER, a file for each view: every element and payload, and the address. `compare` prints what
differs but for Markdown's escapes, and ends with 1 where anything does.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.models import REAL
from tests.pages import test_controls_act, test_walks
from tests.pages.browser_tab import Tab
from tests.pages.stage import StageManager
from ui import background_jobs, explain, page_frame, session, site
from ui.views import views

FOLDS = "&".join(f"{fold}=true" for fold in explain.FOLDS)
CLASSIC, MODERN = "shakespeare-classic", "shakespeare-modern"
OTHERS = ("model=timelapse&step=330", "model=pair-language", "model=encoder-blanks", "model=task-sort")
MODES = (  # second ones of views, which no list of theirs names
    "after?after_view=finetune&model=shakespeare-classic",
    "after?after_view=reward&reward_mode=preferences",
    "after?after_view=aloud&aloud_mode=attempts",
    "after?after_view=aloud&aloud_mode=addition",
    "after?after_view=context&context_size=1",
    *(["after?after_view=context&context_learner=words"] if REAL else []),
    "tasks?tasks_view=solve&task=modular",
    "shapes?shapes_view=backward&shapes_back=step",
    "parameters?parameters_scope=two",
    "families?families_view=why&families_why=unmasked",
    "exercises?exercises_on=paper",
    "generation?generation_view=cache&kv_part=bytes",
    "generation?generation_view=cache&kv_part=why",
    "generation?generation_view=cache&kv_part=smaller&cache_model=shown",
    "attention?attention_view=shared-keys&attention_sharing=published",
    "sampling?sampling_view=constrained&model=shakespeare-classic",
    "train?preset=modern",
    "train?preset=pairs",
    "courses",
    "?model=shakespeare-classic",
    "?part=attention",
)
MOVED = 6  # controls of a view that are moved, at the most
# What differs from one run of the same code to the next.
PASSING = re.compile(r"assets-[0-9a-f]{12}|\b[\d.,]+ (?:ms|s|seconds|µs)\b(?= |\.|,|\*|$)")


def places(rooms: list[str]) -> Iterator[str]:
    """The addresses of every view, part and mode, each once."""
    listed = (one.address(ask) for one in views() for ask in one.asks)
    for address in dict.fromkeys([*listed, *MODES]):
        if not rooms or any(room in (address.partition("?")[0], address) for room in rooms):
            yield address


def variants(place: str) -> Iterator[tuple[str, str]]:
    """(name, address) of the screens of a view, its controls where they stand."""
    joint = "&" if "?" in place else "?"
    yield "opens", place
    yield "folds", f"{place}{joint}{FOLDS}"
    if "model=" not in place:
        yield "another model", f"{place}{joint}model={MODERN}&{FOLDS}"
        other = random.Random(place).choice(OTHERS)
        yield "another kind", f"{place}{joint}{other}&measure=true"


def moved(place: str, offered: dict[str, list[Any]]) -> Tab:
    """The view with controls away from where they stood, the same every time."""
    chance = random.Random(place)
    tab = test_walks.still(Tab(place))
    names = [name for name, _ in test_walks.moves(tab, random.Random(place), offered)]
    keys = [name.partition(" = ")[0] for name in names if not name.startswith("subject_model")]
    for key in chance.sample(keys, min(MOVED, len(keys))):
        # a control that another one took away is not there any more
        for name, move in test_walks.moves(tab, random.Random(f"{place} {key}"), offered):
            if name.partition(" = ")[0] == key:
                move()
                test_walks.still(tab)
    return tab


def write(folder: Path, rooms: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    logging.disable(logging.WARNING)  # Streamlit's, of running without a browser
    offered: dict[str, list[Any]] = {}
    with pytest.MonkeyPatch.context() as patch:
        torch.set_num_threads(1)
        stage = StageManager()
        patch.setattr(session, "manager", lambda: stage)
        patch.setattr(background_jobs, "GLANCE", 60.0)
        patch.setattr(page_frame, "failed", _raised)
        test_controls_act.note_options(patch, offered)
        for place in places(rooms):
            began = time.monotonic()
            found = {name: _screen(lambda at=at: Tab(at)) for name, at in variants(place)}
            found["moved"] = _screen(lambda place=place: moved(place, offered))
            file = folder / (re.sub(r"\W+", "-", place or "home") + ".json")
            file.write_text(json.dumps(found, indent=1), "utf-8")
            elements = sum(map(len, found.values()))
            print(f"{place or 'home'}: {elements} elements, {time.monotonic() - began:.0f} s", flush=True)


def _raised(error: Exception) -> None:
    raise error


def _screen(opened: Callable[[], Tab]) -> dict[str, str]:
    try:
        return test_walks.still(opened()).screen()
    except Exception as error:
        return {"raised": f"{type(error).__name__}: {error}"}


def alike(text: str) -> str:
    r"""A text without Markdown's escapes, and without what no two runs have alike.

    >>> alike(r"\[a\] in 3.2 s")
    '[a] in ~'
    """
    text = re.sub(r"(?:\\\\|\\)([^\w\s\\])", r"\1", text).replace("\u2060", "").replace("\\u2060", "")
    return PASSING.sub("~", text)


def compare(before: Path, after: Path) -> int:
    """Prints what differs, and returns how many elements do."""
    differ = total = 0
    names = sorted({file.name for folder in (before, after) for file in folder.glob("*.json")})
    for name in names:
        one, other = (_read(folder / name) for folder in (before, after))
        for variant in dict.fromkeys([*one, *other]):
            here, there = one.get(variant, {}), other.get(variant, {})
            total += max(len(here), len(there))
            for element in dict.fromkeys([*here, *there]):
                old, new = (alike(screen.get(element, "nothing")) for screen in (here, there))
                if old != new:
                    differ += 1
                    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
                    cut = slice(max(0, at - 60), at + 200)
                    print(f"{name}, {variant}, {element}\n  - {old[cut]}\n  + {new[cut]}")
    print(f"{total} elements of {len(names)} views, {differ} differences")
    return differ


def _read(file: Path) -> dict[str, dict[str, str]]:
    return dict(json.loads(file.read_text("utf-8"))) if file.exists() else {}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("do", choices=("write", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("rest", nargs="*", help="rooms; or the other folder")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    if given.do == "compare":
        return min(1, compare(given.folder, Path(given.rest[0])))
    rooms = given.rest or [entry.url for entry in site.built()]
    if given.jobs == 1:
        write(given.folder, given.rest)
        return 0
    command = [sys.executable, "-m", "tests.screens", "write", str(given.folder)]
    shares = [[*command, *(room for room in rooms[n :: given.jobs])] for n in range(given.jobs)]
    return max(one.wait() for one in [subprocess.Popen(share) for share in shares])


if __name__ == "__main__":
    sys.exit(main())
