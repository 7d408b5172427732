"""What a model answers to a task's questions, and which head does it."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.errors import CheckpointError, TaskError
from engine.model import Transformer
from engine.probe import Patcher
from engine.recording import record
from engine.sample import complete
from engine.training.records import Evaluation, TaskScores
from studies.attention.ablation import Switches, edits_for
from studies.tasks.all import ALOUD, MODELLED, TASKS
from studies.tasks.problems import answered, ask, lines_of, share_right, task_scores
from studies.tasks.sources import chain, markov, stationary
from studies.tasks.task_heads import looking, seen, solved_without, targets
from studies.tasks.task_scores import first_solved, median_solved, out_of_turn, out_of_turn_line, task_curve
from tests.engine.helpers import loud

TASK = TASKS["sort"]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return corpora.load("sort")


@pytest.fixture(scope="module")
def model(corpus: Corpus) -> Transformer:
    config = ModelConfig(corpus.vocab_size, 18, d_model=16, n_layers=2, n_heads=2, tie_embeddings=False)
    return loud(config, seed=3, factor=6.0)


def test_problems_are_taken_whole_from_all_over_a_split(corpus: Corpus) -> None:
    lines = lines_of(corpus.validation, 18, 7)
    texts = [corpus.tokenizer.decode(row) for row in lines.tolist()]
    assert all(text[0] == text[-1] == "\n" and TASK.right(text[1:-1]) for text in texts)
    every = corpus.text.strip("\n").split("\n")
    held_out = [line for line in every if line][-2000:]
    assert texts[0][1:-1] == held_out[0] and texts[-1][1:-1] == held_out[-1]
    assert len(set(texts)) == 7
    assert len(lines_of(corpus.validation, 18, 10**6)) == 2000


def test_it_writes_what_sampling_without_a_die_writes(model: Transformer, corpus: Corpus) -> None:
    lines = lines_of(corpus.validation, 18, 12)
    found = answered(model, corpus.tokenizer, TASK, lines)
    for one, row in zip(found, lines.tolist(), strict=True):
        question = corpus.tokenizer.decode(row[:10])
        alone = complete(model, corpus.tokenizer, question, 8, 0.0, seed=0)
        assert one.line == question[1:] + alone and one.written == alone
        assert one.question == question[1:] and one.question_length == 9
        assert one.wanted == "".join(sorted(question[1:9]))
        assert one.right == (alone == one.wanted)
    assert not any(one.right for one in found)  # it has learned nothing
    assert share_right(found) == 0.0 and share_right([replace(found[0], right=True), *found[1:4]]) == 0.25


def test_what_somebody_asks(model: Transformer, corpus: Corpus) -> None:
    one = ask(model, corpus.tokenizer, TASK, " hgfedcba ")
    assert one.question == "hgfedcba>" and one.wanted == "abcdefgh" and len(one.written) == 8
    for typed in ("", "é" * 8, "x" * 10_000, "abcdefg\n"):
        with pytest.raises(TaskError, match="8 characters from a to h"):
            ask(model, corpus.tokenizer, TASK, typed)


def test_scores_of_both_splits(model: Transformer, corpus: Corpus) -> None:
    found = task_scores(model.train(), corpus, count=10)
    assert found is not None and (found.train, found.validation) == (0.0, 0.0) and model.training
    model.eval()
    assert task_scores(model, replace(corpus, task=None)) is None
    for fields in ({"context": 17}, {"context": 18, "causal": False}):
        other = loud(ModelConfig(corpus.vocab_size, d_model=16, n_layers=1, n_heads=2, **fields))
        assert task_scores(other, corpus) is None


class Knows(Transformer):
    """No model: what it says after a text is looked up."""

    def __init__(self, corpus: Corpus, context: int, said: Callable[[str], int | None]) -> None:
        super().__init__(ModelConfig(corpus.vocab_size, context, 8, n_layers=1, n_heads=1).resolved())
        self.letters, self.said = corpus.tokenizer, said

    def forward(self, tokens, *rest, **more):  # type: ignore[no-untyped-def, override]
        logits = torch.zeros(*tokens.shape, self.config.vocab_size)
        for row, line in enumerate(tokens.tolist()):
            text = self.letters.decode(line)
            for i in range(1, len(text)):
                said = self.said(text[: i + 1])
                if said is not None:
                    logits[row, i, said % self.config.vocab_size] = 1.0
        return logits


def test_of_a_stream_the_likeliest_letter_is_asked() -> None:
    """By a model that knows the source's table, and is wrong on purpose after `aX`."""
    corpus = corpora.load("markov")
    task, letters = TASKS["markov"], corpus.tokenizer
    model = Knows(corpus, 16, lambda text: letters.encode(task.answer(text))[0] + (text[-2] == "a"))
    found = task_scores(model, corpus)
    assert found is not None
    rows = lines_of(corpus.validation, 16, 20)[:, :-2]
    before = letters.decode(rows.flatten().tolist())
    assert found.validation == pytest.approx(1 - before.count("a") / len(before))
    assert 0.5 < found.validation < 1.0


