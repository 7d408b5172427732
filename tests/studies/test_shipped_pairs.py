"""The command that makes the shipped encoder-decoders and the classifier, on small recipes; and its measures."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.config import ModelConfig, TrainConfig
from engine.data.corpora import from_text
from engine.data.corpus import Corpus
from engine.model import build
from engine.presets import Preset
from engine.training.batches import Batches, guessed_right
from studies.experiments import shipped_pairs
from studies.families.classifier import counting_right, labelled_right, share
from studies.pairs.checkpoints import load_labels, load_pair
from studies.pairs.corpora import SHORTEST, Speakers, frequent_right, pair_text, speakers, speeches
from studies.pairs.dataset import Labelled, LabelledText
from studies.pairs.paired import PAIR_TASKS
from studies.pairs.tokenizer import PairTokenizer
from studies.pairs.train import exact
from tests.engine.cases import for_each

SMALL = ModelConfig(d_model=16, n_layers=1, n_heads=2)
SHORT = TrainConfig(steps=4, batch_size=4, eval_every=2, snapshot_every=2, eval_tokens=0, warmup_steps=1)
LINES = LabelledText(
    "t",
    "T",
    PairTokenizer.train(["abcd"]),
    ("x", "y"),
    tuple(Labelled(text, "xy"[i % 2]) for i, text in enumerate(["a", "b", "ab", "ba", "abc", "cba"])),
    (Labelled("cab", "x"), Labelled("bac", "y"), Labelled("c", "y")),
)


def test_a_pair_is_trained_measured_and_written(tmp_path: Path) -> None:
    text = pair_text("reverse", 60, 20)
    metrics = shipped_pairs.pretrain_pairs(text, Preset("", "", SMALL, SHORT), tmp_path)
    found = load_pair(tmp_path / "paired" / "reverse")
    assert found.metrics == metrics and metrics["step"] == 4
    assert TrainConfig.from_dict(metrics["train"]) == SHORT
    assert [point["step"] for point in metrics["curve"]] == [0, 2, 4]
    right = exact(found.model, text.rows["validation"])
    assert metrics["exact"] == sum(right) / 20
    assert torch.tensor(metrics["alignment"]["heads"]).shape == (1, 2)


def test_a_classifier_is_that_of_the_last_step(tmp_path: Path) -> None:
    """By the number of their lines: one of the held-out texts has 8, two have 1."""
    preset = Preset("", "", SMALL, replace(SHORT, steps=40, learning_rate=0.05))
    metrics = shipped_pairs.pretrain_labels(Speakers(LINES, (8, 1, 1), 0.25), preset, tmp_path)
    found = load_labels(tmp_path / "paired" / "speakers")
    assert found.labels == ("x", "y") and found.metrics == metrics
    assert metrics["step"] == 40 and metrics["majority"] == 0.25
    right, counted = labelled_right(found.model, LINES.rows["validation"]), counting_right(LINES)
    assert metrics["right"] == pytest.approx(sum(right) / 3, abs=1e-4)
    assert metrics["counting_words"] == pytest.approx(sum(counted) / 3, abs=1e-4)
    assert metrics["by_lines"] == {
        "1": {"right": sum(right[1:]) / 2, "counting_words": sum(counted[1:]) / 2},
        "8": {"right": float(right[0]), "counting_words": float(counted[0])},
    }


def test_how_often_a_classifier_is_right() -> None:
    class Says(torch.nn.Module):
        """Label 0 for a text that begins with the first symbol, else 1."""

        w_label = torch.nn.Linear(2, 2)

        def forward(self, texts: torch.Tensor) -> torch.Tensor:
            first = texts[:, 1] == 3
            return torch.stack([first.float(), (~first).float()], dim=1)

    rows = LINES.rows["train"]  # a, ab, abc begin with a and are of x, x, x
    assert share(labelled_right(Says(), rows)) == 1.0  # type: ignore[arg-type]
    assert labelled_right(Says(), LINES.rows["validation"]) == [False, True, True]  # type: ignore[arg-type]


def test_how_often_counting_words_and_the_most_frequent_are_right() -> None:
    """Learned: x says "a a b", y says "b"; half a time more each. Of "a", x: 2/3 · 2.5/4; y: 1/3 · 0.5/2."""
    train = (Labelled("a a", "x"), Labelled("b", "y"), Labelled("B", "x"))
    held = (Labelled("a", "x"), Labelled("b b", "y"), Labelled("b b b b", "y"), Labelled("A b", "y"))
    text = LabelledText("t", "T", PairTokenizer.train(["aAbB "]), ("x", "y"), train, held)
    # "b b": x 2/3 (1.5/4)^2 = 0.094, y 1/3 (1.5/2)^2 = 0.188; "A b": x 2/3 · 2.5/4 · 1.5/4 = 0.156, y 0.0625
    assert share(counting_right(text)) == 3 / 4
    lone = LabelledText("t", "T", text.tokenizer, ("x", "y"), train, held[:1])
    assert counting_right(lone) == [True]
    # With next to nothing added y, who never says "a", is impossible; with a thousand more only the prior counts.
    assert share(counting_right(text, 1000.0)) == 1 / 4
    tokenizer = PairTokenizer.train(["abcdefg"])
    texts = [Labelled(text, label) for text, label in zip("abcdefg", "xxyxyyy", strict=True)]
    text = LabelledText("t", "T", tokenizer, ("x", "y"), tuple(texts[:3]), tuple(texts[3:]))
    assert frequent_right(text) == [True, False, False, False]  # x, of three


def test_how_many_blanks_are_filled() -> None:
    """A model that says the same everywhere is right where that letter was hidden."""
    corpus = from_text("ab" * 300, "t")
    config = ModelConfig(vocab_size=3, context=10, d_model=8, n_heads=2, n_layers=1, causal=False)
    train = TrainConfig(objective="masked", mask_rate=0.3)
    model, batches = build(config), Batches(corpus, config, train)

    class Always(torch.nn.Module):
        def __init__(self, token: int) -> None:
            super().__init__()
            self.token, self.weight = token, torch.nn.Parameter(torch.zeros(1))

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.one_hot(torch.full_like(tokens, self.token), 3).float()

    hidden = [batch.targets for batch in batches.windows(corpus.validation, 0)]
    asked = torch.cat([some[some >= 0] for some in hidden])
    for token in (0, 1):
        share = float((asked == token).float().mean())
        found = guessed_right(Always(token), batches, corpus.validation)  # type: ignore[arg-type]
        assert found == pytest.approx(share) and 0.2 < share < 0.8
    assert guessed_right(Always(2), batches, corpus.validation) == 0.0  # type: ignore[arg-type]
    assert 0 <= guessed_right(model, batches, corpus.validation) <= 1


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
    text = "First Citizen:\nBefore we go,\nhear me.\n\nAll:\nSpeak: speak.\n\nROMEO:\nAy me!\n"
    assert speeches(text) == [
        ("First Citizen", "Before we go,\nhear me."),
        ("All", "Speak: speak."),
        ("ROMEO", "Ay me!"),
    ]


def test_whole_speeches_are_held_out(shakespeare: Corpus) -> None:
    """Of every speech either nothing is learned from or nothing is held out, but for lines said twice."""
    found = speakers().text
    learned, held = {one.text for one in found.train}, {one.text for one in found.validation}
    assert not learned & held
    mixed, met = 0, set()
    for who, lines in spoken_lines(shakespeare.text):
        if who in found.labels:
            said = {" ".join(lines[i : i + n]) for n in (1, 2, 4, 8) for i in range(len(lines) - n + 1)}
            mixed += bool(said & learned and said & held)
            met |= said
    assert learned | held <= met and mixed < 10
