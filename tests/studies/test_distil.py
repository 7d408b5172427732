"""A student of a teacher's probabilities, against arithmetic of its own."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.data.corpora import from_text
from engine.recording import record
from engine.training.batches import Batches, measure
from studies.after.distil import dark_knowledge, distil, least_certain, soft_loss
from studies.experiments import distil_runs
from studies.experiments.distil_runs import LITTLE, PLANS, STUDENT, TRAINING, WAYS, Distilled, Plan, gain
from tests.engine.helpers import VERSE, loud, tiny

MODEL = replace(STUDENT, d_model=32, context=16)
CONFIG = replace(TRAINING, steps=30, batch_size=8, eval_every=10)


def test_a_sure_teacher_is_the_text_and_a_temperature_keeps_the_gradient_s_size() -> None:
    logits = torch.randn(7, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    right = torch.tensor([0, 1, 2, 3, 4, 0, 1])
    sure = 100.0 * F.one_hot(right, 5).float()
    torch.testing.assert_close(soft_loss(logits, sure, 1.0), F.cross_entropy(logits, right))
    teacher = torch.randn(7, 5, generator=torch.Generator().manual_seed(1))
    p, q = (teacher / 3).softmax(-1), (logits / 3).softmax(-1)
    torch.testing.assert_close(soft_loss(logits, teacher, 3.0), -9 * (p * q.log()).sum(-1).mean())
    (moved,) = torch.autograd.grad(soft_loss(logits, teacher, 3.0), [logits])
    torch.testing.assert_close(moved, 3 * (q - p) / 7)  # T^2 / T of the difference, a mean over 7


def test_a_student_of_a_teacher_that_knows_the_text_learns_it_from_the_same_windows() -> None:
    text = from_text(VERSE, "verse")
    first = dict(distil(MODEL, CONFIG, text))
    assert list(first) == [0, 10, 20, 30] and first[30] < first[0] - 0.5
    teacher = loud(replace(MODEL, vocab_size=text.vocab_size), factor=1)
    with_teacher = dict(distil(MODEL, CONFIG, text, teacher))
    assert with_teacher[0] == first[0], "the same initial weights, whatever it learns from"
    batches = Batches(text, MODEL, CONFIG)
    assert abs(with_teacher[30] - measure(teacher, batches, text.validation).nats) < abs(
        first[30] - measure(teacher, batches, text.validation).nats
    ), "it comes nearer to a teacher that knows nothing than one that reads the text does"


def test_dark_knowledge_is_what_the_recording_says() -> None:
    recording = record(loud(tiny()), (3, 1, 4, 1, 5))
    said = dark_knowledge(recording, 1, 2.0)
    wanted = np.exp(recording.logits[1].astype(np.float64) / 2)
    wanted /= wanted.sum()
    np.testing.assert_allclose(said.probabilities, wanted, rtol=1e-5)
    assert said.right == pytest.approx(wanted[4]) and said.likeliest[0] == wanted.argmax()
    assert said.entropy == pytest.approx(-float((wanted * np.log(wanted)).sum()))
    entropies = [dark_knowledge(recording, at, 1.0).entropy for at in range(4)]
    assert least_certain(recording) == int(np.argmax(entropies))
    assert dark_knowledge(recording, 1, 1.0).entropy < said.entropy < math.log(11)


def test_students_read_what_their_plan_says_and_are_judged_on_text_that_nobody_read() -> None:
    text = from_text(VERSE * 40, "verse")
    half = text.validation[len(text.validation) // 2 :]
    for source in distil_runs.SOURCES:
        assert torch.equal(distil_runs.text_of(source, text).validation, half)
    assert torch.equal(distil_runs.text_of("little", text).train, text.train[:LITTLE])
    assert torch.equal(distil_runs.text_of("unseen", text).train, text.validation[:LITTLE])
    assert len(PLANS) == 3 * len(WAYS) + 1  # and the teacher itself


def test_a_gain_is_clear_where_no_seeds_overlap() -> None:
    def runs(temperature: float, losses: list[float]) -> list[Distilled]:
        return [
            Distilled(Plan("whole", 64, temperature, seed), (0, 1), (9.0, loss))
            for seed, loss in enumerate(losses)
        ]

    clear = gain([*runs(0.0, [2.0, 2.1, 2.2]), *runs(1.0, [1.9, 1.8, 1.7])], "whole", 64, 1.0)
    assert clear.clear and clear.nats == pytest.approx(0.3)
    assert not gain([*runs(0.0, [2.0, 2.1, 2.2]), *runs(1.0, [2.0, 1.8, 1.7])], "whole", 64, 1.0).clear
