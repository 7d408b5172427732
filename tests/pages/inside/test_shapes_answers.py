"""The answers of Shapes against sizes and sums written out here, with all folds closed."""

from __future__ import annotations

import math
import re

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.inside.test_shapes import PAGE
from tests.pages.inside.test_shapes_numbers import TEXT, model, step_of
from tests.pages.stage import open_page

__all__ = ["model"]  # a fixture that acts by itself
T = len(TEXT)


def answer(asked: str, **query: str) -> str:
    """The one sentence of the page that has `asked` in it."""
    page = open_page(AppTest.from_file(PAGE, default_timeout=60), text=TEXT, **query)
    assert not page.exception
    (said,) = (str(e.value) for e in page.markdown if asked in str(e.value))
    return said


@pytest.mark.parametrize(
    ("name", "axes", "more"),
    [
        ("tokens", f"batch 1 × query {T}", "twice as many"),
        ("blocks.0.q", f"batch 1 × head 4 × query {T} × d_head 4", "twice as many"),
        ("blocks.0.k", f"batch 1 × kv_head 2 × key {T} × d_head 4", "twice as many"),
        ("blocks.1.pattern", f"batch 1 × head 4 × query {T} × key {T}", "4 times as many"),
        ("blocks.1.ffn_post", f"batch 1 × query {T} × d_ff 24", "twice as many"),
        ("logits", f"batch 1 × query {T} × vocab 11", "twice as many"),
    ],
)
def test_a_shape_is_said_with_its_numbers_and_its_growth(name: str, axes: str, more: str) -> None:
    said = answer("With twice the text", shapes_step=str(step_of(name)))
    held = math.prod(int(size) for size in re.findall(r"\d+", axes))
    assert (
        said == f"`{name.split('.')[-1]}` is **{axes}**: {held:,} numbers. With twice the text it has {more}."
    )


def test_each_head_is_said_to_listen_to_the_key_with_more_of_its_weight() -> None:
    q, keys = (1, 2, 3, 0.5), ((1, 0, 0, 1), (0, 0.6, 1, 0))
    typed = {f"shapes_{name}": " ".join(map(str, row)) for name, row in (("q", q), ("k1", keys[0]))}
    said = answer("Each head compares", shapes_view="hand", shapes_k2=" ".join(map(str, keys[1])), **typed)
    parts = []
    for head in (0, 1):
        own = slice(2 * head, 2 * head + 2)
        power = [
            math.exp(sum(a * b for a, b in zip(q[own], key[own], strict=True)) / math.sqrt(2)) for key in keys
        ]
        weights = [one / sum(power) for one in power]
        most = max(weights)
        parts.append(f"head {head + 1} gives **{most:.1%}** to k{weights.index(most) + 1}")
    assert said == f"Each head compares its own 2 numbers: {'; '.join(parts)}."
    assert {part[-2:] for part in parts} == {"k2"}
    one = answer("The one head", shapes_view="hand", shapes_heads="1", **typed)
    assert one.startswith("The one head sees all 4 numbers: head 1 gives **")


def test_what_a_late_mask_loses_is_said() -> None:
    power = [math.exp(x) for x in (2, 0, 1)]
    typed = {"shapes_view": "hand", "shapes_example": "mask", "shapes_scores": "2, 0, 1"}
    kept = sum(power[:2]) / sum(power)
    assert answer("Masked after the softmax", **typed) == (
        f"Masked after the softmax, the weights sum to **{kept:.2f}** only: the hidden keys have already taken"
        f" their share of {1 - kept:.2f}."
    )


def test_what_is_left_over_and_what_goes_wrong_unseen_is_said() -> None:
    d_model, heads = 50, 8
    each, left = divmod(d_model, heads)
    said = answer(
        "are left over", shapes_view="wrong", shapes_d_model=f"{d_model}", shapes_n_heads=f"{heads}"
    )
    assert f"{d_model} = {heads} × {each} + {left}: **{left} numbers are left over**" in said
    length = 8
    future = 1 - 1 / length  # of what the first token sees, all but itself lies after it
    said = answer(
        "No error",
        shapes_view="wrong",
        shapes_mistake="mask",
        shapes_length=f"{length}",
        shapes_mask_size="1",
    )
    assert f"the first token puts {future:.0%} of its attention on the future" in said
