"""Texts of pairs, and who speaks: by seed, apart, and counted by other means."""

from __future__ import annotations

import re
from collections import Counter

from engine.config import ModelConfig
from engine.corpora import Corpus
from engine.paired import Labelled, LabelledText
from engine.paired_data import SHORTEST, frequent_right, pair_text, speakers, speeches
from engine.tasks.paired import PAIR_TASKS
from engine.tokenizers.paired import PairTokenizer
from tests.engine.cases import for_each


@for_each("name", PAIR_TASKS)
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


def test_the_share_of_the_most_frequent() -> None:
    tokenizer = PairTokenizer.train(["abcdefg"])
    texts = [Labelled(text, label) for text, label in zip("abcdefg", "xxyxyyy", strict=True)]
    text = LabelledText("t", "T", tokenizer, ("x", "y"), tuple(texts[:3]), tuple(texts[3:]))
    assert frequent_right(text) == [True, False, False, False]  # x, of three


def test_speeches() -> None:
    text = "First Citizen:\nBefore we go,\nhear me.\n\nAll:\nSpeak: speak.\n\nROMEO:\nAy me!\n"
    assert speeches(text) == [
        ("First Citizen", "Before we go,\nhear me."),
        ("All", "Speak: speak."),
        ("ROMEO", "Ay me!"),
    ]


def spoken_lines(raw: str) -> list[tuple[str, list[str]]]:
    """(who, the lines) of each speech, read line by line."""
    found: list[tuple[str, list[str]]] = []
    before = ""
    for line in raw.strip().split("\n"):  # a name stands after an empty line
        if line.endswith(":") and not before:
            found.append((line[:-1], []))
        elif line:
            found[-1][1].append(line)
        before = line
    return found


def test_stretches_of_shakespeare_and_who_says_them(shakespeare: Corpus) -> None:
    found = speakers()
    text = found.text
    said = spoken_lines(shakespeare.text)
    counts = Counter({who: sum(len(lines) for name, lines in said if name == who) for who, _ in said})
    assert list(text.labels) == [who for who, _ in counts.most_common(8)] and "GLOUCESTER" in text.labels
    assert text.pooling == "mean" and text.fitted(ModelConfig()).pooling == "mean"
    whole = {who: [" ".join(lines) for name, lines in said if name == who] for who in text.labels}
    for one in text.validation[::7]:
        (speech,) = [s for s in whole[one.label] if one.text in s][:1]
        assert not re.match(r"[A-Z ]+:", one.text) and len(one.text) >= SHORTEST and speech
    assert set(found.lines) == {1, 2, 4, 8} and len(found.lines) == len(text.validation)
    most = Counter(one.label for one in text.validation)[text.labels[0]]
    assert found.majority == most / len(text.validation)


def test_whole_speeches_are_held_out(shakespeare: Corpus) -> None:
    """Of every speech either nothing is learned from or nothing is held out, but for lines said twice."""
    found = speakers()
    learned, held = {one.text for one in found.text.train}, {one.text for one in found.text.validation}
    assert not learned & held
    there = {1: 0, 2: 0, 4: 0, 8: 0}
    mixed = 0
    for who, lines in spoken_lines(shakespeare.text):
        if who not in found.text.labels:
            continue
        apart = {size: lines_of(lines, size, size) for size in there}
        near = {size: lines_of(lines, size, step) for size, step in ((1, 1), (2, 1), (4, 2), (8, 4))}
        is_held = sum(one in held for one in apart[1]) > len(apart[1]) / 2
        for size in there:
            if is_held:
                there[size] += len(apart[size])
                mixed += sum(one not in held for one in apart[size])
                mixed += sum(one in learned for one in near[size])
            else:
                mixed += sum(one not in learned and one not in held for one in near[size])
    assert mixed < 10
    for size, count in there.items():
        assert 0 <= count - found.lines.count(size) < 10


def lines_of(lines: list[str], size: int, step: int) -> list[str]:
    found = [" ".join(lines[i : i + size]) for i in range(0, len(lines), step) if i + size <= len(lines)]
    return [one for one in found if len(one) >= SHORTEST]
