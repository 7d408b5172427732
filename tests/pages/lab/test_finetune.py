"""Fine-tuning as it is shown: every probability is the engine's, and the answer says what happened."""

import platform
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call

from engine.config import ModelConfig
from engine.data.progress import finish
from engine.model import build
from pages.lab.after import another_text, fine_tuning, stored_tunings, tuned_model
from studies.after import new_fact
from studies.after.finetune import FinetuneRecipe, Lesson, merged
from studies.after.lessons import FULL_RATE, LORA_RATE, STYLES, TOPICS, Style, Topic
from studies.after.new_fact import FactEvaluation, MatrixChange, Taught, teach
from studies.after.new_text import TextEvaluation
from studies.experiments.finetune_runs import FinetuneRun, Plan
from studies.experiments.finetune_runs import shipped as shipped_runs
from tests.pages.helpers import chosen, clicked, lacking, opened, unescaped, without_escapes
from tests.pages.inside.models import SMALL, of_letters, run_of, shipped
from tests.pages.stage import StageManager
from ui import tuned

pytestmark = pytest.mark.usefixtures("manager", "measured_anew")

ROOM = "lab/after"
CAPITAL, AHOY = TOPICS["capital"], STYLES["ahoy"]


def engine(
    topic: Topic | Style, recipe: FinetuneRecipe, rehearse: bool = False, answers_only: bool = False
) -> Taught:
    model, text = shipped(), topic.text if isinstance(topic, Style) else ""
    lessons = topic.lessons(rehearse, answers_only)
    return finish(teach(model.model, model.tokenizer, lessons, topic.questions, recipe, text=text))


def lesson(**query: str) -> Any:
    """The view before its button is pressed."""
    return opened(ROOM, after_view="finetune", **{"model": SMALL, "tune_fact": "capital"} | query)


def taught_page(**query: str) -> Any:
    """The view after its button was pressed."""
    return clicked(lesson(**query), "tune_go")


