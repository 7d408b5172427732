"""The views of a page, read from its source."""

import ast
from functools import cache
from pathlib import Path

from ui import site


@cache
def views(url: str) -> tuple[str, tuple[str, ...]]:
    """(the key of a page's views in its address, their ids as they stand there), read from its page.py."""
    entry = next(entry for entry in site.ENTRIES if entry.url == url)
    tree = ast.parse((Path(site.ROOT) / entry.path).read_text("utf-8"))
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    constants = {
        target.id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    named = {"Page": ("key", 1), "choose_view": ("key", 1), "View": ("id", 0)}
    found: dict[str, list[str]] = {name: [] for name in named}
    for call in calls:
        name = call.func.id  # type: ignore[attr-defined]
        if name in named:
            argument, place = named[name]
            by_name = {keyword.arg: keyword.value for keyword in call.keywords}
            value = by_name.get(argument) or call.args[place]
            found[name].append(
                constants[value.id] if isinstance(value, ast.Name) else ast.literal_eval(value)
            )
    return (found["Page"] + found["choose_view"] + [""])[0], tuple(found["View"])
