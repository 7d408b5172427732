"""Merges of a long text leave the page's thread: a bar and a way out stand there
meanwhile, and the result is the one that a page without patience would have shown.
"""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.progress import Steps
from engine.tokenizers import apart
from pages.input.tokens import shared, watching
from tests.pages.helpers import opened
from ui import slow, state

pytestmark = pytest.mark.usefixtures("manager")


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """What is asked of another process, or of a model, goes on when the event is set."""
    go_on = threading.Event()

    def holding(real: Callable[..., Steps[Any]]) -> Callable[..., Steps[Any]]:
        def steps(*asked: Any, **named: Any) -> Steps[Any]:
            inner = real(*asked, **named)
            yield next(inner)
            go_on.wait(60)
            return (yield from inner)

        return steps

    monkeypatch.setattr(apart, "learning", holding(apart.learning))
    monkeypatch.setattr(watching, "apart", holding(apart.watching))
    for cached in (shared._trained, shared._smaller, watching._learned, state._corpus):
        cached.clear()  # type: ignore[attr-defined]
    monkeypatch.setattr(slow, "_server", slow.Jobs())
    monkeypatch.setattr(slow, "GLANCE", 0.05)
    yield go_on
    go_on.set()


def finished(page: AppTest, go_on: threading.Event, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    (cancel,) = [b for b in page.button if b.label == "Cancel"]
    assert not cancel.disabled
    go_on.set()
    monkeypatch.setattr(slow, "GLANCE", 60.0)
    page.run()
    assert not page.exception and "Cancel" not in [b.label for b in page.button]
    return page


def test_merges_of_a_long_text_are_watched_after_a_bar(held, monkeypatch) -> None:
    page = opened("input/tokens", bpe_from="python", bpe_new="30")
    assert not page.table, "nothing is drawn of merges that are not known"
    seen = finished(page, held, monkeypatch).table[0].value
    learned = watching._learned.__wrapped__(state.corpus("python").text, 30, "byte", "words")
    assert f"{learned.tokenizer.merges[-1].length:,}" in seen.loc["BPE", "tokens T"]


def test_a_corpus_is_trained_on_after_a_bar(held, monkeypatch) -> None:
    asked = {"data": "python", "tokenizer": "bpe:300"}
    page = opened("start/train", **asked)
    assert page.button(key="train").disabled
    assert not finished(page, held, monkeypatch).button(key="train").disabled
    cutter = slow.known(("merges", "python", "bpe:300"))
    assert state.corpus("python", "bpe:300").tokenizer is cutter, "and nothing is learned twice"
