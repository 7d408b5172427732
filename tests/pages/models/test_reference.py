"""The Reference page: two programs, mistakes, exports, and what to look up."""

import ast
import json
import math
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.config import ModelConfig, TrainConfig
from engine.recording import record
from pages.models.reference import cross_check, quick_reference
from runs.state import RunSpec
from studies.families.influence_by_distance import layer_influence as influence_of
from studies.lab.reference import random_configs
from studies.lab.reference.compare import Comparison, Difference, compare
from studies.lab.reference.mistakes import MISTAKES
from studies.pairs.checkpoints import load_pair
from tests.pages import helpers
from tests.pages.helpers import chosen, lacking
from tests.pages.stage import StageManager, view_of
from ui import session
from ui.site import ROOT
from ui.text.numbers import number

pytestmark = pytest.mark.usefixtures("manager")
TINY: dict[str, Any] = {"vocab_size": 90, "context": 64, "d_model": 16, "n_layers": 2, "n_heads": 2}


def opened(view: str = "dice", **query: str) -> AppTest:
    page = helpers.opened("models/reference", reference_view=view, **helpers.FOLDS, **query)
    assert not page.error, page.error
    return page


def test_a_mixture_of_experts_is_not_exported_and_the_page_says_so(manager: StageManager) -> None:
    page = opened("export", model=run(manager, "experts", n_experts=4))
    assert "This model is a mixture of experts" in helpers.said(page)


def said(page: AppTest) -> str:
    """Its texts, and the cells of its tables."""
    cells = [str(cell) for table in page.table for row in table.value.to_numpy() for cell in row]
    return helpers.without_escapes(" | ".join([helpers.said(page), *cells]))


def run(manager: StageManager, name: str, **fields: Any) -> str:
    """A run of a model in the bar."""
    config = ModelConfig(**TINY | fields)
    spec = RunSpec(config, TrainConfig(steps=40), "text", "abc " * 20, name=f"my {name}")
    manager.views[name] = view_of(spec, name, "finished", 40, snapshots=(0, 40))
    return f"run-{name}"


@pytest.mark.parametrize(
    "family",
    [
        name if name in ("llama", "t5") else pytest.param(name, marks=pytest.mark.exhaustive)
        for name in random_configs.KINDS
    ],
)
def test_every_family_agrees(family, drawn):
    page = opened(reference_family=family)
    assert "Yes, they agree." in said(page)
    figure = drawn["reference_two"]
    places = figure.table["activation"]
    assert places[0] == "blocks.0.resid_pre" and places[-1] == ("norm_final" if family == "t5" else "logits")
    assert max(figure.table["relative"]) < 1e-5
    assert [trace.get("name") for trace in figure.traces] == [None, "agrees"]
    low, high = (10.0**end for end in figure.layout["yaxis"]["range"])
    equal = [y for y, apart in zip(figure.traces[0]["y"], figure.table["relative"], strict=True) if not apart]
    assert low < min(figure.traces[0]["y"]) < 1e-8 or not equal
    assert all(low < y < 1e-8 for y in equal) and high >= 10, "equal ones stand below every difference"


@pytest.mark.parametrize("family", ["mistral", pytest.param("gpt2", marks=pytest.mark.exhaustive)])
def test_every_mistake_is_pointed_at_or_said_to_do_nothing(family, drawn):
    for name, mistake in MISTAKES.items():
        told = said(opened(reference_family=family, reference_mistake=name))
        notes = drawn["reference_two"].layout["annotations"][1:]
        idle = mistake.idle(random_configs.roll(family, 0).model.config)
        if idle is not None:
            assert not lacking(told, "The mistake has no effect here", idle) and not notes
        else:
            begins = "**No.** The difference begins in block **0**"
            assert not lacking(told, begins, f"at `{mistake.shows_at}`", mistake.sentence)
            assert notes[0]["text"] == f"begins: block 0, {mistake.shows_at}"


@pytest.mark.parametrize(("at", "far"), [(2, 1e6), (20, 1e6), (2, 0.001)])
def test_the_beginning_of_a_difference_is_pointed_at_inside_the_figure(at: int, far: float) -> None:
    blocks = [f"blocks.{i}.resid_post" for i in range(24)]
    names = ["blocks.0.resid_pre", *blocks, "norm_final", "logits"]
    differences = [0.0] * at + [far, math.inf] + [far] * (len(names) - at - 2)
    rows = [Difference(name, each, 1.0) for name, each in zip(names, differences, strict=True)]
    figure = cross_check.figure(Comparison(tuple(rows)))
    note = figure.arrangement["annotations"][-1]
    assert note["x"] == at and (note["ax"] > 0) == (at < 13), "its words are beside it, towards the middle"
    assert (note["ay"] > 0) == (far > 1), "below a high mark, above one that is near the tolerance"
    heights = figure.traces[0]["y"]
    assert heights[at + 1] >= 10 * heights[at], "an infinite one stands clearly above"
    _, *numbers, _ = figure.arrangement["xaxis"]["ticktext"]
    assert numbers == [str(block) for block in range(2, 24, 2)], "every second block"


