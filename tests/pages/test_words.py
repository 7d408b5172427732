"""What is said in words on several pages, held against what the engine does."""

import json
import re
from functools import partial
from types import SimpleNamespace as Given
from typing import Any

import numpy as np
import pytest
import torch

from engine.checkpoints import load
from engine.config import ModelConfig, TrainConfig, passes
from engine.data.corpora import SHAKESPEARE_TRAIN
from pages.input.embeddings import classes as embeddings
from pages.input.positions import alibi, rope_vs_sinusoidal
from pages.inside.attention import steps
from pages.inside.circuits import patching as circuits_patching
from pages.inside.circuits import quantisation as circuits_quantisation
from pages.inside.crossattention import alignment
from pages.inside.feedforward import neuron_maps as feedforward
from pages.inside.shapes import shape_errors, single_weight
from pages.lab.after import another_text, fine_tuning
from pages.lab.faults import cost
from pages.lab.ladder import replication
from pages.lab.tasks import digit_order
from pages.models.families import classifier
from pages.models.parameters import flops, memory
from pages.output.generation import step_by_step
from pages.start.train import run_panel
from studies.circuits.patching import Station
from studies.circuits.quantisation import BITS, Losses
from studies.costs.growth import Headed
from studies.costs.ledger import ledger, ledger_of
from studies.costs.presets import PRESETS
from studies.generation.kv_cache import Speed
from studies.shapes.backward import Nudges
from tests.pages.helpers import FOLDS, opened, said
from ui import models
from ui.site import ROOT
from ui.text.numbers import scientific

pytestmark = pytest.mark.usefixtures("manager")


def test_the_ledger_writes_a_gated_width_as_1_368():
    rows = ledger(ModelConfig(d_model=512, n_heads=8, ffn="swiglu")).rows
    told = {row.name: row.numbers for row in rows if row.component == "feedforward"}
    assert told == {"gate W_G": "512·1,368", "W_1": "512·1,368", "W_2": "1,368·512"}


def test_mistral_s_cache_and_scores_end_at_its_window():
    query = {"parameters_model": "mistral-7b", **FOLDS}  # at its own context of 32,768
    told = said(opened("models/parameters", parameters_view="memory", **query), "markdown")
    assert (
        "2 · L · H_kv · d_head · 4,096 · batch" in told and "reaches back over only 4,096 positions" in told
    )
    told = said(opened("models/parameters", parameters_view="flops", **query), "markdown", "success")
    assert "compared with only the last 4,096" in told


def test_a_score_of_14_leaves_the_zeros_less_than_a_millionth():
    told = said(opened("inside/attention", attention_view="scores", measure="true", hand="true"), "caption")
    share = float(torch.tensor([14.0] + [0.0] * 99, dtype=torch.float64).softmax(0)[1])
    assert f"= {scientific(share)}" in told and scientific(share) == "8.3 × 10⁻⁷"


@pytest.mark.parametrize("name", ["shakespeare-classic", "shakespeare-modern"])
def test_the_loss_of_a_shipped_model_says_after_how_many_passes(name):
    found = load(ROOT / "checkpoints" / name)
    metrics = json.loads((ROOT / "checkpoints" / name / "metrics.json").read_text("utf-8"))
    read = metrics["step"] * metrics["train"]["batch_size"] * found.config.context / SHAKESPEARE_TRAIN
    told = models.source_of(name).further(found, None)
    assert told is not None and [int(n) for n in re.findall(r"after (\d+) epochs", told)] == [round(read), 82]
    assert round(passes(10_000, 64, 128, SHAKESPEARE_TRAIN)) == 82
    assert re.search(r"after 16 and 11 passes", (ROOT / "docs" / "checkpoints.md").read_text("utf-8"))


# Sentences with a case of their own, called alone -----------------------------------------------------------------

