"""The view "Fixed memory": its figures and sentences are the study's, and the stored runs are what is drawn."""

from statistics import median

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.inside.attention.fixed_memory import LENGTHS, costs, guess
from studies.attention.fixed_memory import RULES, Reading, draw_pairs, held_bytes, recall, written
from studies.attention.recall_task import HEADS, KEYS, KINDS
from studies.experiments.fixed_memory import SEEDS, shipped
from tests.pages.helpers import opened, unescaped


def memory(**query: str) -> AppTest:
    return opened("pages/inside/attention/page.py", attention_view="memory", **query)


def test_the_matrix_and_what_its_keys_give_back_are_the_studys(drawn) -> None:
    page = memory(memory_pairs="40", memory_likeness="0.5", memory_seed="3", memory_rule="adding")
    pairs = draw_pairs(40, 3, 0.5)
    found = {rule: recall(pairs, rule) for rule in RULES}
    assert np.array(drawn["memory_state"].traces[0]["z"]) == pytest.approx(written(pairs, "adding"), abs=1e-5)
    for trace, rule in zip(drawn["memory_recall"].traces, RULES, strict=True):
        assert trace["y"] == pytest.approx(found[rule].cosine, abs=1e-5)
        filled = [symbol == "circle" for symbol in trace["marker"]["symbol"]]
        assert filled == found[rule].right.tolist()
    right = {rule: int(one.right.sum()) for rule, one in found.items()}
    assert right["delta"] > right["adding"]
    said = unescaped(page)
    assert f"**{right['delta']}** by the delta rule and {right['adding']} by adding" in said
    assert f"the cache of 2,560 numbers gives back **{right['cache']}**" in said


def test_a_key_written_again_has_its_new_value_by_the_delta_rule_alone() -> None:
    said = unescaped(memory(memory_again="true", memory_pairs="8"))
    found = {rule: recall(draw_pairs(8, 0, 0.0, True), rule).cosine[0] for rule in RULES}
    assert "the new one (cosine **1.00**)" in said and f"(**{found['adding']:.2f}**)" in said


def test_the_guess_sets_what_shows_its_answer() -> None:
    made = guess(draw_pairs(8, 0))
    assert made is not None and made.sets == {"memory_again": True, "memory_rule": "adding"}
    assert made.choices[made.right].text == "both values, mixed"


def test_a_cache_costs_what_its_text_is_long() -> None:
    sizes = {rule: tuple(held_bytes(rule, n) for n in LENGTHS) for rule in RULES}
    table = costs(Reading(LENGTHS, sizes, {rule: (2e-6,) * len(LENGTHS) for rule in RULES}))
    assert table.loc["16,384", "cache, bytes"] != table.loc["64", "cache, bytes"]
    assert table["delta rule, bytes"].nunique() == 1 and set(table["adding, time"]) == {"2 µs"}


def test_so_few_pairs_all_come_back() -> None:
    assert "Of 8, its 1,024 numbers give back **all** by either rule" in unescaped(memory(memory_pairs="8"))


def test_a_value_lost_among_others_is_not_called_mixed() -> None:
    said = unescaped(memory(memory_again="true", memory_likeness="0.5", memory_seed="1"))
    cosine = recall(draw_pairs(48, 1, 0.5, True), "adding").cosine[0]
    assert cosine < 0.2 and "by adding it is lost among the others" in said


@pytest.mark.parametrize("heads", HEADS)
def test_the_task_is_the_stored_runs(heads: int, drawn) -> None:
    page = memory(memory_part="task", memory_heads=str(heads))
    runs = [run for run in shipped() if run.plan.heads == heads]
    assert len(drawn["memory_task"].traces) == len(runs) == len(SEEDS) * len(KINDS)
    ends = {kind: median(run.right[-1] for run in runs if run.plan.kind == kind) for kind in KINDS}
    said = unescaped(page)
    assert f"**{ends['hybrid']:.0%}**" in said
    (line,), (label,) = (drawn["memory_task"].layout[each] for each in ("shapes", "annotations"))
    assert label["text"] == f"chance, {1 / KEYS:.0%}" and line["y0"] == label["y"] == 1 / KEYS
    assert ("Enough room" in said) == (ends["attention"] - ends["hybrid"] < 0.05)
