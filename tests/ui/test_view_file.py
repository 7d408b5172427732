"""A view as a file, drawn without a browser: tests/browser/test_view_file.py compares it with what a browser saves."""

import json
import re
from typing import Any

import pytest

from tests.pages.stage import StageManager
from tests.source import ROOT
from ui import background_jobs, export, session, view_file

HOSTILE = "</script><script>met = 1</script><!--<script> \"'&\u2028 שלום {} $&"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "manager", StageManager)
    monkeypatch.setattr(background_jobs, "GLANCE", 300.0)


def held(text: str) -> dict[str, Any]:
    found = re.search(r'id="gf-saved">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    saved: dict[str, Any] = json.loads(found[1])
    return saved


def test_it_has_figure_answer_words_facts_and_the_form_that_its_reader_expects() -> None:
    saved = held(view_file.file_of("attention?attention_view=heads&text=To%20be", "https://x.example/app/"))
    reader = (ROOT / "ui/assets/saved.js").read_text("utf-8").partition("@typedef {object} Saved")[2]
    form = re.findall(r"@property \{.*\} (\w+)", reader.partition("*/")[0])
    assert sorted(saved) == sorted(form)
    (part,) = saved["parts"]
    assert (part["module"], part["key"]) == ("pages/inside/attention/headgrid", "attention_grid")
    figure, answer = saved["blocks"]
    assert figure == {"part": 0} and answer["answer"] and "<strong>" in answer["html"]
    assert "#term" not in answer["html"] and len(saved["words"]) == 3
    assert saved["facts"]["Text"] == "To be" and saved["facts"]["Model"]
    assert saved["address"].startswith("https://x.example/app/attention?")
    assert ["Layer", "0"] in saved["settings"] or saved["settings"]


@pytest.mark.parametrize(
    "address, why",
    [
        ("nowhere?x=1", "no view has the address"),
        ("attention?attention_view=none", "has no view 'none': there are heads, steps"),
        ("courses", "this view of Courses has no figure to save"),
        ("attention?model=gpt9", "there is no model 'gpt9': there are shakespeare-classic"),
    ],
)
def test_an_address_without_a_figure_is_refused_in_a_sentence(address: str, why: str) -> None:
    with pytest.raises(view_file.ViewFileError, match=why):
        view_file.file_of(address)


def test_no_text_of_a_file_ends_the_element_that_holds_it() -> None:
    saved = {"title": HOSTILE}
    file = export.placed(export.page(()), saved)
    assert held(file) == saved and file.count("<script") == export.page(()).count("<script")


def test_an_address_may_be_copied_whole() -> None:
    entry, query = view_file.parsed("http://localhost:8501/attention?attention_view=heads&text=a%26b")
    assert (entry.url, query) == ("attention", {"attention_view": "heads", "text": "a&b"})
    assert view_file.parsed("http://localhost:8501")[0].url == ""


def test_where_no_server_runs_a_visitor_has_no_address() -> None:
    """Streamlit would be asked for it, when a view is drawn at another step."""
    assert session.address() == ""