SPOKEN = Given(
    order=[1, 0],
    heaviest=0,
    words=("crown",),
    without=np.array([[0.5, 0.25]]),
    shares=np.array([0.25, 0.75]),
    labels=("ROMEO", "JULIET"),
    unknown=(),
)
SLOPE = Nudges(0.5, 2.0, 3.0, np.array([0.0, 0.1]), np.array([3.0, 3.2]))
CURVE = Nudges(0.5, 2.0, 3.0, np.array([0.0, 0.1]), np.array([3.0, 3.5]))
ROUNDED = [Losses(2.0, np.full(len(BITS), 2.5), np.full(len(BITS), 2.5), n, 64, 1000) for n in (1, 2)]
RISEN = Given(largest=0.1, relative=0.1)
CHOICE = Given(ledger=ledger_of(PRESETS["bert-base"]), title="BERT")
HEALTHY = {"healthy": lambda: (ModelConfig(n_layers=1), TrainConfig(), None)}
CLIMBED = {"train": [3.0, 1.25], "validation": [3.0, 1.5]}
AWAY = {"mean": Given(off=0.04), "block-4": Given(off=-0.25), "attention-8": Given(off=None)}
LOOKS = [
    Given(step=0, old=1.0, new=5.0),
    Given(step=5, old=1.25, new=4.0),
    Given(step=9, old=3.0, new=2.0),
]
FACT = Given(answer=" Rome", reworded=("x",), known=())
SUMS = [
    Given(given=name, history=Given(evaluations=[Given(step=40, task=Given(validation=share))]))
    for name, share in (("a", 0.96), ("b", 0.5))
]
KNOWING = Given(answer=" Rome", reworded=("x",), known=(Given(answer=" Oslo"), Given(answer=" Kyiv")))
TAUGHT = Given(looks=[Given(step=0, answers=[0.1, 0.1]), Given(step=9, answers=[0.9, 0.2])])
TOTALS = Given(cached_sum=[5], uncached_sum=[10], times=2.0, times_last=3.0)
LAST_STEP = Given(refilled=False, computed=1, flops=1, flops_without=3, computed_without=7)
CASES: list[tuple[Any, tuple[Any, ...], str]] = [  # what is called, with what, and what it says
    (
        embeddings.cosine_caption,
        (Given(counts=[1], met=range(80)), 60, 0, (0, 0)),
        "The 60 most frequent of 80 tokens",
    ),
    (
        embeddings.cosine_caption,
        (Given(counts=None, met=range(80)), 60, 0, (0, 0)),
        "The 60 first of 80 tokens",
    ),
    (feedforward.strongest_of, (2, 64, 1.5), "The colour scale ends at 1.5:"),
    (alignment.ends, (["a", "a", "b"], 5), "(“a” 2 times, “b”) it attends most to"),
    (
        partial(shape_errors.TEXT, error="ConfigError"),
        ("raised early",),
        "by the engine before anything is built",
    ),
    (
        partial(shape_errors.TEXT, error="RuntimeError"),
        ("raised late",),
        "by PyTorch during the forward pass",
    ),
    (single_weight.first_order, (SLOPE, (3, 5)), "in row 3, column 5 is $w = 0.5$"),
    (single_weight.answer, (SLOPE, 0), "Nudge the weight to test it"),
    (single_weight.answer, (SLOPE, 1), "predicts the effect of a small change"),
    (single_weight.answer, (CURVE, 1), "this one is too large"),
    (
        circuits_quantisation.answer,
        (4, True, RISEN, ROUNDED[0]),
        "With this matrix rounded the loss on the text goes",
    ),
    (
        circuits_quantisation.answer,
        (4, True, RISEN, ROUNDED[1]),
        "With 2 rounded matrices the loss on the text goes",
    ),
    (alibi.answer, (1, 8, 0.5, 0.5), "the only head keeps **50.00%**"),
    (
        alibi.answer,
        (2, 8, 0.25, 0.5),
        "of 2 heads keeps **25.00%** of a weight, the flattest **50",
    ),
    (
        lambda: rope_vs_sinusoidal.TEXT("all pairs", query="q", key="k"),
        (),
        "The score of “q” (down, by position) with “k” (across)",
    ),
    (another_text.lacking, ("abcdefghijkl",), "lacks them: a b c d e f g h i j and 2 more."),
    (
        partial(another_text.TEXT, new="new", old="old", old_loss=1.0, new_loss=2.0, steps=1),
        ("untaught",),
        "Guess what 1 step does to both",
    ),
    (another_text.text_alt, (("new", "old"), LOOKS), "After 9 steps: new 2.00, old 3.00"),
    (fine_tuning.learned, (FACT, TAUGHT), "a sentence rather than a fact (**20%** when reworded)."),
    (digit_order._answer, (SUMS,), "95% of held-out sums are right at step **40**; *b* solves **50%** of"),
    (fine_tuning.untaught, (FACT, [0.002, 0.1]), "does not know “Rome” yet (**0.2%**): press"),
    (fine_tuning.untaught, (KNOWING, [0.6, 0.1, 0.8, 0.3, 0.0]), "(**60%**); “Oslo” gets **80%**."),
    (cost.recipe, (Given(**HEALTHY, characters=0),), "steps on Tiny Shakespeare, each with"),
    (cost.recipe, (Given(**HEALTHY, characters=900),), "steps on the first 900 characters of Tiny"),
    (
        replication._in_words,
        ("last", Given(**CLIMBED, diverged=None)),
        "1.25 training, 1.50 validation, published",
    ),
    (replication._in_words, ("last", Given(**CLIMBED, diverged=9)), "diverged, published"),
    (
        replication._apart,
        (Given(agreeing=[], compared=["mean"], rungs={"mean": Given(off=0.25)}),),
        "ends 0.250 above",
    ),
    (
        replication._apart,
        (Given(agreeing=["mean"], compared=AWAY, rungs=AWAY),),
        "ends 0.250 below",
    ),
    (classifier.answer, (SPOKEN, "JULIET"), "Right: Juliet says it."),
    (classifier.answer, (SPOKEN, "ROMEO"), "Wrong: Romeo says it."),
    (memory.memory_needed, (CHOICE, "bfloat16", 1, 64, None), "Training on a batch of that size takes"),
    (flops.heads, ((Headed(1, 8, 10, 4), Headed(2, 4, 10, 8)),), ", 1 head "),
    (flops.heads, ((Headed(2, 8, 10, 4), Headed(4, 4, 10, 8)),), ", 2 heads "),
    (
        step_by_step.how_measured,
        (Speed(16, 1, 200.0, 100.0, 2.0, 8.0), True),
        "would be 8.0; generating one token at a time",
    ),
    (
        step_by_step.how_measured,
        (Speed(16, 1, 200.0, 100.0, 2.0, 1.5), True),
        "1.5; here the cache gains even more",
    ),
    (run_panel.verdict, (Given(difference=0.5), False, "token"), "**0.50** nats worse."),
    (run_panel.verdict, (Given(difference=-0.5), False, "token"), "**0.50** nats better."),
    (run_panel.verdict, (Given(difference=-0.5), True, "token"), "That is not progress"),
]


