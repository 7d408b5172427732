"""What the styles may hold: no rule for which the browser looks at a whole page anew each time that a node comes or goes."""

import re
from collections.abc import Iterator

from tests.source import ROOT, name

STYLES = sorted(path for folder in ("ui", "pages") for path in (ROOT / folder).rglob("*.css"))


def split(selector: str, at: str) -> list[str]:
    """Splits where `at` matches outside of brackets.

    >>> split("a:is(b, c) > d, e", ","), split("a:is(b, c) > d", r"[\\s>+~]+")
    (['a:is(b, c) > d', ' e'], ['a:is(b, c)', 'd'])
    """
    parts, depth, begun = [], 0, 0
    for found in re.finditer(rf"[(\[]|[)\]]|{at}", selector):
        if found[0] in "([":
            depth += 1
        elif found[0] in ")]":
            depth -= 1
        elif not depth:
            parts.append(selector[begun : found.start()])
            begun = found.end()
    return [*parts, selector[begun:]]


def selectors(css: str) -> Iterator[str]:
    """Yields each selector of a style sheet, those below @media too."""
    for rule in re.findall(r"[^{};]+(?=\{)", re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)):
        if not rule.strip().startswith("@"):
            yield from (one.strip() for one in split(rule, ","))


def said(compound: str) -> bool:
    """True if it names a class, an id or an element, so that the browser need not look at every node for it.

    >>> said(".a:first-child"), said("h2"), said(":is(.a, b)"), said(":is(.a, :not(.b))"), said("[data-testid=a]")
    (True, True, True, False, False)
    """
    inner = re.match(r":is\((.*)\)", compound)
    if inner:
        return all(said(one.strip()) for one in split(inner[1], ","))
    return bool(re.search(r"^[a-z]|[.#][\w-]", re.sub(r":[\w-]+\(.*\)|\[[^]]*\]", "", compound)))


def test_what_a_rule_with_has_is_about_has_a_name() -> None:
    """Else a browser computes the style of every node of the page at each node that comes or goes (Chromium: 6 ms, of
    1,300 nodes); a scrub has ten such moments.
    """
    seen, wrong = 0, []
    for path in STYLES:
        for selector in selectors(path.read_text("utf-8")):
            seen += ":has(" in selector
            *before, last = split(selector, r"[\s>+~]+")
            if any(":has(" in compound for compound in before) and not said(last):
                wrong.append(f"{name(path)}: {selector}")
    assert seen > 20 and not wrong, "\n".join(wrong)
