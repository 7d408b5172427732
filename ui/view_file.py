"""A view as a file, without a browser: its page is drawn here, and what a browser would be sent goes into the
file that the button *HTML* saves. There ui/assets/saving.js collects it from the screen; this, from
Streamlit's messages.

    begin()  # once in a process that does nothing else
    text = file_of("attention?attention_view=heads")
"""

from __future__ import annotations

import html
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import torch
from streamlit.testing.v1 import AppTest

from engine.errors import GlassformerError
from studies.exercises.sheet import block, inline
from ui import background_jobs, export, frames, models, session, site, views
from ui.operate import patches
from ui.players import component, served
from ui.text.markdown import plain
from ui.training_step import NEWEST

APP = "http://localhost:8501"  # where a copy that was started here is
PATIENCE = 900  # seconds for a view and for what it measures, however busy the machine
ALERTS = ("info", "warning", "error", "success")
TOLD = (
    "markdown",
    "caption",
    "progress",
    *ALERTS,
)  # of these a file knows whether they are the answer, or small
ROWS = 200  # of a table that a page scrolls through
FILE = "file"  # of a view drawn here, in place of a browser's name
_ANCHOR = re.compile(r"\[([^\]]*)\]\(#[^)]*\)")  # links within the page, which the file has not
_LINK = re.compile(r'<a href="#[^"]*">(.*?)</a>')  # the same as HTML
_TAG = re.compile(r"<[^>]*>")
# What a control of Streamlit shows.
_VALUES: Mapping[str, Callable[[Any], str]] = {
    "button_group": lambda it: ", ".join(map(_words, it.formatted_values)),
    "selectbox": lambda it: "" if it.index is None else _words(it.options[it.index]),
    "number_input": lambda it: _number(it.proto.format, it.value),
    "text_input": lambda it: it.value or "",
    "text_area": lambda it: it.value or "",
    "slider": lambda it: " to ".join(_number(it.proto.format, each) for each in _each(it.value)),
    "select_slider": lambda it: " to ".join(_words(str(it.format_func(each))) for each in _each(it.value)),
    "checkbox": lambda it: "on" if it.value else "off",
    "toggle": lambda it: "on" if it.value else "off",
}

# The words of the page, as HTML.
_MARKUP: Mapping[str, Callable[[Any], str]] = {
    **dict.fromkeys(("markdown", "caption", *ALERTS), lambda it: _markup(it.value)),
    "progress": lambda it: _markup(it.proto.text),
    "metric": lambda it: f"<p>{_markup(it.label)} {html.escape(it.value)}</p>",
    "code": lambda it: f"<pre>{html.escape(it.value)}</pre>",
    "table": lambda it: _table(it.value),
    "dataframe": lambda it: _grid(it.value, any(it.value.index.names)),
}


class ViewFileError(GlassformerError):
    """An address at which no view is, or one without a figure."""


def begin() -> None:
    """Has this process draw views and nothing else: each waits for what it measures."""
    torch.set_num_threads(1)  # as the server does
    logging.disable(logging.WARNING)  # Streamlit misses a browser
    background_jobs.GLANCE = PATIENCE
    patches.install([row for row in patches.TABLE if row.name == patches.FRAMES])


def file_of(address: str, app: str = APP) -> str:
    """Returns the file of the view at an address, such as attention?attention_view=heads. `app` is the
    address of the app that its link to the live view leads to. Raises ViewFileError.
    """
    entry, query = parsed(address)
    return of_page(entry, drawn(entry, query), app)


def parsed(address: str) -> tuple[site.Entry, dict[str, str]]:
    """Returns the page at an address, with or without the app's own before it, and the query. Raises
    ViewFileError.
    """
    parts = urlsplit(address)
    url, query = parts.path.strip("/"), dict(parse_qsl(parts.query, keep_blank_values=True))
    entry = next((entry for entry in site.built() if entry.url == url), None)
    if entry is None:
        raise ViewFileError(
            f"no view has the address {address!r}; one that there is: attention?attention_view=heads"
        )
    page = views.page_of(entry)
    there = [view.id for view in page.views]
    if (name := query.get(page.key, there[0])) not in there:
        raise ViewFileError(f"{page.title} has no view {name!r}: there are {', '.join(there)}")
    view, model = page.views[there.index(name)], query.get("model", "")
    if model and view.needs_model and view.choose is None and type(models.source_of(model)) is models.Source:
        raise ViewFileError(f"there is no model {model!r}: there are {', '.join(models.offered())}")
    return entry, query


