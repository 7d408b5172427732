"""The tokens of a text of one's own: learned beside the page, with a bar and a way out."""

from __future__ import annotations

import threading

from engine import corpora
from engine.progress import Progress, finish
from engine.tokenizers import bpe
from tests.pages.start.training import opened, sentences
from ui import slow

TEXT = "the quick brown fox jumps over the lazy dog, and the dog does not mind. " * 40


def test_learning_in_steps_is_the_same_training_and_can_be_left() -> None:
    steps = corpora.learning(TEXT, "bpe:300")
    assert next(steps) == Progress(0, 300 - 256)
    steps.close()
    told = list(bpe.learning(TEXT, 300))
    assert [p.done for p in told] == sorted(p.done for p in told) and all(0 <= p.share <= 1 for p in told)
    assert len(told) > 4, "there is a chance to stop every few merges"
    cutter = finish(corpora.learning(TEXT, "bpe:300"))
    given, own = (corpora.from_text(TEXT, tokenizer="bpe:300", cutter=c) for c in (cutter, None))
    assert given.tokenizer == own.tokenizer and given.train.tolist() == own.train.tolist()
    assert given.tokenizer is cutter, "and nothing is learned twice"


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
    go_on.set()
    page.run()
    threads = [t for t in threading.enumerate() if t.name == "measurement"]
    for thread in threads:
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
