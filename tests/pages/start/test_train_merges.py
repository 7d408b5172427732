"""The tokens of a text of one's own: learned beside the page, with a bar and a way out."""

from __future__ import annotations

import random
import re
import threading
import time
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest

from engine import corpora
from engine.config import ModelConfig, TrainConfig
from engine.errors import RunError, TokenizerError
from engine.progress import finish
from engine.service.profiles import PROFILES, check
from engine.service.state import RunSpec
from engine.tokenizers import bpe, bpe_watch, bpe_work
from pages.input.tokens import shared
from tests.pages.start.training import opened, sentences
from ui import slow
from ui.site import ROOT

TEXT = "the quick brown fox jumps over the lazy dog, and the dog does not mind. " * 40


def test_the_page_draws_while_the_tokens_are_learned_and_lets_one_cancel(manager, monkeypatch) -> None:
    monkeypatch.setattr(slow, "GLANCE", 0.05)
    go_on, real = threading.Event(), bpe.learning

    def waits(*asked, **named):
        steps = real(*asked, **named)
        yield next(steps)
        go_on.wait(30)
        return (yield from steps)

    monkeypatch.setattr(bpe, "learning", waits)
    page = opened(data="paste", tokenizer="bpe:300")
    page.text_area(key="pasted").set_value(TEXT).run()
    assert not page.exception and page.button(key="train").disabled
    assert "have to be learned first" in sentences(page)
    (cancel,) = [b for b in page.button if b.label == "Cancel"]
    cancel.click()
    page.run()
    go_on.set()
    for thread in [t for t in threading.enumerate() if t.name == "measurement"]:
        thread.join(10)
    page.run()
    assert page.button(key="train").disabled and "stopped before the end" in sentences(page)
    (again,) = [b for b in page.button if b.label == "Measure again"]
    again.click()
    page.run()
    for thread in [t for t in threading.enumerate() if t.name == "measurement"]:
        thread.join(10)
    page.run()
    assert not page.exception and not page.button(key="train").disabled


HOSTED = PROFILES["hosted"]


def never_again(size: int, first: int = 0x10400) -> str:
    """`size` characters of random words, of letters of four bytes (Deseret): none comes twice."""
    chance = random.Random(1)
    letters = [chr(first + n) for n in range(26)]
    return "".join(" " + "".join(chance.choices(letters, k=9)) for _ in range(size // 10))


def test_the_work_is_what_the_words_that_differ_hold_times_the_rounds() -> None:
    assert [bpe_work.rounds(size) for size in (256, 512, 2048, 8192)] == [1, 2, 4, 6]
    text = never_again(2_000)
    words = 200 * (1 + 9 * 4)  # bytes
    bpe_work.check(text * 50, 512, 2 * words)
    with pytest.raises(TokenizerError, match=f"may have {words - 1:,} bytes") as refused:
        bpe_work.check(text * 50, 512, 2 * words - 1)
    told = int(re.search(r"first ([\d,]+) characters", str(refused.value))[1].replace(",", ""))
    assert 1_980 < told < 2_000
    bpe_work.check((text * 50)[:told], 512, 2 * words - 1)


def test_two_megabytes_of_words_that_never_come_again_are_refused_within_a_second() -> None:
    text = never_again(HOSTED.max_text)
    assert len(text) <= HOSTED.max_text and len(text.encode()) > 1.8e6
    begun = time.thread_time()
    with pytest.raises(TokenizerError, match="characters would fit"):
        finish(corpora.learning(text, "bpe:2048", HOSTED.max_merging))
    assert time.thread_time() - begun < 1
    with pytest.raises(RunError, match="characters would fit"):
        check(HOSTED, RunSpec(ModelConfig(), TrainConfig(tokenizer="bpe:2048"), "text", text))


@pytest.mark.parametrize("source", ["train", "compare", "watched"])
def test_the_heaviest_that_is_let_in_can_be_cancelled_and_others_are_answered(source: str) -> None:
    text = never_again(250_000, ord("a"))
    steps = {
        "train": partial(corpora.learning, text, "bpe:2048", HOSTED.max_merging),
        "compare": partial(shared._learning, text, HOSTED.max_merging),
        "watched": partial(bpe_watch.learning, text, 2_000),
    }[source]
    other = AppTest.from_file(str(ROOT / "pages/models/parameters/page.py"), default_timeout=60)
    for visited in (True, False):
        job = slow.Jobs().of((source,), steps)
        while not job.progress.done:
            assert not job.wait(0.01), "it is over before anybody can leave it"
        if visited:
            assert not other.run().exception and other.main.children
        begun = time.monotonic()
        job.cancel()
        assert job.wait(10) and time.monotonic() - begun < 5
    assert job.left


def test_the_tokens_page_refuses_it_with_a_sentence_and_no_trace(monkeypatch) -> None:
    monkeypatch.setenv("GLASSFORMER_PROFILE", "hosted")
    for view, box in (("compare", "compare_text"), ("cost", "compare_text")):
        page = AppTest.from_file(str(ROOT / "pages/input/tokens/page.py"), default_timeout=60)
        page.query_params.update({"tokens_view": view, "cost_corpus": "yours", "compare_corpus": "yours"})
        page.session_state[box] = never_again(HOSTED.max_watched)
        page.run()
        assert not page.exception
        assert any("characters would fit" in error.value for error in page.error), view


@pytest.mark.parametrize("kept", [False, True])
def test_prose_as_long_as_a_text_may_be_is_learned_from(kept: bool) -> None:
    profile = PROFILES["small" if kept else "hosted"]
    prose = (corpora.load("python").text * 9)[: profile.max_text]
    bpe_work.check(prose, profile.max_vocabulary, profile.max_merging)
    bpe_work.check(prose[: profile.max_watched], 8192, profile.max_merging)
