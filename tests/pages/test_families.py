"""Every view that looks into a model, with a model of each family: it draws, or says why it has no meaning
there; and nothing that it says is true of another family alone.
"""

import json
import re
from pathlib import Path

import pytest

from engine.checkpoints import load
from studies.pairs.checkpoints import load_pair
from studies.pairs.paired import PAIR_TASKS
from tests.engine.cases import for_each
from tests.pages.helpers import KINDS, opened, said
from tests.pages.rooms import ROOMS, page_of
from ui import families, models, page_frame
from ui.fit_text import GAPS, PAIR, examples_of, most_tokens, read
from ui.model_needs import CAUSAL, CHECKS, SAYS, SUMS
from ui.site import ROOT

MODELS = ("encoder-blanks", "pair-dates", "pair-language")
# What one says of a model that fills in masked tokens, of one that goes on, and of one that makes vectors.
GAPS_ALONE = ("fills in masked tokens", "fill gaps")
GOES_ON = ("next token", "comes next", "What follows", "continues")
VECTORS_ALONE = ("no output head", "hoose a causal model", "hoose a model that writes")


VIEWS = [
    (room, view)
    for room in ROOMS
    if (page := page_of(room)) is not None
    for view in page.views
    if view.needs_model
]
CASES = [(room, view, model) for room, view in VIEWS for model in MODELS]


pytestmark = pytest.mark.usefixtures("manager")


@for_each(
    "room, view, model", CASES, ids=lambda case: f"{case[1].id} of {case[0].parent.name}, {case[2]}", fast=10
)
def test_a_view_draws_or_says_why_not(room: Path, view: page_frame.View, model: str) -> None:
    page = opened(str(room), model=model, **{page_of(room).key: view.id})
    assert page.selectbox(key="subject_model").value == model
    assert not page.error, "what fails is a sentence with a number"
    told = said(page, "header", *KINDS)
    pair = families.pair_task(model)
    if pair is None:
        assert not any(
            words in told for words in ("**the encoder**, which reads", "encoder of an encoder-decoder")
        ), told
        refused = any(
            words in told
            for words in ("fills in masked tokens", "cannot use a KV cache", "Not for this model")
        )
        assert refused or not any(words in told for words in GOES_ON), told
        return
    link = f"(/crossattention?cross_task={pair})"
    if view.whole:
        assert link not in told and "**the encoder**, which reads" not in told, "nothing is left out here"
        return
    closed = [info.value for info in page.info if link in info.value]
    assert told.count(link) == 1, "which half this is, or why it is none: once, with the way to the other"
    lacks = any(info.startswith("This model has no learned position table") for info in closed)
    assert bool(closed) == (lacks or any(need in view.takes for need in (SAYS, SUMS, CHECKS, CAUSAL))), (
        "a view that asks what a model says has to be closed"
    )
    half = "One half at a time" if view.both_halves else "Shown here: **the encoder**"
    assert bool(closed) != (half in told)
    assert not any(words in told for words in (*GAPS_ALONE, *VECTORS_ALONE)), told


def test_those_that_came_with_the_app_are_offered_and_named() -> None:
    there = [name for name in models.offered() if name.startswith((families.ENCODER, PAIR))]
    tasks = [name for name in PAIR_TASKS if (ROOT / "checkpoints/paired" / name / "config.json").is_file()]
    assert there == ["encoder-blanks", *(f"pair-{name}" for name in tasks)] and len(tasks) >= 4
    assert [families.family_of(name) for name in there] == ["encoder"] + ["both"] * len(tasks)
    assert models.title_of("pair-dates").startswith(PAIR_TASKS["dates"].title)
    for name in ("shakespeare-classic", "pair-nothing", "dates", "task-copy"):
        assert families.family_of(name) == "decoder" and families.pair_of(name) is None
        assert models.kind_of(name) == {"task-copy": "copy"}.get(name, "letters")


def test_an_encoder_decoder_is_opened_at_its_encoder_and_says_how_good_it_is() -> None:
    folder = ROOT / "checkpoints/paired/language"
    page = opened("inside/residual", model="pair-language", residual_view="norms")
    model = load_pair(folder).model
    own = sum(p.numel() for p in model.encoder.parameters()) + model.embedding.numel()
    exact = json.loads((folder / "metrics.json").read_text("utf-8"))["exact"]
    facts = next(c.value for c in page.caption if "parameters" in c.value)
    assert facts.startswith(f"its encoder · {own:,} parameters")
    assert f"{exact:.1%} exact match on held-out targets" in facts


def test_the_model_fills_the_gaps_of_the_first_example_as_the_poet_did() -> None:
    import torch

    found = families.as_read(load(ROOT / "checkpoints/encoders/blanks"))
    text = next(iter(examples_of(GAPS).values()))
    ids, shown, notes = read(text, found.tokenizer, most_tokens(found.config))
    assert shown == text and not notes
    with torch.inference_mode():
        guesses = found.model(torch.tensor([ids]))[0].argmax(-1).tolist()
    filled = [g if i == found.tokenizer.mask_id else i for i, g in zip(ids, guesses, strict=True)]
    assert found.tokenizer.decode(filled).endswith("Once more unto the breach, dear friends")


def test_an_encoder_is_asked_at_its_last_gap() -> None:
    text = "To b_ or n_t to be"
    at = text.rindex("_")
    page = opened("output/sampling", model="encoder-blanks", text=text)
    told = said(page, "header", *KINDS)
    assert "Candidates for the last gap, “\\[mask\\]”" in told
    page = opened("output/sampling", model="encoder-blanks", text=text, sampling_position=str(at + 2))
    assert "Candidates at “␣”, which the model sees" in said(page)
    for room, view in (("residual", "lens"), ("residual", "push"), ("attention", "switches")):
        page = opened(f"inside/{room}", model="encoder-blanks", text=text, **{f"{room}_view": view})
        assert re.search(r"at “\\\[mask\\\]”", said(page)[:2000], re.I), (view, said(page))


def test_shapes_has_both_halves() -> None:
    text = "the 3rd of March 1999"
    source, target = len(text) + 1, len("1999-03-03") + 1
    page = opened("inside/shapes", model="pair-dates", text=text)
    assert f"{4 * source * source:,} numbers" in said(page)
    names = page.selectbox(key="shapes_source").options
    assert names[:2] == ["This model: encoder", "This model: decoder"]
    page = opened("inside/shapes", model="pair-dates", text=text, shapes_source="writes")
    assert f"{4 * target * target:,} numbers" in said(page) and "tensors are not recorded" in said(page)
    page = opened("inside/shapes", model="shakespeare-classic")
    assert page.selectbox(key="shapes_source").options[0] == "This model"