@pytest.mark.parametrize(
    ("function", "given", "words"), CASES, ids=lambda each: getattr(each, "__name__", "")
)
def test_a_sentence_says_which_case_it_is(function: Any, given: tuple[Any, ...], words: str) -> None:
    assert words in function(*given)


def test_a_sentence_leaves_out_what_is_not_so() -> None:
    assert "colour scale" not in feedforward.strongest_of(2, 64, None)
    assert "Training" not in memory.memory_needed(CHOICE, "int8", 1, 64, None)  # type: ignore[arg-type]


def test_a_distance_bias_is_told_where_it_is_added() -> None:
    config = Given(mixer="attention", qk_norm=False, causal=True, output_projection=True)
    parts = Given(position=lambda _: Given(enters=()))
    subject: Any = Given(config=config, model=Given(parts=parts))
    for stage, bias, told in (("÷ √d", 1.0, True), ("÷ √d", None, False), ("mask", 1.0, False)):
        stages: Any = Given(bias=bias)
        assert ("distance bias" in steps.variant(subject, stage, stages)) is told


@pytest.mark.parametrize(
    ("station", "words"),
    [
        (Station(1, 0, 2, 1.0, 1.0), "nothing has to be moved."),
        (Station(1, 1, 2, 1.0, 1.0), "(all of it)."),
        (Station(0, 0, 2, 1.0, 1.0), "(all of it)."),
        (Station(0, 0, 1, 0.6, 0.6), "After that, no single token carries half of it."),
    ],
)
def test_one_token_that_carries_a_difference_is_told_with_its_blocks(monkeypatch, station, words) -> None:
    monkeypatch.setattr(circuits_patching, "stations", lambda _: (station,))
    patching: Any = Given(restored=np.zeros((3, 2)))
    assert circuits_patching.way(patching, ["the", "end"]).endswith(words)
