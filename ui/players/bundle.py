"""The browser's modules of some components as one script, for a file that is opened without a server.

    script(("plot", "headgrid"))  # draws what the page's own modules draw

Browsers import no modules from a disk. So each becomes a function, after those that it imports: all of them
write `import { a, b as c } from "./file.js"`, and `export` before a declaration, which a test holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from posixpath import dirname, join, normpath

from ui.players.served import ROOT, path_of

BEGIN = "ui/assets/saved"  # the module that draws what a saved file holds
# Instead of the module that fetches the others, which a single file has no use for.
STUBS = {"ui/assets/load": "export const counted = (work) => work"}
# A saved file has the address of the view for its own, and no history: browsers refuse one to a file.
FRAME = """\
"use strict"
const saved = JSON.parse(document.getElementById("gf-saved").textContent)
;((location, history, History) => {{
{modules}
{begin}.begin(saved, {{ {components} }})
}})(new URL(saved.address), {{ replaceState() {{}} }}, {{ prototype: {{ replaceState() {{}} }} }})
"""
_IMPORT = re.compile(r'^import \{ (.+?) \} from "(.+?)\.js"$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function |const |class )", re.MULTILINE)
_FORGOTTEN = re.compile(r"^(?:import|export)\b", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*(?://[^\n]*\n|/\*\*.*?\*/\n)", re.MULTILINE | re.DOTALL)
_ENDS = re.compile(r"<(?=/script|!--)", re.IGNORECASE)


def script(names: Iterable[str]) -> str:
    """Returns the script of the components with these names. Raises KeyError for a name that is none."""
    entries = {name: path_of(name) for name in sorted(names)}
    order: list[str] = []
    for path in (BEGIN, *entries.values()):
        _collect(path, order, ())
    exports: dict[str, set[str]] = {path: set() for path in order}
    exports[BEGIN].add("begin")
    for path in order:
        for words, file in _IMPORT.findall(_source(path)):
            exports[normpath(join(dirname(path), file))] |= {
                name.split(" as ")[0] for name in words.split(", ")
            }
    number = {path: f"m{i}" for i, path in enumerate(order)}
    modules = "\n".join(_module(path, number, sorted(exports[path])) for path in order)
    components = ", ".join(f'"{name}": {number[path]}.component' for name, path in sorted(entries.items()))
    whole = FRAME.format(modules=modules, begin=number[BEGIN], components=components)
    return _ENDS.sub(r"<\\", whole)  # in a text of JavaScript the same


def _collect(path: str, order: list[str], within: tuple[str, ...]) -> None:
    """Appends a module to `order`, after those that it imports. Raises ValueError where they import it."""
    if path in within:
        raise ValueError(f"modules import each other: {' > '.join((*within, path))}")
    if path in order:
        return
    for _, file in _IMPORT.findall(_source(path)):
        _collect(normpath(join(dirname(path), file)), order, (*within, path))
    order.append(path)


def _module(path: str, number: dict[str, str], exports: list[str]) -> str:
    """Returns a module as a constant that holds what others use of it."""

    def imported(found: re.Match[str]) -> str:
        names = found[1].replace(" as ", ": ")
        return f"const {{ {names} }} = {number[normpath(join(dirname(path), found[2]))]}"

    text = _COMMENT.sub("", _source(path))
    text = _EXPORT.sub("", _IMPORT.sub(imported, text))
    if "export default " in text:
        text = text.replace("export default ", "const component_ = ", 1)
        exports = [*exports, "component: component_"]
    if _FORGOTTEN.search(text):
        raise ValueError(f"{path}.js imports or exports in another way than the others")
    text = text.replace("import.meta.url", "location.href")
    return f"const {number[path]} = (() => {{ // {path}.js\n{text}\nreturn {{ {', '.join(exports)} }}\n}})()"


@cache
def _source(path: str) -> str:
    return STUBS[path] if path in STUBS else (ROOT / f"{path}.js").read_text("utf-8")
