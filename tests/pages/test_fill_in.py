"""Worked examples on the pages: what is left to the reader at each level, what is said of it, and what the address holds."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from streamlit.testing.v1 import AppTest

from studies.exercises.worked import attention, bpe
from studies.exercises.worked_example import LEVELS, WorkedExample
from studies.shapes.attention_by_hand import multi_head
from tests.pages.browser_tab import Tab
from tests.pages.helpers import chosen, clicked, in_address, lacking, opened, ran, said, unescaped
from tests.pages.test_walks import differences, still
from ui import fill_in

pytestmark = pytest.mark.usefixtures("manager")


class Shown(NamedTuple):
    """A view with an example: its folder and address, how its names there begin, and what it says where nothing is left to
    the reader.
    """

    place: str
    name: str
    query: dict[str, str]
    whole: Callable[[AppTest], bool]


VIEWS = {
    "two heads": Shown(
        "inside/shapes", "shapes_hand", {"shapes_view": "hand"}, lambda page: r"q \cdot k_1 = 1 \cdot 5" in said(page, "latex")
    ),
    "BPE": Shown("input/tokens", "bpe", {"tokens_view": "bpe"}, lambda page: "**`l ow er`**" in said(page)),
    "perplexity": Shown(
        "output/sampling", "sampling", {"sampling_view": "likelihood"}, lambda page: any("−ln p" in one.value for one in page.dataframe)
    ),
    "parameters": Shown("models/parameters", "parameters", {}, lambda page: "terms account for" in said(page)),
    "one step": Shown(
        "inside/shapes",
        "shapes_step",
        {"shapes_view": "backward", "shapes_back": "step"},
        lambda page: "the bias corrections divide" in said(page),
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> list[WorkedExample]:
    """The examples that are drawn, the last one at the end."""
    found: list[WorkedExample] = []
    real = fill_in._draw_example

    def noted(name: str, example: WorkedExample, level: fill_in.Level) -> None:
        found.append(example)
        real(name, example, level)

    monkeypatch.setattr(fill_in, "_draw_example", noted)
    return found


def visited(view: str, level: str = "", **query: str) -> AppTest:
    """The view with its fold open, once nothing is measured any more."""
    at = VIEWS[view]
    levels = {f"{at.name}_fill": level} if level else {}
    page = opened(at.place, hand="true", **at.query, **levels, **query)
    for _ in range(200):
        if not any("live_job" in str(one.proto.id) for one in page.get("bidi_component")):
            break
        time.sleep(0.1)
        ran(page)
    return page


def boxes(page: AppTest, name: str) -> list[str]:
    """The ids of the cells that can be filled in."""
    begin = f"{name}_cell_"
    return [str(one.key).rpartition("_")[2] for one in page.text_input if str(one.key).startswith(begin)]


def filled(page: AppTest, name: str, answers: dict[str, str], press: str = "check") -> AppTest:
    for id_, text in answers.items():
        next(one for one in page.text_input if str(one.key).endswith(f"_{id_}")).set_value(text)
    return clicked(page, f"{name}_{press}")


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_shows_what_was_there_and_each_level_its_blanks(
    view: str, examples: list[WorkedExample]
) -> None:
    at = VIEWS[view]
    page = visited(view)
    assert at.whole(page) and not boxes(page, at.name)
    for level in LEVELS[1:]:
        page = visited(view, level)
        example = examples[-1]
        assert boxes(page, at.name) == list(example.blanks(level)), level
        assert not at.whole(page)
        shown = example.shown(level, False)
        assert len([row.title for row in shown if row.title in said(page)]) == len(shown)


@pytest.mark.parametrize("view", VIEWS)
def test_answers_are_judged_and_a_named_mistake_is_told(view: str, examples: list[WorkedExample]) -> None:
    name = VIEWS[view].name
    page = visited(view, "row")
    cells = examples[-1].blanks("row")
    first, cell = next((id_, cell) for id_, cell in cells.items() if cell.mistakes)
    wrong = cell.form.text(cell.mistakes[0].value).strip("`")
    filled(page, name, {first: wrong})
    assert f"0 of {len(cells)} right. **{examples[-1].name(first)}**: {cell.mistakes[0].hint}" in said(page)
    assert page.text_input(key=key_of(page, first)).icon == ":material/close:"
    filled(page, name, {id_: each.text.strip("`") for id_, each in cells.items()})
    assert "**Right**: that is correct. Now fill in *all*." in said(page)
    assert page.text_input(key=key_of(page, first)).icon == ":material/check:"
    later = examples[-1].rows[examples[-1].row + 1 :]
    assert all(row.title in said(page) for row in later), "what follows from it is shown"
    assert page.button(key=f"{name}_hint").disabled


def key_of(page: AppTest, id_: str) -> str:
    return next(str(one.key) for one in page.text_input if str(one.key).endswith(f"_{id_}"))


def test_a_nudge_comes_first_then_a_suggestion_then_the_way(examples: list[WorkedExample]) -> None:
    page = visited("two heads", "row")
    cell = examples[-1].blanks("row")["2-0"]
    button = page.button(key="shapes_hand_hint")
    labels = [button.label]
    for stage in (0, 1, 2, 2):
        clicked(page, "shapes_hand_hint")
        hints = [hint for hint in cell.hints if hint in unescaped(page)]
        assert hints == [cell.hints[stage]]
        labels.append(page.button(key="shapes_hand_hint").label)
    assert labels == ["A nudge", "A suggestion", "Show me", "Show me", "Show me"]
    filled(page, "shapes_hand", {"2-0": cell.text}, press="hint")
    other = examples[-1].blanks("row")["2-1"]
    assert other.hints[0] in unescaped(page) and cell.hints[2] not in unescaped(page)
    assert page.button(key="shapes_hand_hint").label == "A suggestion"


def test_a_hint_is_gone_once_its_box_has_been_off_the_screen(examples: list[WorkedExample]) -> None:
    page = visited("two heads", "row")
    nudge = examples[-1].blanks("row")["2-0"].hints[0]
    clicked(page, "shapes_hand_hint")
    assert nudge in unescaped(page)
    for level in ("number", "row"):
        chosen(page, "shapes_hand_fill", level)
    assert nudge not in unescaped(page) and page.button(key="shapes_hand_hint").label == "A nudge"


def test_what_the_reader_works_out_stands_nowhere_else_on_the_screen(drawn) -> None:
    page = visited("two heads", "row")
    assert "shapes_two_heads" not in drawn and not page.latex
    assert not lacking(unescaped(page), "Each head compares only its own 2 dimensions.")
    assert not {"99.7%", "0.997", "0.003"} & set(said(page).replace("*", " ").split())
    page = visited("two heads")
    assert "shapes_two_heads" in drawn and "99.7%" in said(page)
    closed = opened("inside/shapes", shapes_view="hand", shapes_hand_fill="row")
    assert "99.7%" in said(closed), "with the fold closed nothing is left to the reader"


@pytest.mark.parametrize("model", ["gpt2", "fast", "qwen2.5-0.5b", "block-512", "bert-base"])
def test_a_count_that_is_left_to_the_reader_stands_nowhere_on_the_screen(
    model: str, examples: list[WorkedExample], drawn: dict[str, Any]
) -> None:
    page = visited("parameters", "all", parameters_model=model)
    totals = ("tokens", "positions", "in all blocks", "all blocks", "the whole model")
    answers = {cell.text for cell in examples[-1].cells.values() if cell.label in totals}
    shown = {f"{value:,.0f}" for value in drawn["parameters_treemap"].traces[0]["values"]}
    text = " ".join(said(page))
    assert len(answers) >= 4 and not answers & shown and not [one for one in answers if one in text]


def test_new_numbers_change_the_boxes_of_two_heads_and_the_seed_of_others(
    examples: list[WorkedExample],
) -> None:
    page = visited("two heads", "number")
    filled(page, "shapes_hand", {"1-0": "7"})
    clicked(page, "shapes_hand_renew")
    rows = [
        [float(x) for x in page.text_input(key=f"shapes_{name}").value.split(",")]
        for name in ("q", "k1", "k2", "v1", "v2")
    ]
    again = attention.two_heads(multi_head(rows[:1], rows[1:3], rows[3:], 2))
    assert again.digest == examples[-1].digest != examples[0].digest
    assert page.text_input(key=key_of(page, "1-0")).value == "" and "right" not in said(page)
    page = visited("BPE", "all")
    assert examples[-1].digest == bpe.two_merges(0).digest
    clicked(page, "bpe_renew")
    assert in_address(page, "bpe_seed") == "1" and examples[-1].digest == bpe.two_merges(1).digest
    visited("BPE", "all", bpe_seed="9999")
    assert examples[-1].digest == bpe.two_merges(9999).digest


@pytest.mark.parametrize("seed", ["-1", "10000", "1e9", "<b>", "9" * 300])
def test_a_forged_seed_is_none(seed: str, examples: list[WorkedExample]) -> None:
    visited("BPE", "all", bpe_seed=seed)
    assert examples[-1].digest == bpe.two_merges(0).digest


def test_a_stranger_gets_a_sentence_for_whatever_is_written() -> None:
    page = visited("two heads", "number")
    for text in ("<b>1</b>", "1/0", "9" * 200, "nan", "1 2", "1,5", "½"):
        filled(page, "shapes_hand", {"1-0": text})
        verdict = next(str(one.value) for one in page.markdown if "**Not yet**" in str(one.value))
        assert verdict.startswith("**Not yet**: ") and "<" not in verdict and verdict.endswith(".")


def test_a_text_without_few_tokens_to_score_says_so() -> None:
    page = visited("perplexity", "all", text="QzXqZjxQ", model="shakespeare-classic")
    assert "moderate perplexity" in said(page) and not boxes(page, "sampling")


def test_a_level_is_found_again_on_coming_back_to_the_page() -> None:
    address = "shapes?shapes_view=hand&hand=true&shapes_hand_fill=row"
    tab = still(Tab(address))
    before = tab.screen()
    for other in ("tokens?tokens_view=bpe&hand=true&bpe_fill=all", address):
        tab.visit(other)
        still(tab)
    assert not differences(still(tab).screen(), before)