def drawn(entry: site.Entry, query: Mapping[str, str]) -> AppTest:
    """Draws a page. Raises ViewFileError with what it could not do."""
    page = AppTest.from_file(str(site.ROOT / entry.path), default_timeout=PATIENCE)
    page.session_state["owner"] = FILE
    for name, value in query.items():
        page.query_params[name] = value
    page.run()
    if page.exception:
        raise ViewFileError(f"{entry.title} could not be drawn: {page.exception[0].value}")
    return page


def of_page(entry: site.Entry, page: AppTest, app: str = APP) -> str:
    """Returns the file of a page that has been drawn. Raises ViewFileError where it shows no figure."""
    saved = gathered(entry, page, app)
    return export.placed(export.page(export.components(saved)), saved)


def gathered(entry: site.Entry, page: AppTest, app: str = APP) -> dict[str, Any]:
    """Returns what a file holds of a page that has been drawn, as ui/assets/saved.js reads it."""
    seen = _Seen()
    seen.walk(page.main)
    if not seen.parts:
        why = "".join(f": {_words(each.value)}" for each in [*page.error, *page.info][:1])
        raise ViewFileError(f"this view of {entry.title} has no figure to save{why}")
    saved = export.saved({}, {})
    if export.OFFER in page.session_state:
        offer = page.session_state[export.OFFER]
        saved = export.saved(offer.words, offer.facts)
    saved["facts"]["Model"] = saved["facts"].get("Model") or _bar(page)
    address = (
        f"{app.rstrip('/')}/{entry.url}" + ("?" * bool(page.query_params)) + urlencode(page.query_params)
    )
    return saved | {
        "parts": seen.parts,
        "blocks": seen.blocks,
        "frames": _frames(page, seen),
        "title": _words(page.header[0].value if page.header else entry.title),
        "address": address,
        "date": datetime.now(UTC).date().isoformat(),
        "page": _words(page.title[0].value) if page.title else entry.title,
        "settings": seen.settings,
    }


def _bar(page: AppTest) -> str:
    """Returns what the button says that opens the bar of the model."""
    bars = (node for node in page.main if node.type == "popover" and node.key == "subject_bar")
    return next((_words(node.proto.popover.label) for node in bars), "")


