"""docs/adding-a-view.md: its view runs as it stands, and says what arithmetic of our own says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch

from engine import checkpoints
from engine.recording import record
from tests.pages.helpers import opened, unescaped
from tests.test_texts import test_every_section_is_asked_for_and_gets_its_fields as fits
from tests.test_texts import test_what_a_view_says_stands_in_its_text as says_nothing_itself
from ui.site import ROOT

PAGE = (ROOT / "docs" / "adding-a-view.md").read_text("utf-8")
TEXT, MODULE, ROOM = re.findall(r"^```(?:markdown|python)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.usefixtures("manager")
def test_the_view_of_the_docs_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "certainty.py").write_text(MODULE, "utf-8")
    (tmp_path / "certainty.md").write_text(TEXT, "utf-8")
    (tmp_path / "page.py").write_text(ROOM.replace("from pages.inside.attention import", "import"), "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    fits(tmp_path / "certainty.py")
    says_nothing_itself(tmp_path / "certainty.py")
    page = opened(
        str(tmp_path / "page.py"), model="shakespeare-classic", text="To be, or not to be", words="true"
    )
    monkeypatch.delitem(sys.modules, "certainty", raising=False)
    shipped = checkpoints.load(ROOT / "checkpoints" / "shakespeare-classic")
    ids = shipped.tokenizer.encode("To be, or not to be")
    logits = torch.as_tensor(record(shipped.model, ids)["logits"]).double()
    shares = (logits - logits.logsumexp(-1, keepdim=True)).exp().max(-1).values
    expected = f"first guess at {int((shares > 0.5).sum())} of {len(shares)} positions"
    assert f"**{shares.max():.1%}**" in unescaped(page) and expected in unescaped(page)
