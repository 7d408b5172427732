"""What can be read on a page: its elements, its components' arguments and its figures, for scene_claims.py."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.json_format import MessageToDict
from streamlit.testing.v1 import AppTest

from tests.pages.start.scene_claims import claims, plain_numbers, stem

LARGEST_TABLE = 60  # rows: a longer column has any number in it
LONGEST_LABEL = 24  # characters of a token or an option
LONGEST_TEXT = 20_000
TABLES = {"arrow_data_frame", "arrow_table", "table", "dataframe"}
UNSEEN = {"id", "help", "url", "elementId", "formId", "key", "palette", "addresses", "css", "js"}


@dataclass
class Screen:
    """`counts` say of a word which numbers of it there are; `shapes` are of tensors, `sizes` those of their
    axes; `values` are in the tables of figures.
    """

    texts: list[str] = field(default_factory=list)
    counts: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    shapes: set[tuple[int, ...]] = field(default_factory=set)
    sizes: set[int] = field(default_factory=set)
    values: list[float] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " | ".join(self.texts)


def read(page: AppTest, drawn: Mapping[str, Any]) -> Screen:
    """Reads all that a page shows; `drawn` are its figures."""
    screen = Screen()
    for node in nodes(page._tree):
        _element(screen, node)
    for figure in drawn.values():
        _figure(screen, figure)
    _particular(screen, [str(box.key) for box in page.selectbox], drawn)
    for text in screen.texts:
        for _, claim in claims(plain_numbers(text)):
            if claim.value.is_integer() and not claim.percent:
                for word in claim.words:
                    screen.counts[word].add(int(claim.value))
    return screen


def nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in getattr(node, "children", {}).values():
        yield from nodes(child)


def _element(screen: Screen, node: Any) -> None:
    proto = getattr(node, "proto", None)
    if not hasattr(proto, "DESCRIPTOR"):
        return
    if node.type in TABLES:
        _table(screen, node.value)
    elif node.type == "selectbox":  # closed, it shows one of its options
        screen.texts += [node.label, str(node.options[node.index]) if node.index is not None else ""]
    else:
        found = MessageToDict(proto, preserving_proto_field_name=True)
        if isinstance(found.get("options"), list):  # a row of buttons: story_step has its steps
            what = str(getattr(node, "key", None) or "").rpartition("_")[2]
            screen.counts[stem(what)].add(len(found["options"]))
        _collect(screen, found, "")


def _collect(screen: Screen, value: Any, name: str) -> None:
    """Adds texts, whole numbers with their names, lists by their lengths, and shapes."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in UNSEEN:
                _collect(screen, _unpacked(inner) if key == "json" else inner, key)
    elif isinstance(value, list):
        _list(screen, value, name)
    elif isinstance(value, str):
        if not re.fullmatch(r"[A-Za-z0-9+/=]{60,}", value) and value[:1] != "<" and len(value) < LONGEST_TEXT:
            screen.texts.append(value)
    elif isinstance(value, float) and not value.is_integer():
        screen.texts.append(f"{name} {value:g}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        screen.counts[stem(name)].add(int(value))


def _unpacked(text: str) -> Any:
    return json.loads(text) if text[:1] in {"{", "["} else {}


def _list(screen: Screen, values: list[Any], name: str) -> None:
    screen.counts[stem(name)].add(len(values))
    if values and all(_is_axis(value) for value in values):
        screen.shapes.add(tuple(size for _, size in values))
        for axis, size in values:
            screen.counts[stem(axis)].add(size)
            screen.sizes.add(size)
    elif values and all(isinstance(value, str) and len(value) <= LONGEST_LABEL for value in values):
        screen.texts += [" | ".join(values), "".join(values)]
    elif not all(isinstance(value, int | float) for value in values):
        for value in values:
            _collect(screen, value, name)


def _is_axis(value: Any) -> bool:
    """True for the name of an axis and its size."""
    return isinstance(value, list) and [type(one) for one in value] == [str, int]


def _table(screen: Screen, table: Any) -> None:
    if table is not None and len(table) <= LARGEST_TABLE:
        screen.texts.append(table.to_csv(sep="|"))
        screen.counts["row"].add(len(table))


def _figure(screen: Screen, figure: Any) -> None:
    screen.texts.append(figure.alt)
    screen.texts += [_tagless(one.get("text", "")) for one in figure.layout.get("annotations", ())]
    for trace in figure.traces:
        texts = trace.get("text")
        screen.texts += [str(trace.get("name") or "")]
        screen.texts += (
            [str(one) for one in texts] if isinstance(texts, list) and len(texts) <= LARGEST_TABLE else []
        )
    for name, axis in figure.layout.items():
        if "axis" in name and isinstance(axis, dict):
            labels = [_tagless(one) for one in axis.get("ticktext", ())]
            screen.texts += [str((axis.get("title") or {}).get("text", "")), *labels, "".join(labels)]
    _columns(screen, figure.table or {})


def _columns(screen: Screen, table: Mapping[str, list[Any]]) -> None:
    """Counts a column's different words (rungs, runs, schemes), and columns of one kind (temperature_0.2)."""
    kinds = [name.partition("_")[0] for name in table]
    for kind in kinds:
        screen.counts[stem(kind)].add(kinds.count(kind))
    for name, column in table.items():
        words = list(dict.fromkeys(one for one in column if isinstance(one, str)))
        if words:
            screen.counts[stem(name)].add(len(words))
        if len(column) <= LARGEST_TABLE:
            screen.texts += words
            screen.values += [float(one) for one in column if isinstance(one, int | float) and one == one]


def _particular(screen: Screen, controls: Iterable[str], drawn: Iterable[str]) -> None:
    """Counts what only one page has."""
    choices = [key for key in controls if key.startswith("families_") and key != "families_size"]
    screen.counts["choice"].add(len(choices))
    for word in ("architecture", "family"):
        screen.counts[word].add(sum(key.startswith(("families_drawn_", "families_masks_")) for key in drawn))


def _tagless(text: object) -> str:
    return re.sub(r"<[^>]+>", " ", str(text)).strip()