def test_seven_rows_are_the_whole_model():
    page = opened("quick")
    assert [link.proto.url for link in page.get("link_button")] == ["./questions"]
    assert page.selectbox(key="reference_sizes").proto.label_visibility.value == 2, "it stands beside"
    table = page.table[0].value
    assert len(table) == 7 and "with **45.5%**" in said(page)
    counts = [int(n.replace(",", "")) for n in table["parameters"] if n != "none"]
    assert sum(counts) == 124_439_808
    assert table.loc["Self-attention", "output"] == "(1,024, 768)"
    assert table.loc["Output head", "output"] == "(1,024, 50,257)"
    for name in quick_reference.ONE_STACK:
        assert len(chosen(page, "reference_sizes", name).table[0].value) == 7, name


@pytest.mark.parametrize(
    ("model", "title", "kind", "size"),
    [("classic", "GPT-2", "gpt2", "3.3 MB"), ("modern", "LLaMA", "llama", "3.2 MB")],
)
def test_shipped_models_have_a_family(model, title, kind, size):
    page = opened("export", model=f"shakespeare-{model}")
    every = "Every property and every tensor has a counterpart"
    assert not lacking(said(page), f"**is a {title}**", every, "`tokenizer.json`", size)
    facts = json.loads(next(code.value for code in page.code if code.value.startswith("{")))
    assert facts["model_type"] == kind
    assert "1.6 MB" in said(chosen(page, "reference_dtype", "float16"))


def downloads(page: AppTest) -> list[str]:
    return [button.label for button in page.get("download_button")]


def test_what_has_no_family_keeps_the_one_file(manager):
    page = opened("export", model=run(manager, "refx-none", mixer="similarity"))
    assert not lacking(said(page), "Not for this model", "mixer = 'similarity'")
    assert downloads(page) == ["model.py", "model.safetensors", "nano.py"]


def test_the_answer_of_before_says_the_steps_and_what_is_left(drawn):
    told, table = said(opened("before", reference_length="16")), drawn["reference_before"].table
    assert list(table["back"]) == list(range(1, 16))
    lines = {line["name"]: line for line in drawn["reference_before"].traces}
    for name, layer in (("RNN", "rnn"), ("LSTM", "lstm"), ("attention", "attention")):
        influence = influence_of(layer, 16).influence
        assert table[name] == pytest.approx(influence) and lines[name]["y"] == pytest.approx(influence)
        assert list(lines[name]["x"]) == list(range(1, 16))
    n, d = 16, 64
    assert not lacking(
        told,
        "needs **16 sequential steps**",
        "last in **1 step**",
        f"and keeps {number(float(table['RNN'][-1]))}.",
        f"keeps {float(table['attention'][-1]):.1f} times the influence of a neighbour",
        *(f"{count:,}" for count in (2 * n * d * d, 8 * n * d * d, 4 * n * d * d + 2 * n * n * d)),
    )


def test_a_hosted_server_packs_no_more_than_it_can(monkeypatch):
    small = replace(session.profile(), max_export=3_000_000)
    monkeypatch.setattr(session, "profile", lambda: small)
    page = opened("export", model="shakespeare-classic")
    assert not lacking(said(page), "This model cannot be exported here", "at most 3 MB")
    assert not downloads(page)
    assert len(downloads(chosen(page, "reference_dtype", "bfloat16"))) == 4


@pytest.mark.parametrize("task", ["dates", "language"])
def test_an_encoder_decoder_is_taken_along_whole(task):
    """As one file, and as a folder that is read back; why it is nothing of Hugging Face's is said."""
    found = load_pair(ROOT / "checkpoints" / "paired" / task)
    count = sum(p.numel() for p in found.model.parameters())
    page = opened("export", model=f"pair-{task}", reference_dtype="bfloat16")
    assert f"export the single file**: {2 * count / 1e6:,.1f} MB in bfloat16" in said(page)
    assert "T5, the only encoder" in page.info[0].value
    assert downloads(page) == ["model.py", "model.safetensors", "This app's own folder"]
    sizes = page.table[0].value["size"].tolist()
    assert sizes == ["–", f"{2 * count / 1e6:,.1f} MB", f"{4 * count / 1e6:,.1f} MB"]
    written = next(code.value for code in page.code if "class Seq2Seq" in code.value)
    ast.parse(written)
    command = f"python model.py {page.text_area(key='text').value}"
    assert command in written and command in [c.value for c in page.code]


def closed(**query: str) -> str:
    """All that is closed while the folds are closed."""
    page = helpers.opened("models/reference", reference_view="dice", **query)
    return helpers.said(page, "markdown")


@pytest.mark.parametrize(("family", "seed"), [("llama", 0), ("gpt2", 5)])
def test_two_programs_are_as_far_apart_as_is_said(family, seed):
    rolled = random_configs.roll(family, seed)
    far = compare(rolled.model, record(rolled.model, rolled.ids)).worst.relative
    assert 0 < far < 1e-5
    told = closed(reference_family=family, reference_seed=str(seed))
    assert f"The largest difference along the stream is **{number(far)}**" in told


def test_a_mistake_is_as_large_as_is_said():
    rolled = random_configs.roll("gpt2", 0)
    found = compare(rolled.model, record(rolled.model, rolled.ids), MISTAKES["scale"].choices)
    assert not lacking(
        closed(reference_family="gpt2", reference_mistake="scale"),
        f"and grows to **{number(found.worst.relative)}** along the stream",
        f"the logits are off by up to {number(found.last.largest)}, where the largest is {found.last.size:.3g}.",
        "in block **0**, at `scores`",
    )
