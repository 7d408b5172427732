"""Links that nobody would write, the same every time: no page answers with a trace, or a fault of ours."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from ui.site import ROOT, built

LINKS = 3  # of each page: more of them with other seeds is how faults are looked for by hand
ODD = (
    "", "-1", "0", "1e400", "nan", "9" * 400, "99999999", "-5", "0.5", "1e-300", "true", "None", "null", "[]",
    "../../etc/passwd", "<script>alert(1)</script>", "'; drop table runs", "%00", "\u202e\u0000", "💥" * 50,
    "ä" * 3000, "classic", "fast", "run:abc", "pretrained:../../x", "task:copy", "9,9", "1.1", "a_b_c",
)  # fmt: skip
KEYS = re.compile(r'(?:key=|from_url\(|query_params\.get\(|numbers?\(|one_of\([^)]*?)"([a-z_]{2,30})"')
ALWAYS = ("model", "text", "run", "step", "race")


def names(folder: Path) -> list[str]:
    """Of what the code of a page reads from its address."""
    return sorted({name for path in folder.rglob("*.py") for name in KEYS.findall(path.read_text())})


def views(folder: Path) -> dict[str, list[str]]:
    """The views of a page by the name that chooses among them."""
    code = (folder / "page.py").read_text()
    key = re.search(r'Page\(\s*"[^"]*",\s*"([a-z_]+)"', code)
    return {key[1]: re.findall(r'View\(\s*"([a-z_]+)"', code)} if key else {}


def link(folder: Path, n: int) -> dict[str, str]:
    """One of its views, and odd values for what it reads."""
    chance = random.Random(f"{folder.relative_to(ROOT)} {n}")
    found = names(folder)
    odd = chance.sample(found, min(12, len(found))) + chance.sample(ALWAYS, 2)
    shown = {key: chance.choice(ids) for key, ids in views(folder).items() if ids}
    return {name: chance.choice(ODD) for name in odd} | shown


def test_names_and_views_are_found() -> None:
    attention = ROOT / "pages" / "inside" / "attention"
    assert "heads" in next(iter(views(attention).values())) and len(names(attention)) > 5


@pytest.mark.parametrize("file", [entry.path for entry in built()])
def test_no_link_leads_to_a_trace(file: str) -> None:
    for n in range(LINKS):
        asked = link((ROOT / file).parent, n)
        page = AppTest.from_file(str(ROOT / file), default_timeout=120)
        page.query_params.update(asked)
        page.run()
        assert not page.exception, (asked, page.exception[0].message)
        faults = [error.value for error in page.error if "the fault is ours" in error.value]
        assert not faults, asked
        shown = " ".join(str(one.value) for one in (*page.error, *page.warning, *page.info, *page.markdown))
        assert str(ROOT) not in shown and "Traceback" not in shown, asked
