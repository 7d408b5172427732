"""The Shapes page: every view, source and step, held against arithmetic and a recording."""

import math
import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.data.tokenizers.char import CharTokenizer
from engine.recording import record
from pages.inside.shapes import forward_pass
from tests.engine.helpers import loud, tiny
from tests.pages.helpers import FOLDS, KINDS, chosen, lacking, opened, said, without_escapes
from tests.pages.inside import models
from tests.pages.inside.models import ALPHABET, of_letters, only_this
from tests.pages.stage import StageManager

pytestmark = pytest.mark.usefixtures("manager")
PAGE = "inside/shapes"


def shapes(**query: str) -> AppTest:
    return opened(PAGE, **FOLDS, **query)


def sentences(page: AppTest) -> str:
    return said(page, *KINDS, "code")


def formulas(page: AppTest) -> str:
    return said(page, "latex")


@pytest.mark.parametrize("source", [forward_pass.OWN, *forward_pass.EXAMPLES])
def test_every_source_is_traced_and_its_totals_are_said(source):
    page = shapes(shapes_source=source, shapes_step="7")
    told = sentences(page)
    assert "parameters ·" in told and "FLOP in matrix products" in told
    assert ("Shapes only" in told) == (source != forward_pass.OWN)
    assert {"gpt2": "124,439,808", "llama2-7b": "6,738,415,616", "llama2-70b": "68,976,648,192"}.get(
        source, ""
    ) in told
    assert len(page.latex) == 1 and "numbers. A text twice as long gives" in told


def test_the_page_opens_on_the_first_scores_of_the_own_model():
    page = shapes()
    assert page.session_state["shapes_traced"][0] == "blocks.0.scores"
    assert not lacking(
        without_escapes(sentences(page)),
        "818,048 parameters",
        "has shape **batch 1 × head 4 × query 61 × key 61**: 14,884 numbers",  # 4 · 61²
        "A text twice as long gives 4 times as many.",
    )
    assert len(shapes(shapes_step="99999999").latex) == 1, "there is no such step"
    first = sentences(shapes(shapes_step="0"))
    assert not lacking(first, "tokenizer produced from the text", "gives twice as many")


@pytest.mark.parametrize("fields", models.KINDS, ids=str)
def test_every_step_of_every_kind_of_model_draws(fields, monkeypatch):
    model = models.tiny_of(fields)
    models.only_this(monkeypatch, models.of_letters(model, "abcd<"), str(fields))
    page = shapes(text="ab<dcab")
    for index, step in enumerate(forward_pass.steps_of(forward_pass.Source(model.config, 6))):
        if step.block == 0 and model.config.n_layers > 1:
            continue  # block 1 is the same, but for where it reads
        page.session_state[forward_pass.WALK] = {"step": index}
        page.run()
        assert not page.exception and len(page.latex) == 1, index


def test_walking_is_written_into_the_url_and_another_model_keeps_the_step_by_name():
    page = shapes(shapes_step="12")
    name = page.session_state["shapes_traced"][0]
    chosen(page, "shapes_source", "gpt2")
    assert page.session_state["shapes_traced"][0] == name
    names = [step.name for step in forward_pass.steps_of(forward_pass.EXAMPLES["gpt2"])]
    assert str(names.index(name)) in page.query_params["shapes_step"]


def test_what_is_typed_by_hand_may_be_wrong():
    page = shapes(shapes_view="hand")
    for heads in (1, 4):
        assert not chosen(page, "shapes_heads", heads).error
    chosen(page, "shapes_hide", "k1")
    assert r"-\infty" in formulas(page) and "masked" in formulas(page)
    for typed, why in (("1 2 3", "must have the same length"), ("<b>x</b>", "is not a number")):
        assert why in sentences(chosen(page, "shapes_q", typed))
    page = shapes(shapes_view="hand", shapes_example="mask")
    chosen(page, "shapes_hidden", [f"key {n}" for n in range(1, 5)])
    assert "every key is hidden" in sentences(page)