class _Seen:
    """Figures, words and settings of a page, in its order."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Any]] = []
        self.blocks: list[dict[str, Any]] = []
        self.settings: list[tuple[str, str]] = []
        self.training: dict[str, Any] = {}  # what the scrubber was sent

    def walk(self, node: Any, answer: bool = False) -> None:
        """Takes a part of the page, and what is in it."""
        key = getattr(node, "key", None) or ""
        if key in _rules()["ASIDE"] or node.type == "popover":
            return
        if node.type == "bidi_component":
            self._component(node.proto, key)
        elif node.type in _VALUES:
            self.settings.append((_words(node.proto.label), _VALUES[node.type](node)))
        elif node.type in _MARKUP:
            kind = {"small": node.type == "caption", "answer": answer} if node.type in TOLD else {}
            self._say(_MARKUP[node.type](node), **kind)
        elif node.type != "expander" or node.proto.expanded:
            if node.type == "expander":
                self._say(f"<h2>{html.escape(_words(node.label))}</h2>")
            for child in getattr(node, "children", {}).values():
                self.walk(child, answer or key == "answer")

    def _say(self, markup: str, **kind: bool) -> None:
        if markup:
            self.blocks.append({"html": markup, **kind})

    def _component(self, proto: Any, key: str) -> None:
        name = proto.component_name.removeprefix(component.PREFIX)
        sent = proto.bytes.decode() if proto.WhichOneof("data") == "bytes" else json.loads(proto.json)
        if name == "scrubber":
            self.training = sent
        elif isinstance(sent, dict) and (sent.get("course") or {}).get("on"):
            self.training = sent["course"]  # Home's map has its scrubber in it
        if name in _rules()["CONTROLS"] or not sent:
            return
        self.blocks.append({"part": len(self.parts)})
        self.parts.append(
            {"module": served.path_of(name), "key": key, "isolated": proto.isolate_styles, "data": sent}
        )


def _frames(page: AppTest, seen: _Seen) -> dict[str, Any] | None:
    """Returns the figures at the other steps of the training, as many as the file has room for; None without
    a training. Where more than figures differs, it is the step that is shown alone.
    """
    steps = seen.training.get("steps", ())
    if len(steps) < 2:
        return None
    shown = seen.training["shown"]
    at = next((i for i, step in enumerate(steps) if step >= shown != NEWEST), len(steps) - 1)
    there = {part["key"]: part["data"] for part in seen.parts}
    size = len(json.dumps(seen.parts, ensure_ascii=False, separators=(",", ":")))
    said = "".join(block["html"] for block in seen.blocks if block.get("answer"))
    pictures = {at: (there, said)}
    if seen.training.get("frames"):
        wanted = evenly(len(steps), _rules()["MOST"] // size, at)
        pictures = dict(_pictures(page.session_state[frames.FRAME], steps, wanted, pictures))
    return {
        "steps": [steps[i] for i in pictures],
        "losses": [seen.training["losses"][i] for i in pictures],
        "marks": seen.training.get("marks") or [],
        "at": list(pictures).index(at),
        "pictures": [figures for figures, _ in pictures.values()],
        "answers": [answer for _, answer in pictures.values()],
        "all": len(steps),
    }


def _pictures(
    frame: frames.Frame, steps: list[int], wanted: list[int], known: Mapping[int, Any]
) -> Iterator[tuple[int, Any]]:
    """Yields (index of a step, (figures by their keys, the answer)), but for a step at which more than these
    differs.
    """
    keys = next(iter(known.values()))[0]
    for i in wanted:
        if i in known:
            yield i, known[i]
            continue
        try:
            sent = frame.at(NEWEST if i == len(steps) - 1 else steps[i])
        except frames.PageNeededError:
            continue
        if sent["whole"]:
            answer = _LINK.sub(r"\1", sent["answer"]).strip()
            yield i, ({key: sent["parts"][key] for key in keys}, answer)


def evenly(count: int, most: int, at: int) -> list[int]:
    """Returns the places of `most` among so many, as saving_state.js chooses them.

    >>> evenly(36, 4, 7)
    [0, 7, 12, 23, 35]
    """
    many = max(3, min(most, count))
    return sorted(
        i for i in {at, *(int(i * (count - 1) / (many - 1) + 0.5) for i in range(many))} if i < count
    )


@cache
def _rules() -> Mapping[str, Any]:
    """Returns what saving_state.js says in the form that JSON has, too, by its names."""
    text = (served.ASSETS / "saving_state.js").read_text("utf-8")
    said = re.findall(r"^export const ([A-Z]+) = (\[.*?\]|\d+)", text, re.MULTILINE)
    return {name: json.loads(value) for name, value in said}


def _markup(markdown: str) -> str:
    """Returns Markdown of the app as HTML, without links within the page."""
    return block(_ANCHOR.sub(r"\1", plain(markdown))).strip()


def _words(markdown: str) -> str:
    """Returns Markdown of the app as plain text."""
    return html.unescape(_TAG.sub("", inline(_ANCHOR.sub(r"\1", plain(markdown))))).strip()


def _number(form: str, value: Any) -> str:
    return form % value if form and "%" in form else str(value)


def _each(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


def _grid(rows: Any, indexed: bool) -> str:
    """Returns a table (a data frame) through which a page scrolls, as HTML: its first ROWS, numbers short."""
    shown = rows.head(ROWS).reset_index() if indexed else rows.head(ROWS)
    lines = [
        "".join(
            f"<td>{html.escape(f'{value:.6g}' if isinstance(value, float) else str(value))}</td>"
            for value in row
        )
        for row in shown.itertuples(index=False)
    ]
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in shown.columns)
    left = len(rows) - len(shown)
    more = f"<p>{left} more rows of this table: in the live view.</p>" if left else ""
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in (head, *lines))}</table>{more}"


def _table(rows: Any) -> str:
    """Returns a table (a data frame) as HTML, its index before the columns."""
    head = "".join(f"<th>{inline(str(name))}</th>" for name in ("", *rows.columns))
    body = "".join(
        "<tr>" + "".join(f"<td>{inline(str(value))}</td>" for value in row) + "</tr>"
        for row in rows.itertuples()
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def save(address: str, target: Path) -> None:
    """Writes the file of the view at an address, in a process of its own; where the address is whole, its
    link to the live view leads there. Raises ViewFileError.
    """
    if not target.parent.is_dir():
        raise ViewFileError(f"there is no folder {target.parent}")
    begin()
    try:
        parts = urlsplit(address)
        app = f"{parts.scheme}://{parts.netloc}" if parts.netloc else APP
        target.write_text(file_of(address, app), "utf-8")
    finally:
        background_jobs.leave_all()
        session.close_manager()
