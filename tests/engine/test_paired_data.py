"""Texts of pairs, and who speaks: by seed, apart, and counted by other means."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from engine.config import ModelConfig
from engine.corpora import Corpus
from engine.errors import CorpusError
from engine.paired import Labelled, LabelledText
from engine.paired_data import LONGEST, SHORTEST, majority, pair_text, speakers, speeches
from engine.tasks.paired import PAIR_TASKS
from engine.tokenizers.paired import PairTokenizer


@pytest.mark.parametrize("name", PAIR_TASKS)
def test_a_tasks_pairs_as_a_text(name: str) -> None:
    text, task = pair_text(name, 400, 40), PAIR_TASKS[name]
    assert (len(text.train), len(text.validation)) == (400, 40)
    assert text.tokenizer.by == task.by and text.title == task.title
    for pair in text.validation:
        assert task.answer(pair.source).target == pair.target
        ids = text.tokenizer.encode(pair.target)
        assert text.tokenizer.decode(ids) == pair.target  # as the task writes it, blanks and all
    config = text.fitted(ModelConfig(d_model=16, n_heads=2, n_layers=1)).validate()
    assert config.decoder.vocab_size == text.vocab_size
    assert pair_text(name, 400, 40, seed=1).train != text.train


def test_no_task_of_that_name() -> None:
    with pytest.raises(CorpusError, match="there are dates, language"):
        pair_text("latin")


def test_the_share_of_the_most_frequent() -> None:
    tokenizer = PairTokenizer.train(["abcdefg"])
    texts = [Labelled(text, label) for text, label in zip("abcdefg", "xxyxyyy", strict=True)]
    text = LabelledText("t", "T", tokenizer, ("x", "y"), tuple(texts[:3]), tuple(texts[3:]))
    assert majority(text) == 0.25  # x, of three; and one of four that are held out


def test_speeches() -> None:
    text = "First Citizen:\nBefore we go,\nhear me.\n\nAll:\nSpeak: speak.\n\nROMEO:\nAy me!\n"
    assert speeches(text) == [
        ("First Citizen", "Before we go,\nhear me."),
        ("All", "Speak: speak."),
        ("ROMEO", "Ay me!"),
    ]


def test_lines_of_shakespeare_and_who_says_them(shakespeare: Corpus) -> None:
    found, raw = speakers(), shakespeare.text
    text = found.text
    assert len(text.labels) == 8 and "GLOUCESTER" in text.labels
    said: dict[str, list[str]] = {}
    who, before = "", ""
    for line in raw.split("\n"):  # a name stands after an empty line
        if line.endswith(":") and not before:
            who = line[:-1]
        else:
            said.setdefault(who, []).append(line)
        before = line
    counts = Counter(
        {who: sum(SHORTEST <= len(line) <= LONGEST for line in lines) for who, lines in said.items()}
    )
    assert list(text.labels) == [who for who, _ in counts.most_common(8)]
    assert len(text.train) + len(text.validation) <= sum(counts[who] for who in text.labels)
    assert len(text.train) + len(text.validation) >= 0.99 * sum(counts[who] for who in text.labels)
    assert (
        0.15 < len(text.validation) / (len(text.train) + len(text.validation)) < 0.25
    )  # a fifth of speeches
    for one in text.validation[::7]:
        assert one.text in said[one.label]
        assert not re.match(r"[A-Z ]+:$", one.text)
    most = Counter(one.label for one in text.validation)[text.labels[0]]
    assert found.majority == most / len(text.validation)


def test_whole_speeches_are_held_out(shakespeare: Corpus) -> None:
    text = speakers().text
    held = {one.text for one in text.validation}
    mixed = 0
    for who, said in speeches(shakespeare.text):
        lines = [line for line in said.split("\n") if SHORTEST <= len(line) <= LONGEST]
        if who in text.labels and len(lines) > 1:
            mixed += len({line in held for line in lines}) > 1
    assert mixed < 10  # a line that is said twice in the plays
    assert not held & {one.text for one in text.train}