def test_wrong_shapes_are_run_and_explained():
    page = shapes(shapes_view="wrong")
    assert not lacking(sentences(page), "must divide d_model (128)", "**2 dimensions are left over**")
    for key, value, says in (
        ("n_heads", 4, "every head gets 32"),
        ("mistake", "unembedding", "cannot be multiplied (6x128 and 65x128)"),
        ("vocab", 128, "No error, and still wrong"),
        ("mistake", "mask", "must match the size of tensor b (5)"),
        ("mask_size", 1, "83% of its attention on the future"),
    ):
        assert says in sentences(chosen(page, f"shapes_{key}", value)), (key, value)
    assert chosen(page, "shapes_mask_size", 6).success


@pytest.mark.parametrize(
    ("scores", "result"), [("1000,999,0", "0.73"), ("-800,-800,-801,0", "0.42"), ("710,1,5", "1")]
)
def test_huge_scores_overflow_nothing(scores, result):
    page = shapes(shapes_view="hand", shapes_example="mask", shapes_scores=scores)
    assert "subtracted from all of them first" in sentences(page)
    assert formulas(page).rstrip().endswith(f"= {result}\n$$")
    assert "inf" not in formulas(page)
    assert r"\frac{0}" not in formulas(page)


MODEL = loud(tiny(n_kv_heads=2), factor=3.0).requires_grad_(False)
TEXT = "abcabd"
RECORDING = record(MODEL, CharTokenizer(ALPHABET).encode(TEXT))


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, manager: StageManager) -> None:
    only_this(monkeypatch, of_letters(MODEL), "shapes-numbers")


def step_of(name: str) -> int:
    steps = forward_pass.steps_of(forward_pass.Source(MODEL.config, len(TEXT)))
    return next(i for i, step in enumerate(steps) if step.name == name)


def cells(matrix: str) -> list[float]:
    return [float(x) for x in re.findall(r"-?\d+(?:\.\d+)?", matrix)]


@pytest.mark.usefixtures("own")
def test_a_tensor_is_the_recorded_one_at_the_chosen_head(drawn):
    def heat() -> np.ndarray:
        return np.array(drawn["shapes_tensor"].traces[0]["z"], dtype=float)

    def limits() -> tuple[float, float]:
        return tuple(drawn["shapes_tensor"].traces[0][name] for name in ("zmin", "zmax"))

    page = shapes(text=TEXT, shapes_step=str(step_of("blocks.1.pattern")), shapes_head="2")
    pattern = RECORDING["blocks.1.pattern"]
    np.testing.assert_allclose(heat(), pattern[2], rtol=1e-6)
    assert limits() == (0, 1)
    chosen(page, "shapes_head", 3)
    np.testing.assert_allclose(heat(), pattern[3], rtol=1e-6)
    for name, place in (("k", 1), ("masked_scores", 3), ("ffn_out", None)):
        at = {"shapes_head": "3", "shapes_kv_head": str(place or 0)}
        shapes(text=TEXT, shapes_step=str(step_of(f"blocks.0.{name}")), **at)
        values = RECORDING[f"blocks.0.{name}"]
        limit = np.abs(values[np.isfinite(values)]).max()
        wanted = values if place is None else values[place]
        wanted = np.where(np.isfinite(wanted), wanted, np.nan)
        np.testing.assert_allclose(heat(), wanted, rtol=1e-6, atol=1e-8)
        assert limits()[1] == pytest.approx(limit), "one scale for all heads"
        assert f"largest magnitude {limit:.3g}." in drawn["shapes_tensor"].alt


