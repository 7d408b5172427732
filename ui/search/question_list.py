"""Every question of the app on a page that prints well: by page, each with the address of its answer."""

from __future__ import annotations

from html import escape
from itertools import groupby

from ui.views import Listed, views

TITLE = "Questions that Glassformer answers"
_STYLE = """
body { font: 10.5pt/1.35 Georgia, 'Times New Roman', serif; color: #111; background: #fff; }
body { max-width: 18cm; margin: 1cm auto; padding: 0 .6cm; }
h1 { font-size: 17pt; margin: 0; } h2 { font-size: 12pt; margin: .5cm 0 .1cm; break-after: avoid; }
p { margin: .1cm 0; } ol { margin: 0; padding: 0; list-style: none; } a { color: inherit; }
li { break-inside: avoid; margin: 0 0 .12cm; }
small { display: block; font: 8.5pt/1.5 ui-monospace, monospace; color: #444; overflow-wrap: anywhere; }
@media print, (min-width: 640px) { li { display: grid; grid-template-columns: 1fr 1fr; gap: .4cm; } }
@media print { body { margin: 0; max-width: none; padding: 0; } a { text-decoration: none; } }
@page { size: A4; margin: 1.6cm; }
"""


def question_list(root: str) -> str:
    """Returns the list as an HTML page without scripts; `root` is the address of the app."""
    pages = {entry: _rows(list(listed)) for entry, listed in groupby(views(), lambda view: view.entry)}
    sections = "".join(
        f"<section><h2>{escape(entry.title)}</h2><ol>{''.join(map(_item, rows.items()))}</ol></section>"
        for entry, rows in pages.items()
    )
    count = sum(map(len, pages.values()))
    about = f"{count} questions on {len(pages)} pages. Addresses begin with {root}/"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{TITLE}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>{TITLE}</h1><p>{escape(about)}</p>{sections}</body></html>"
    )


def _rows(listed: list[Listed]) -> dict[str, str]:
    """Question -> address, each once."""
    rows: dict[str, str] = {}
    for view in listed:
        for ask in view.asks:
            rows.setdefault(ask.question, view.address(ask))
    return rows


def _item(row: tuple[str, str]) -> str:
    question, address = map(escape, row)
    return f'<li><a href="./{address}">{question}</a><small>{address}</small></li>'