def test_a_stream_draws_each_letter_as_random_choices_does() -> None:
    p, draws = chain("abcd", 2), random.Random("a text")
    first = divmod(draws.choices(range(16), stationary(p).ravel().tolist())[0], 4)
    expected = list(first)
    for _ in range(300):
        weights = p[expected[-2], expected[-1]].tolist()
        expected += draws.choices(range(4), weights)
    drawn = markov("m", "M", "a rule", "abcd", 2).draw(random.Random("a text"), 302)
    assert drawn == "".join("abcd"[i] for i in expected)


def test_who_looks_at_the_source(model: Transformer, corpus: Corpus) -> None:
    lines = lines_of(corpus.validation, 18, 5)
    found = looking(model, corpus.tokenizer, TASK, lines)
    assert found is not None and found.problems == 5
    sums, even = np.zeros((2, 2)), 0.0
    for row in lines.tolist():
        text = corpus.tokenizer.decode(row)  # "\n", question, ">", answer, "\n"
        patterns = record(model, row[:-1]).stacked("pattern")
        for place in range(10, 18):  # of the answer's letters in the window
            same = [i for i in range(1, 9) if text[i] == text[place]]
            even += len(same) / place / 40
            sums += patterns[:, :, place - 1, same].sum(-1) / 40
    assert found.scores == pytest.approx(sums, abs=1e-5)
    assert found.even == pytest.approx(even)
    best = found.best[0]
    assert [one.value >= 0.5 for one in found.best].count(True) == len(found.strong)
    assert best.value == pytest.approx(sums.max()) and sums[best.layer, best.head] == sums.max()


def test_where_a_letter_is_chosen_and_comes_from(model: Transformer, corpus: Corpus) -> None:
    assert targets(TASKS["reverse"], "abcdefgh>hgfedcba")[:2] == [(9, (8,)), (10, (7,))]
    aloud = MODELLED[ALOUD]  # the bit; the parity before it is the token at the query
    line = aloud.draw(random.Random(0), aloud.length - 1)
    assert targets(aloud, line)[:3] == [(17, (1,)), (18, (2,)), (19, (3,))]
    assert targets(TASKS["brackets"], "([]([]))[]()()()")[-1] == (15, (15,))
    one = seen(model, corpus.tokenizer, TASK, "hgfedcba>abcdefgh")
    assert one.letters == tuple("\nhgfedcba>abcdefgh") and one.targets[0] == (9, (8,))
    assert one.patterns.shape == (2, 2, 18, 18)
    lines = lines_of(corpus.validation, 18, 2)
    blind = loud(ModelConfig(corpus.vocab_size, context=18, d_model=16, n_layers=1, n_heads=1, mixer="none"))
    assert looking(blind, corpus.tokenizer, TASK, lines) is None
    assert looking(model, corpus.tokenizer, TASKS["markov"], lines) is None