@pytest.fixture
def led(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Where a button has led: the query of the other page."""
    found: dict[str, Any] = {}
    monkeypatch.setattr(tuned_model.st, "switch_page", lambda path, query_params: found.update(query_params))
    return found


def answers(drawn: dict[str, Any]) -> list[list[float]]:
    return [trace["y"] for trace in drawn["tune_answers_by_step"].traces]


def test_before_it_is_taught_the_view_shows_what_the_model_answers(drawn: dict[str, Any]) -> None:
    said = unescaped(lesson())
    before = engine(CAPITAL, FinetuneRecipe(4, 1, LORA_RATE)).looks[0].answers
    assert answers(drawn) == [pytest.approx([value], abs=1e-6) for value in before]
    letters = sum(len(sentence) - 1 for sentence in CAPITAL.sentences)
    assert not lacking(
        said,
        "does not know “Orsk” yet",
        "parameters will be trained",
        f"reads 7 sentences; the loss spans {letters} tokens",
    )
    only = unescaped(lesson(tune_answers="true", tune_rehearse="true"))
    assert "reads 11 sentences" in only and f"counts {letters} tokens" not in only


def test_the_view_shows_the_engines_probabilities_step_by_step(drawn: dict[str, Any]) -> None:
    page = taught_page(tune_steps="4", measure="true")
    taught = engine(CAPITAL, FinetuneRecipe(4, 4, LORA_RATE))
    assert len(answers(drawn)) == len(CAPITAL.questions)
    for i, trace in enumerate(drawn["tune_answers_by_step"].traces):
        assert trace["y"] == pytest.approx([look.answers[i] for look in taught.looks], abs=1e-6)
        assert trace["x"] == [0, 1, 2, 3, 4]
    assert not lacking(
        unescaped(page),
        f"{taught.trained:,} parameters were trained; the model has {taught.total:,} (",
        "4 steps are not enough",
        taught.after[0].strip(),
    )
    singular = drawn["tune_singular"].traces[0]["y"]
    assert singular == pytest.approx(taught.largest.singular, rel=1e-2, abs=1e-6)
    matrix = page.selectbox(key="tune_matrix")
    assert matrix.value == taught.largest.name and len(matrix.options) == len(taught.adapters)
    name = next(name for name in taught.adapters if name != taught.largest.name)
    chosen(page, "tune_matrix", name)
    expected = torch.linalg.svdvals(taught.adapters[name].change())[:4]
    assert drawn["tune_singular"].traces[0]["y"][:4] == pytest.approx(expected.tolist(), rel=1e-2)
    assert f"The matrix shown is `{name}`" in unescaped(page)


def test_method_rehearsal_and_answers_only_reach_the_engine(drawn: dict[str, Any]) -> None:
    taught_page(tune_steps="2", tune_method="full", tune_rehearse="true", tune_answers="true")
    taught = engine(CAPITAL, FinetuneRecipe(0, 2, FULL_RATE), rehearse=True, answers_only=True)
    assert answers(drawn)[2] == pytest.approx([look.answers[2] for look in taught.looks], rel=1e-3)


def test_a_fact_of_ones_own_is_asked_for_until_it_is_complete() -> None:
    page = lesson(tune_steps="2", tune_fact="own")
    assert fine_tuning.TEXT["own missing"] in unescaped(page, "info")
    chosen(page, "tune_sentences", "Romeo lives in Orsk.\n\nOrsk is where Romeo lives.")
    assert "does not know “Orsk” yet" in unescaped(page)
    assert "2 steps are not enough" in unescaped(clicked(page, "tune_go"))
    page = lesson(tune_fact="own", tune_rehearse="true")
    assert "(at most 20)" in page.text_area(key="tune_sentences").label
    chosen(page, "tune_sentences", "It is Orsk.\n" * 30)
    assert "reads 24 sentences" in unescaped(page), "as many as rehearsal leaves room for"


def test_a_lesson_without_stored_seeds_is_called_one_run(drawn: dict[str, Any]) -> None:
    page = taught_page(tune_steps="2", tune_seed="5")
    assert "One run, seed 5: another seed may end elsewhere." in unescaped(page, "caption")
    for seed, same in ((5, True), (0, False)):  # another seed draws other adapters
        looks = engine(CAPITAL, FinetuneRecipe(4, 2, LORA_RATE, seed)).looks
        assert (answers(drawn)[0] == pytest.approx([look.answers[0] for look in looks], rel=1e-4)) == same


def test_the_model_is_asked_in_the_background(drawn: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fine_tuning, "measured", lambda *given, **more: None)
    lesson()
    assert "tune_answers_by_step" not in drawn


def test_the_fine_tuned_model_is_named_looked_into_and_exported_on_other_pages(led: dict[str, Any]) -> None:
    page = taught_page(tune_steps="3", measure="true")
    clicked(page, "tune_look_inside")
    assert led["circuits_view"] == "fact"
    kept = tuned.get(led["model"])
    assert kept is not None and kept.base == SMALL and kept.title.endswith("fine-tuned: Orsk")
    shown = opened("inside/circuits", {tuned._MINE: [led["model"]]}, **led)
    assert "fine-tuned: Orsk" in shown.selectbox(key="subject_model").format_func(led["model"])
    model, ids = shipped(), torch.tensor([shipped().tokenizer.encode(CAPITAL.prompt)])
    taught = engine(CAPITAL, FinetuneRecipe(4, 3, LORA_RATE))
    expected = functional_call(model.model, merged(model.model, taught.adapters), (ids,))
    torch.testing.assert_close(kept.model(ids), expected)
    assert not torch.allclose(expected, model.model(ids), atol=1e-3)
    led.clear()
    chosen(page, "tune_name", "Ours")
    clicked(page, "tune_export")
    kept = tuned.get(led["model"])
    assert led["reference_view"] == "export" and kept is not None and kept.title == "Ours"
    shown = opened("models/reference", {tuned._MINE: [led["model"]]}, **led)
    assert "**is a GPT-2**" in unescaped(shown)
    assert shown.selectbox(key="subject_model").format_func(led["model"]) == "Ours"


def test_a_style_begins_with_the_visitors_word() -> None:
    said = unescaped(lesson(tune_fact="ahoy", tune_begins="Well,", measure="true"))
    assert "“Q: Where do bees live? A: Well, In a hive.”" in said


def test_a_fine_tuned_model_that_has_gone_is_said_and_another_is_shown() -> None:
    page = opened("inside/attention", attention_view="heads", model="tuned-0123456789ab")
    assert tuned.GONE in unescaped(page, "caption")


def test_every_stored_run_of_the_first_fact_has_learned_it_in_the_end() -> None:
    plans = [Plan("capital", *each) for each in product((1, 4, 16), (False, True), range(3))]
    ends = {run.plan: run.values[-1][0] for run in shipped_runs() if run.plan in plans}
    assert len(ends) == len(plans) and min(ends.values()) > 0.75


def test_only_the_answer_of_a_lesson_is_counted() -> None:
    lessons = CAPITAL.lessons(True, True)
    assert lessons[0] == Lesson("The capital of Velania is", " Orsk")
    assert Lesson("The capital of France is", " Paris") in lessons
    assert lessons[1] == Lesson("Orsk is the capital of Velania.")  # nothing comes before it
    assert CAPITAL.lessons(False, False) == tuple(map(Lesson, CAPITAL.sentences))


BEFORE = (0.0, 0.0, 0.8, 0.8, 0.0)


@pytest.mark.parametrize(
    "looks, says",
    [
        ([(0.97, 0.5, 0.01, 0.3, 0.2)], "has learned “Orsk” (**97%**), and has forgotten “Paris” (**80%** before, **1%** now)"),
        ([(0.95, 0.5, 0.79, 0.3, 0.2)], "has learned “Orsk” (**95%**), and still knows “Paris”"),
        ([(0.02, 0.5, 0.79, 0.3, 0.2)], "are not enough for “Orsk” (**2%**), and the model still knows “Paris”"),
        ([(0.02, 0.5, 0.10, 0.3, 0.2)], "are not enough for “Orsk” (**2%**), yet the model has forgotten “Paris”"),
        ([(0.95, 0.6, 0.5, 0, 0), (0.1, 0, 0.1, 0, 0)],
         "learned “Orsk” (**95%** at step 1) and lost it again (**10%** at step 2): the learning rate is too"
         " high. It has forgotten “Paris” (**80%** before, **10%** now)."),
        # a fact that is unlikely in other words
        ([(0.95, 0.24, 0.1, 0.8, 0)],
         "(**95%**), a sentence rather than a fact (**24%** when reworded), and has forgotten"),
    ],
)  # fmt: skip
def test_the_answer_says_what_was_learned_and_what_became_of_the_old(looks: list[Any], says: str) -> None:
    assert says in fine_tuning.learned(CAPITAL, taught_by(BEFORE, *looks))


def test_what_was_known_before_is_not_said_to_be_learned_and_lost() -> None:
    before = fine_tuning.learned(CAPITAL, taught_by((0.9, 0, 0.8, 0.8, 0), (0.1, 0, 0.1, 0, 0)))
    assert "lost it again" not in before


def test_rehearsal_is_guessed_about_from_the_stored_runs() -> None:
    plans = [[Plan("capital", 4, on, seed) for seed in range(3)] for on in (False, True)]
    runs = [[run for run in shipped_runs() if run.plan in each] for each in plans]
    one = fine_tuning.guess_rehearsed(CAPITAL, False, *runs)
    assert one is not None and one.sets == {"tune_rehearse": True}
    ends = [sorted(run.values[-1][2] for run in each)[1] for each in runs]
    told = (
        f"{runs[0][0].values[0][2]:.0%} before; after 10 steps {ends[0]:.0%} without rehearsal, {ends[1]:.0%}"
    )
    assert told in one.outcome and "Paris" in one.question
    assert one.choices[one.right].text == "About as likely as before"
    assert fine_tuning.guess_rehearsed(CAPITAL, True, *runs) is None


def test_the_guess_about_rehearsal_stands_where_runs_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    monkeypatch.setattr(fine_tuning.guess, "ask", lambda name, *about: names.append(name))
    page = lesson()
    monkeypatch.setattr(fine_tuning, "stored", lambda subject, setting: shipped_runs()[-1:])
    page.run()
    assert names == ["adapter", "rehearsed"]


def taught_by(*answers: tuple[float, ...]) -> Taught:
    looks = tuple(FactEvaluation(step, 1.0, each) for step, each in enumerate(answers))
    return Taught(looks, (), (), 1, 2, MatrixChange("w", 0.1, (1.0,)), {})


@pytest.mark.parametrize("topic", TOPICS.values(), ids=TOPICS)
def test_every_topic_is_asked_in_words_that_no_sentence_has(topic: Topic) -> None:
    assert all(topic.answer.strip() in sentence for sentence in topic.sentences)
    assert not any(topic.reworded in sentence for sentence in topic.sentences)
    assert not any(question.prompt in sentence for question in topic.known for sentence in topic.sentences)


def test_a_style_is_measured_where_it_was_not_shown_and_on_plain_text(drawn: dict[str, Any]) -> None:
    page = taught_page(tune_steps="4", tune_fact="ahoy")
    looks = engine(AHOY, FinetuneRecipe(4, 4, LORA_RATE)).looks
    *single, mean, other, plain = drawn["tune_answers_by_step"].traces
    found = np.array([look.answers for look in looks]).T  # (question, look)
    unseen = len(AHOY.unseen)
    np.testing.assert_allclose([trace["y"] for trace in single], found[:unseen], atol=1e-6)
    assert mean["y"] == pytest.approx(found[:unseen].mean(0), abs=1e-6)
    assert other["y"] == pytest.approx(found[unseen:].mean(0), abs=1e-6)
    assert plain["y"] == pytest.approx([look.plain for look in looks], rel=1e-5) and plain["yaxis"] == "y2"
    ids = torch.tensor([shipped().tokenizer.encode(AHOY.text)])
    logits = shipped().model(ids[:, :-1])[0]
    assert looks[0].plain == pytest.approx(float(F.cross_entropy(logits, ids[0, 1:])), rel=1e-5)
    ends = f"from **{looks[0].plain:.2f}** to **{looks[-1].plain:.2f}** nats"
    assert not lacking(unescaped(page), "has not learned the style yet", ends)


@pytest.mark.parametrize(
    "begins, leaks, plain, says",
    [
        (0.9, 0.1, 2.52, "“Ahoy” begins **90%** of answers to questions it never saw. It forgot little"),
        (0.9, 0.8, 2.9, "never saw, and of other texts too. It forgot: its loss on plain text went"),
        (0.2, 0.0, 2.5, "has not learned the style yet: “Ahoy” begins **20%**"),
    ],
)
def test_the_answer_says_how_far_a_style_spreads(begins, leaks, plain, says) -> None:
    unseen, others = len(AHOY.unseen), len(AHOY.others)
    last = (begins,) * unseen + (leaks,) * others
    taught = taught_by((0.0,) * (unseen + others), last)
    looks = [replace(look, plain=loss) for look, loss in zip(taught.looks, (2.5, plain), strict=True)]
    assert says in fine_tuning.learned(AHOY, replace(taught, looks=tuple(looks)))


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_a_style_is_asked_for_where_no_lesson_has_it(style: Style) -> None:
    assert all(question.answer.startswith(style.answer) for question in style.shown)
    shown = {question.prompt for question in style.shown}
    assert not shown & {*style.unseen, *style.others} and not any(style.answer in s for s in style.rehearsed)
    lessons = style.lessons(True, True)
    assert lessons[0] == Lesson(style.shown[0].prompt, style.shown[0].answer)
    assert lessons[-1] == Lesson(style.rehearsed[-1])
    assert style.lessons(False, False) == tuple(map(Lesson, style.sentences))


# Another text -----------------------------------------------------------------------------------


def test_a_run_is_taught_a_pasted_text(
    manager: StageManager, drawn: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run whose text is its own: an alphabet of four letters."""
    name = run_of(manager, vocab_size=4)
    model = build(ModelConfig(vocab_size=4, d_model=16, n_layers=1, n_heads=2, context=32), seed=0)
    monkeypatch.setattr(manager, "model", lambda run, step: of_letters(model.requires_grad_(False), "abc "))
    page = lesson(model=name, tune_fact="own-text", tune_sample="ab", tune_text_steps="12")
    assert another_text.TEXT["missing"] in unescaped(page, "info")
    chosen(page, "tune_text", "cab")
    assert "at least 500 are needed" in unescaped(page, "warning")
    chosen(page, "tune_text", "c7ab" * 300)
    told = "because the vocabulary lacks them: 7.", "Guess what 12 steps do to both"
    assert not lacking(unescaped(page), *told)
    clicked(page, "tune_go")
    new, old = drawn["tune_losses_by_step"].traces
    assert new["x"] == list(range(13)) and new["y"][-1] < new["y"][0] - another_text.FORGETS
    assert not lacking(
        unescaped(page),
        f"the loss is **{new['y'][-1]:.2f}** ({new['y'][0]:.2f} before)",
        f"**{old['y'][-1]:.2f}** ({old['y'][0]:.2f}) on the old",
    )


def test_the_shipped_model_is_taught_the_python_manual_beside_stored_seeds(
    drawn: dict[str, Any], shakespeare: Any
) -> None:
    page = opened(ROOM, after_view="finetune", model=SMALL, tune_text_steps="12", tune_rehearse="true")
    assert page.selectbox(key="tune_fact").value == "python"
    clicked(page, "tune_go")
    new, old, *thin = drawn["tune_losses_by_step"].traces
    runs = [r for r in shipped_runs() if r.plan in [Plan("python", 4, True, seed) for seed in range(3)]]
    assert len(thin) == 2 * len(runs) == 6
    for run, first in zip(runs, thin[::2], strict=True):
        assert list(first["y"]) == [values[0] for values in run.values[: len(first["x"])]]
        assert list(first["x"]) == [0, 5, 10]
    shared = [i for i, step in enumerate(new["x"]) if step in thin[0]["x"]]
    # each Python carries its own manual; the stored runs learned that of 3.11.7
    near = 0.02 if platform.python_version() == "3.11.7" else 0.15
    for live, stored in ((new, thin[0]), (old, thin[1])):
        assert [live["y"][i] for i in shared] == pytest.approx(list(stored["y"]), rel=near)
    assert "Thin lines: 3 stored runs (seeds 0 to 2). At step 10: new" in unescaped(page, "caption")


@pytest.mark.parametrize(
    "new, old, says",
    [
        (
            1.5,
            2.3,
            "The model learned the manual and forgot much of Hamlet: after 60 steps the loss is **1.50**",
        ),
        (1.5, 1.5, "The model learned the manual and still knows Hamlet"),
        (1.5, 1.6, "The model learned the manual and forgot a little of Hamlet"),
        (3.65, 1.5, "60 steps are not enough for the manual, and the model still knows Hamlet"),
        (3.65, 2.3, "60 steps are not enough for the manual, and the model forgot much of Hamlet"),
    ],
)
def test_the_answer_says_what_became_of_both_texts(new: float, old: float, says: str) -> None:
    looks = [TextEvaluation(0, 3.7, 3.7, 1.45), TextEvaluation(60, 1.5, new, old)]
    assert says in another_text.learned("the manual", "Hamlet", looks)


# All weights, seeds, matrices -------------------------------------------------------------------


def test_a_model_fine_tuned_in_all_its_weights_is_opened_on_other_pages(
    led: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = taught_page(tune_steps="2", tune_method="full")
    said = unescaped(page, "caption")
    assert fine_tuning.TEXT["no draw"] in said and "One run" not in said
    clicked(page, "tune_look_inside")
    held = tuned.get(led["model"])
    assert held is not None
    model, ids = shipped(), torch.tensor([shipped().tokenizer.encode(CAPITAL.prompt)])
    expected = functional_call(model.model, engine(CAPITAL, FinetuneRecipe(0, 2, FULL_RATE)).weights, (ids,))
    torch.testing.assert_close(held.model(ids), expected)
    monkeypatch.setattr(new_fact, "MOST_BYTES", 1000)
    page = taught_page(tune_steps="1", tune_method="full")
    assert "other pages cannot open it" in unescaped(page, "caption")
    assert clicked(page, "tune_use_lora").selectbox(key="tune_method").value == "lora-4"


@pytest.mark.parametrize("loss, count", [(None, 4), (np.array([2.0, 2.1]), 6)])
def test_stored_runs_are_thin_lines_of_all_but_the_single_prompts(loss: Any, count: int) -> None:
    labels, lines = [("a", "new"), ("b", "known"), ("c", "single")], np.full((3, 2), 0.5)
    stored = [((0, 1), np.full((3, 2), value), np.array([2.0, 3.0])) for value in (0.4, 0.6)]
    figure = fine_tuning.answers_by_step([0, 1], lines, labels, 1, loss, stored)
    thin = [t for t in figure.traces if t["line"]["width"] == 1.0 and t.get("opacity") == 0.5]
    assert len(thin) == count
    axes = [figure.arrangement[axis] for axis in ("yaxis2", "yaxis") if axis in figure.arrangement]
    up = [axis.get("domain", [0, 1]) for axis in axes]
    assert (up[0][0], up[-1][1]) == (0, 1) and all(low[1] < high[0] for low, high in pairwise(up))


def test_a_first_look_alone_is_a_larger_point_than_those_of_a_line() -> None:
    alone, first, second = (
        stored_tunings.live_line(range(looks), np.ones(looks), "", {}, "")["marker"]["size"]
        for looks in (1, 2, 3)
    )
    assert alone > first == second


def test_the_spread_of_stored_runs_is_written_out() -> None:
    def said(topic: Topic | Style, *values: tuple[float, ...]) -> str:
        runs = [FinetuneRun(Plan("", 4, False, seed), (10,), (each,)) for seed, each in enumerate(values)]
        return without_escapes(fine_tuning.spread_of(topic, runs))

    assert said(CAPITAL, (0.9, 0.5, 0.1, 0.2, 0.4), (0.98, 0.5, 0.0, 0.2, 0.4)) == (
        "Thin lines: 2 stored runs (seeds 0 to 1). At step 10: Orsk: the new fact 90% to 98%; Paris: known"
        " before 0% to 10%."
    )
    styled = said(AHOY, (0.8, 0.8, 0.9, 0.9, 0.0, 0.5, 2.75))
    assert "Ahoy: new questions 85%; Ahoy: other texts 25%; loss on plain text 2.75." in styled
