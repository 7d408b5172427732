"""The figures of the site, which work without a server: of each view the file that the app saves, without
what its page of the site says anyway. All of them share one copy of Plotly's library.
"""

from __future__ import annotations

import html
import shutil
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from streamlit.testing.v1 import AppTest

from docs.site.facts import WORK, Facts
from ui import export, view_file
from ui.models import FIRST_MODEL, LAPSES, REAL_MODEL, title_of
from ui.page_frame import Listed
from ui.players import served
from ui.session import published

LIVE = "live"  # the folder, in WORK and on the site
HIDDEN = "header, h1, footer, .gf-words { display: none !important; } main { padding: 0; max-width: none; }"
LINES = {  # that Home reads here, by the model
    FIRST_MODEL: (
        "ROMEO:\nO, she d",
        "To be, or not t",
        "KING RICHARD:\n",
        "My lord, the k",
        "the moon and th",
    ),
    REAL_MODEL: (
        "The capital of France is",
        "The keys to the old cabinet",
        "When Mary and John went to the store, John gave a drink to",
        "Once upon a time there was a",
        "the moon and the moon and the",
    ),
}
LAPSE = next(iter(LAPSES))  # a recorded run with its snapshots


class Choice(NamedTuple):
    """One of several figures in the place of a view's: its title, what it belongs to, and its address."""

    title: str
    of: str
    address: str


CHOICES: Mapping[str, tuple[Choice, ...]] = {
    "home/living": tuple(
        Choice(line.replace("\n", "⏎"), title_of(model), f"?{urlencode({'model': model, 'text': line})}")
        for model, lines in LINES.items()
        for line in lines
    ),
    "train/train": tuple(
        Choice(
            title, f"{title_of(LAPSE)}, at each snapshot", f"{address}{'&' if address else '?'}model={LAPSE}"
        )
        for title, address in (
            ("A Transformer, with the lid off", ""),
            ("Attention of every head", "attention?attention_view=heads"),
            ("Logit lens", "residual?residual_view=lens"),
            ("Norms along the residual stream", "residual?residual_view=norms"),
        )
    ),
}


def save(view: Facts, listed: Listed, page: AppTest, app: str, folder: Path = WORK) -> bool:
    """Saves the figure of a view that has been drawn, and those of its choices; returns False where it has
    none. `app` is the address of the app.
    """
    (folder / LIVE).mkdir(parents=True, exist_ok=True)
    library = folder / LIVE / served.library()
    if not library.exists():
        shutil.copyfile(served.library_path(), library)
    if view.name in CHOICES:
        for path, choice in _choices(view.name, folder):
            if REAL_MODEL not in choice.address or published():
                _write(path, view_file.gathered(*_drawn(choice.address), app), answered=True)
        return True
    try:
        saved = view_file.gathered(listed.entry, page, app)
    except view_file.ViewFileError:
        return False
    _write(_path(view.name, folder), saved, answered=False)
    return True


def _drawn(address: str) -> tuple[Any, AppTest]:
    entry, query = view_file.parsed(address)
    return entry, view_file.drawn(entry, query)


def _write(path: Path, saved: Mapping[str, Any], *, answered: bool) -> None:
    """Writes a file with the figures, what stands between them, and the answer or not."""
    blocks = [block for block in saved["blocks"] if answered or not block.get("answer")]
    page = export.page(export.components(saved), f"../{served.library()}")
    page = page.replace("</style>", f"{HIDDEN}</style>", 1)
    path.parent.mkdir(exist_ok=True)
    path.write_text(export.placed(page, {**saved, "blocks": blocks, "words": {}, "facts": {}}), "utf-8")


def _path(name: str, folder: Path) -> Path:
    return folder / LIVE / f"{name}.html"


def _choices(name: str, folder: Path) -> Iterator[tuple[Path, Choice]]:
    for i, choice in enumerate(CHOICES[name]):
        yield _path(f"{name}-{i}", folder), choice


def figure(view: Facts, up: str, folder: Path = WORK, *, moves: bool = False) -> str:
    """Returns the working figure of a view as HTML, nothing where none was saved; `up` leads to the start
    of the site. One that `moves` shows its parts in turn.
    """
    if view.name not in CHOICES:
        path = _path(view.name, folder)
        return _frame(view, path, up, folder, moves) if path.is_file() else ""
    there = [(path, choice) for path, choice in _choices(view.name, folder) if path.is_file()]
    if not there:
        return ""
    groups = [
        f'<optgroup label="{html.escape(of)}">'
        + "".join(
            f'<option value="{_link(path, up, folder)}">{html.escape(choice.title)}</option>'
            for path, choice in some
        )
        + "</optgroup>"
        for of, some in groupby(there, key=lambda each: each[1].of)
    ]
    choose = f'<p class="live-choice"><label>Show <select>{"".join(groups)}</select></label></p>'
    return choose + _frame(view, there[0][0], up, folder, moves)


def _frame(view: Facts, path: Path, up: str, folder: Path, moves: bool) -> str:
    return (
        f'<iframe class="live" src="{_link(path, up, folder)}" title="{html.escape(view.question)}"'
        f' loading="lazy"{" data-moves" * moves}></iframe>'
    )


def _link(path: Path, up: str, folder: Path) -> str:
    return up + path.relative_to(folder).as_posix()