@pytest.mark.usefixtures("own")
def test_the_totals_are_the_parameters_and_products_of_this_model():
    parameters = sum(p.numel() for p in MODEL.parameters())
    d, kv, ff, vocab, n = 16, 8, 24, 11, len(TEXT)
    one_layer = 2 * n * d * (d + 2 * kv + d) + 2 * 2 * n * n * d + 2 * 2 * n * d * ff
    products = 2 * one_layer + 2 * n * d * vocab
    words = said(shapes(text=TEXT))
    assert f"**{parameters:,} parameters · {products / 1e3:.3g} kFLOP in matrix products" in words
    assert "FLOPs: multiplying (m, k) by (k, n) counts as 2·m·k·n FLOPs." in words


@pytest.mark.usefixtures("own")
def test_two_heads_are_worked_out_with_their_own_numbers(drawn):
    page = shapes(
        text=TEXT, shapes_view="hand", shapes_cell_head="2", shapes_cell_key="1", shapes_q="1 2 0.3 0.4"
    )
    q, k = (1, 2, 0.3, 0.4), ((5, 6, 7, 8), (9, 0, 1, 2))
    v = ((1, 0, 0, 1), (0, 1, 1, 0))
    latex = [str(e.value) for e in page.latex]
    out = []
    for h in (0, 1):
        own = slice(2 * h, 2 * h + 2)
        raw = [sum(a * b for a, b in zip(q[own], key[own], strict=True)) for key in k]
        scaled = [r / math.sqrt(2) for r in raw]
        e = [math.exp(s) for s in scaled]
        p = [x / sum(e) for x in e]
        out += [p[0] * v[0][i] + p[1] * v[1][i] for i in range(2 * h, 2 * h + 2)]
        lines = latex[3 + h].replace(r"\begin{aligned}", "").split(r"\\[8pt]")
        rows = {name.strip(" $\n"): values for name, _, values in (line.partition("&=") for line in lines)}
        assert cells(rows[r"q\,k^\top"]) == pytest.approx(raw, abs=6e-3)
        assert cells(rows[r"q\,k^\top / \sqrt{2}"]) == pytest.approx(scaled, abs=6e-3)
        assert cells(rows[r"\text{softmax}"]) == pytest.approx(p, abs=6e-4)
        assert [bar["y"][h] for bar in drawn["shapes_two_heads"].traces] == pytest.approx(p)
    # head 2, key 1
    assert r"0.3 \cdot 7 + 0.4 \cdot 8 = 5.3 \qquad \frac{5.3}{\sqrt{2}} = 3.75" in said(page, "latex")
    assert rf"\frac{{e^{{3.75}}}}{{e^{{3.75}} + e^{{0.78}}}} = {p[0]:.4f}" in said(page, "latex")
    assert cells(latex[2].split("bmatrix")[1]) == pytest.approx(out, abs=6e-4)
    assert f"every head still gives {max(p):.1%} or more to one key" in said(page), "less than the first"
    page.text_input(key="shapes_q").set_value("1 2 0.2 0.2").run()
    assert "every head still gives" not in said(page), "the second is torn"
    page.get_by_key("shapes_hide").set_value("k1").run()
    assert "so its weight is } 0" in said(page, "latex")


@pytest.mark.usefixtures("own")
def test_the_mask_after_the_softmax_is_drawn_beside_the_right_one(drawn):
    page = shapes(text=TEXT, shapes_view="hand", shapes_example="mask", shapes_scores="1, 2, 4")
    e = [math.exp(x) for x in (1, 2, 4)]
    right, late = drawn["shapes_mask"].traces
    assert right["y"] == pytest.approx([e[0] / (e[0] + e[1]), e[1] / (e[0] + e[1]), 0])
    assert late["y"] == pytest.approx([e[0] / sum(e), e[1] / sum(e), 0])
    kept = (e[0] + e[1]) / sum(e)
    assert right["name"].endswith("(sum 1.00)") and late["name"].endswith(f"(sum {kept:.2f})")
    told = f"**{kept:.2f}**: the hidden keys have already taken their share of {1 - kept:.2f}"
    assert not lacking(said(page), told, "Hide a key with a low score")
    assert rf"\frac{{{e[0]:.3f}}}{{{e[0] + e[1]:.3f}}} = {e[0] / (e[0] + e[1]):.2f}" in formulas(page)