def test_a_head_that_writes_nothing(model: Transformer, corpus: Corpus) -> None:
    """As if the rows of W_O that read it were zero."""
    lines = lines_of(corpus.validation, 18, 8)
    other = copy.deepcopy(model)
    weight = dict(other.named_parameters())["blocks.1.mixer.w_o.weight"]
    with torch.no_grad():
        weight[:, 8:] = 0.0
    off = Patcher(edits_for(model, Switches(heads_off=((1, 1),))))
    found = answered(model, corpus.tokenizer, TASK, lines, off)
    assert found == answered(other, corpus.tokenizer, TASK, lines)
    assert found != answered(model, corpus.tokenizer, TASK, lines)
    assert solved_without(model, corpus.tokenizer, TASK, lines, [(1, 1)]) == share_right(found)


def test_when_it_was_solved() -> None:
    points = [(0, 0.0, 0.0), (10, 0.96, 0.2), (20, 0.9, 0.97), (30, 1.0, 0.94)]
    names = ("step", "train_solved", "solved", "train_loss", "validation_loss")
    rows = [dict(zip(names, (*point, 1.0, 2.0), strict=True)) for point in points]
    curve = task_curve({"curve": rows})
    assert curve.step_of(0.95) == 20 and curve.step_of(0.95, trained_on=True) == 10
    assert curve.step_of(0.99) is None
    assert curve.solved_after(10) == 0.2 and curve.solved_after(29) == 0.97 and curve.best_solved == 0.97
    looks = [Evaluation(s, 1.0, 1.0, 0.0, False, task=TaskScores(t, v)) for s, t, v in points]
    assert first_solved(looks) == 20 and first_solved(looks, 0.99) is None
    assert first_solved([Evaluation(0, 1.0, 1.0, 0.0, False)]) is None
    later = [replace(look, step=look.step + 100) for look in looks]
    assert median_solved([later, looks, later]) == 120 and median_solved([looks, []]) == 20
    assert median_solved([[], looks, []]) is None
    for broken in ({}, {"curve": [{"step": 1}]}, {"curve": 3}):
        with pytest.raises(CheckpointError):
            task_curve(broken)


def test_what_was_learned_by_heart_is_solved_of_one_split_alone(corpus: Corpus) -> None:
    """By a model that is a list of the training problems with even sums of their letters."""
    lines = [line for line in corpus.text.split("\n") if line][:18_000]
    known = {line[:9]: line for line in lines if sum(map(ord, line[:8])) % 2 == 0}

    def said(text: str) -> int | None:
        written = text[1:]
        return corpus.tokenizer.encode(known.get(written[:9], ">" * 18)[len(written)])[0]

    found = task_scores(Knows(corpus, 18, said), corpus)
    chosen = [lines[int(i)] for i in torch.linspace(0, 17_999, 100).long()]
    assert found is not None and found.validation == 0.0
    assert found.train == sum(line[:9] in known for line in chosen) / 100
    assert 0.3 < found.train < 0.7


def test_a_circle_with_a_letter_out_of_turn_has_two_answers() -> None:
    draws = random.Random(1)
    for _ in range(50):
        read, follows, away = out_of_turn_line(draws, "abcdefghijklmnop")
        before, wrong = read[:-1], read[-1]
        assert before[before.index(wrong) + 1] == follows, "as it went before"
        assert away == min(set(before), key=read.rindex) and follows != away != wrong
        assert all(before[i] == before[i - len(set(before))] for i in range(len(set(before)), len(before)))
    tokenizer = corpora.load("repeat").tokenizer
    found = out_of_turn(Follower(), tokenizer, "abcdefghijklmnop", 60)  # type: ignore[arg-type]
    assert (found.after, found.longest, found.probes) == (1.0, 0.0, 60)


class Follower(torch.nn.Module):
    """Says what followed the last letter before: an induction head, written out."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        follows = [line[line.index(line[-1]) + 1] for line in tokens.tolist()]
        return torch.eye(17)[follows][:, None].expand(-1, tokens.shape[1], -1)