def answer(asked: str, **query: str) -> str:
    """The one sentence of the page that has `asked` in it."""
    page = opened(PAGE, text=TEXT, **query)
    (found,) = (str(e.value) for e in page.markdown if asked in str(e.value))
    return found


N = len(TEXT)


@pytest.mark.parametrize(
    ("name", "axes", "more"),
    [
        ("tokens", f"batch 1 × query {N}", "twice as many"),
        ("blocks.0.q", f"batch 1 × head 4 × query {N} × d_head 4", "twice as many"),
        ("blocks.0.k", f"batch 1 × kv_head 2 × key {N} × d_head 4", "twice as many"),
        ("blocks.1.pattern", f"batch 1 × head 4 × query {N} × key {N}", "4 times as many"),
        ("blocks.1.ffn_post", f"batch 1 × query {N} × d_ff 24", "twice as many"),
        ("logits", f"batch 1 × query {N} × vocab 11", "twice as many"),
    ],
)
@pytest.mark.usefixtures("own")
def test_a_shape_is_said_with_its_numbers_and_its_growth(name: str, axes: str, more: str) -> None:
    held = math.prod(int(size) for size in re.findall(r"\d+", axes))
    told = (
        f"`{name.split('.')[-1]}` has shape **{axes}**: {held:,} numbers. A text twice as long gives {more}."
    )
    assert answer("A text twice as long", shapes_step=str(step_of(name))) == told


@pytest.mark.usefixtures("own")
def test_each_head_is_said_to_listen_to_the_key_with_more_of_its_weight() -> None:
    q, keys = np.array((1, 2, 3, 0.5)), np.array(((1, 0, 0, 1), (0, 0.6, 1, 0)))
    vectors = zip(("q", "k1", "k2"), (q, *keys), strict=True)
    typed = {f"shapes_{name}": " ".join(map(str, row.tolist())) for name, row in vectors}
    told = answer("Each head compares", shapes_view="hand", **typed)
    parts = []
    for head in (0, 1):
        own = slice(2 * head, 2 * head + 2)
        power = np.exp(keys[:, own] @ q[own] / math.sqrt(2))
        weights = power / power.sum()
        parts.append(f"head {head + 1} gives k{weights.argmax() + 1} **{weights.max():.1%}** of its weight")
    assert told == f"Each head compares only its own 2 dimensions: {'; '.join(parts)}."
    assert {part.split()[3] for part in parts} == {"k2"}
    one = answer("The single head", shapes_view="hand", shapes_heads="1", **typed)
    assert one.startswith("The single head compares all 4 dimensions: head 1 gives k")


def test_a_table_runs_down_the_longer_axis_and_names_its_rows() -> None:
    assert list(forward_pass.table(np.ones((2, 3)), ("query", "d_model"))) == [
        "d_model",
        "query 0",
        "query 1",
    ]
    assert list(forward_pass.table(np.ones(2), ("d_model",))) == ["row", "d_model 0", "d_model 1"]


@pytest.mark.parametrize(("count", "most"), [(20, 20), (21, 8), (30, 8), (128, 8)])
def test_an_axis_names_all_places_or_few_numbers_of_even_distance(count: int, most: int) -> None:
    letters = {"query": tuple("abcdefghijklmnopqrstuvwxyz" * 5)}
    axis = forward_pass._axis("query", count, letters)
    shown = [int(name.partition(":")[0]) for name in axis["tickvals"]]
    assert most / 2 < len(shown) <= most and len(set(np.diff(shown))) == 1
    assert axis["ticktext"][1] == ("b" if count <= 20 else str(shown[1]))
