"""Fine-tuning as it is shown: every probability is the engine's, and the answer says what happened."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call

from engine.config import ModelConfig
from engine.data import corpora
from engine.data.progress import finish
from engine.experiments.finetune_runs import Plan
from engine.experiments.finetune_runs import shipped as shipped_runs
from engine.model import build
from engine.training.post_training import new_fact
from engine.training.post_training.finetune import FinetuneRecipe, Lesson, merged
from engine.training.post_training.lessons import FULL_RATE, LORA_RATE, STYLES, TOPICS, Style, Topic, rate
from engine.training.post_training.new_fact import FactEvaluation, MatrixChange, Taught, teach
from engine.training.post_training.new_text import TextEvaluation
from pages.lab.after import figures_finetune as figures
from pages.lab.after import finetune, tuned_model
from pages.lab.after import guesses_finetune as guesses
from pages.lab.after import words_finetune as words
from tests.pages.helpers import opened, unescaped, without_escapes
from tests.pages.inside.models import SMALL, of_letters, run_of, shipped
from tests.pages.stage import StageManager
from ui import background_jobs, tuned

ROOM = "lab/after"
CAPITAL, AHOY = TOPICS["capital"], STYLES["ahoy"]


@pytest.fixture(autouse=True)
def measured_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.setattr(background_jobs, "_server", background_jobs.Jobs())


def engine(
    topic: Topic | Style, recipe: FinetuneRecipe, rehearse: bool = False, answers_only: bool = False
) -> Taught:
    model, text = shipped(), topic.text if isinstance(topic, Style) else ""
    lessons = topic.lessons(rehearse, answers_only)
    return finish(teach(model.model, model.tokenizer, lessons, topic.questions, recipe, text=text))


def taught_page(**query: str) -> Any:
    """The view after its button was pressed."""
    page = opened(ROOM, after_view="finetune", model=SMALL, **{"tune_fact": "capital"} | query)
    page.button(key="tune_go").click().run()
    assert not page.exception
    return page


def test_before_it_is_taught_the_view_shows_what_the_model_answers(
    manager: StageManager, drawn: dict[str, Any]
) -> None:
    page = opened(ROOM, after_view="finetune", model=SMALL, tune_fact="capital")
    before = engine(CAPITAL, FinetuneRecipe(4, 1, LORA_RATE)).looks[0].answers
    shown = [trace["y"] for trace in drawn["tune_answers_by_step"].traces]
    assert shown == [pytest.approx([value], abs=1e-6) for value in before]
    assert "does not know “Orsk” yet" in unescaped(page) and "parameters will be trained" in unescaped(page)
    letters = sum(len(sentence) - 1 for sentence in CAPITAL.sentences)
    assert f"reads 7 sentences; the loss spans {letters} tokens" in unescaped(page)
    switches = {"tune_answers": "true", "tune_rehearse": "true"}
    only = opened(ROOM, after_view="finetune", model=SMALL, tune_fact="capital", **switches)
    assert "reads 11 sentences" in unescaped(only) and f"counts {letters} tokens" not in unescaped(only)


def test_the_view_shows_the_engines_probabilities_step_by_step(
    manager: StageManager, drawn: dict[str, Any]
) -> None:
    page = taught_page(tune_steps="4", measure="true")
    taught = engine(CAPITAL, FinetuneRecipe(4, 4, LORA_RATE))
    traces = drawn["tune_answers_by_step"].traces
    for i, trace in enumerate(traces):
        assert trace["y"] == pytest.approx([look.answers[i] for look in taught.looks], abs=1e-6)
        assert trace["x"] == [0, 1, 2, 3, 4]
    assert len(traces) == len(CAPITAL.questions)
    assert drawn["tune_singular"].traces[0]["y"] == pytest.approx(taught.largest.singular, rel=1e-2, abs=1e-6)
    text = unescaped(page)
    assert f"{taught.trained:,} parameters were trained; the model has {taught.total:,} (" in text
    assert "4 steps are not enough" in text and taught.after[0].strip() in text


def test_method_rehearsal_and_answers_only_reach_the_engine(
    manager: StageManager, drawn: dict[str, Any]
) -> None:
    taught_page(
        tune_steps="2",
        tune_method="full",
        tune_rehearse="true",
        tune_answers="true",
    )
    taught = engine(CAPITAL, FinetuneRecipe(0, 2, FULL_RATE), rehearse=True, answers_only=True)
    known = [look.answers[2] for look in taught.looks]
    assert drawn["tune_answers_by_step"].traces[2]["y"] == pytest.approx(known, rel=1e-3)


def test_a_fact_of_ones_own_is_asked_for_until_it_is_complete(manager: StageManager) -> None:
    page = opened(ROOM, after_view="finetune", model=SMALL, tune_steps="2", tune_fact="own")
    assert words.OWN_MISSING in unescaped(page, "info")
    page.text_area(key="tune_sentences").set_value("Romeo lives in Orsk.\n\nOrsk is where Romeo lives.").run()
    assert not page.exception and "does not know “Orsk” yet" in unescaped(page)
    page.button(key="tune_go").click().run()
    assert not page.exception and "2 steps are not enough" in unescaped(page)


def test_as_many_sentences_are_read_as_rehearsal_leaves_room_for(manager: StageManager) -> None:
    page = opened(ROOM, after_view="finetune", model=SMALL, tune_fact="own", tune_rehearse="true")
    assert "(at most 20)" in page.text_area(key="tune_sentences").label
    page.text_area(key="tune_sentences").set_value("It is Orsk.\n" * 30).run()
    assert "reads 24 sentences" in unescaped(page)


def test_a_lesson_without_stored_seeds_is_called_one_run(manager: StageManager) -> None:
    page = taught_page(tune_steps="2", tune_seed="5")
    assert "One run, seed 5: another seed may end elsewhere." in unescaped(page, "caption")
    full = taught_page(tune_steps="2", tune_method="full")
    assert words.NO_DRAW in unescaped(full, "caption") and "One run" not in unescaped(full, "caption")


def test_the_model_is_asked_in_the_background(
    manager: StageManager, drawn: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finetune, "measured", lambda *given, **more: None)
    page = opened(ROOM, after_view="finetune", model=SMALL, tune_fact="capital")
    assert not page.exception and "tune_answers_by_step" not in drawn


def test_the_fine_tuned_model_is_looked_into_on_other_pages(
    manager: StageManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    led: dict[str, Any] = {}
    monkeypatch.setattr(tuned_model.st, "switch_page", lambda path, query_params: led.update(query_params))
    page = taught_page(tune_steps="3")
    page.button(key="tune_look_inside").click().run()
    assert not page.exception and led["circuits_view"] == "fact"
    kept = tuned.get(led["model"])
    assert kept is not None and kept.base == SMALL
    shown = opened("inside/circuits", {tuned._MINE: [led["model"]]}, **led)
    assert "fine-tuned: Orsk" in shown.selectbox(key="subject_model").format_func(led["model"])
    model, ids = shipped(), torch.tensor([shipped().tokenizer.encode(CAPITAL.prompt)])
    taught = engine(CAPITAL, FinetuneRecipe(4, 3, LORA_RATE))
    expected = functional_call(model.model, merged(model.model, taught.adapters), (ids,))
    torch.testing.assert_close(kept.model(ids), expected)
    assert not torch.allclose(expected, model.model(ids), atol=1e-3)


def test_a_fine_tuned_model_is_named_and_led_to_the_page_that_exports(
    manager: StageManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    led: dict[str, Any] = {}
    monkeypatch.setattr(tuned_model.st, "switch_page", lambda path, query_params: led.update(query_params))
    page = taught_page(tune_steps="2", measure="true")
    page.button(key="tune_export").click().run()
    unnamed = tuned.get(led["model"])
    assert unnamed is not None and unnamed.title.endswith("fine-tuned: Orsk"), "named by its lesson"
    page.text_input(key="tune_name").set_value("Ours").run()
    page.button(key="tune_export").click().run()
    kept = tuned.get(led["model"])
    assert not page.exception and led["reference_view"] == "export" and kept is not None
    assert kept.title == "Ours"
    shown = opened("models/reference", {tuned._MINE: [led["model"]]}, **led)
    assert not shown.exception and "**is a GPT-2**" in unescaped(shown)
    assert shown.selectbox(key="subject_model").format_func(led["model"]) == "Ours"


def test_a_style_begins_with_the_visitors_word(manager: StageManager) -> None:
    page = opened(
        ROOM, after_view="finetune", model=SMALL, tune_fact="ahoy", tune_begins="Well,", measure="true"
    )
    assert not page.exception and "“Q: Where do bees live? A: Well, In a hive.”" in unescaped(page)


def test_a_fine_tuned_model_that_has_gone_is_said_and_another_is_shown(manager: StageManager) -> None:
    page = opened("inside/circuits", circuits_view="fact", model="tuned-0123456789ab")
    assert tuned.GONE in unescaped(page, "caption") and not page.exception


def test_the_rate_of_adapters_falls_with_the_root_of_their_rank() -> None:
    assert [rate(rank) for rank in (0, 1, 4, 16)] == [FULL_RATE, 8e-3, LORA_RATE, 2e-3]
    assert rate(16, text=True) == rate(1, text=True)


@pytest.mark.parametrize("rehearse", [False, True])
@pytest.mark.parametrize("rank", [1, 4, 16])
def test_every_stored_run_of_the_first_fact_has_learned_it_in_the_end(rank: int, rehearse: bool) -> None:
    plans = [Plan("capital", rank, rehearse, seed) for seed in range(3)]
    assert all(run.values[-1][0] > 0.75 for run in shipped_runs() if run.plan in plans)


def test_only_the_answer_of_a_lesson_is_counted() -> None:
    lessons = CAPITAL.lessons(True, True)
    assert lessons[0] == Lesson("The capital of Velania is", " Orsk")
    assert Lesson("The capital of France is", " Paris") in lessons
    assert lessons[1] == Lesson("Orsk is the capital of Velania.")  # nothing comes before it
    assert CAPITAL.lessons(False, False) == tuple(map(Lesson, CAPITAL.sentences))


@pytest.mark.parametrize(
    "new, old, says",
    [
        (0.97, 0.01, "has learned “Orsk” (**97%**), and has forgotten “Paris” (**80%** before, **1%** now)"),
        (0.95, 0.79, "has learned “Orsk” (**95%**), and still knows “Paris”"),
        (0.02, 0.79, "are not enough for “Orsk” (**2%**), and the model still knows “Paris”"),
        (0.02, 0.10, "are not enough for “Orsk” (**2%**), yet the model has forgotten “Paris”"),
    ],
)
def test_the_answer_says_what_was_learned_and_what_became_of_the_old(
    new: float, old: float, says: str
) -> None:
    look = FactEvaluation(0, 6.0, (0.0, 0.0, 0.8, 0.8, 0.0))
    last = replace(look, step=10, answers=(new, 0.5, old, 0.3, 0.2))
    taught = Taught((look, last), (), (), 1, 2, MatrixChange("w", 0.1, (1.0,)), {})
    assert says in words.learned(CAPITAL, taught)


def test_rehearsal_is_guessed_about_from_the_stored_runs() -> None:
    plans = [[Plan("capital", 4, on, seed) for seed in range(3)] for on in (False, True)]
    runs = [[run for run in shipped_runs() if run.plan in each] for each in plans]
    one = guesses.rehearsed(CAPITAL, False, *runs, finetune.REHEARSE)
    assert one is not None and one.sets == {"tune_rehearse": True}
    ends = [sorted(run.values[-1][2] for run in each)[1] for each in runs]
    before = runs[0][0].values[0][2]
    assert (
        f"{before:.0%} before; after 10 steps {ends[0]:.0%} without rehearsal, {ends[1]:.0%} with"
        in one.outcome
    )
    assert one.choices[one.right].text == "About as likely as before" and "Paris" in one.question
    assert guesses.rehearsed(CAPITAL, True, *runs, finetune.REHEARSE) is None


def test_the_guess_about_rehearsal_stands_where_runs_are_stored(
    manager: StageManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    monkeypatch.setattr(finetune.guess, "ask", lambda name, *about: names.append(name))
    page = opened(ROOM, after_view="finetune", model=SMALL, tune_fact="capital")
    monkeypatch.setattr(finetune, "stored", lambda subject, setting: shipped_runs()[-1:])
    page.run()
    assert names == ["adapter", "rehearsed"]


def taught_by(*answers: tuple[float, ...]) -> Taught:
    looks = tuple(FactEvaluation(step, 1.0, each) for step, each in enumerate(answers))
    return Taught(looks, (), (), 1, 2, MatrixChange("w", 0.1, (1.0,)), {})


def test_what_was_learned_and_lost_again_is_said() -> None:
    says = words.learned(CAPITAL, taught_by((0, 0, 0.8, 0.8, 0), (0.95, 0.6, 0.5, 0, 0), (0.1, 0, 0.1, 0, 0)))
    assert (
        "learned “Orsk” (**95%** at step 1) and lost it again (**10%** at step 2): the learning rate is too"
        " high. It has forgotten “Paris” (**80%** before, **10%** now)." in says
    )
    before = words.learned(CAPITAL, taught_by((0.9, 0, 0.8, 0.8, 0), (0.1, 0, 0.1, 0, 0)))
    assert "lost it again" not in before, "it was not learned here"


def test_a_fact_that_is_unlikely_in_other_words_is_called_a_sentence() -> None:
    says = words.learned(CAPITAL, taught_by((0, 0, 0.8, 0.8, 0), (0.95, 0.24, 0.1, 0.8, 0)))
    assert "(**95%**), a sentence rather than a fact (**24%** when reworded), and has forgotten" in says


@pytest.mark.parametrize("topic", TOPICS.values(), ids=TOPICS)
def test_every_topic_is_asked_in_words_that_no_sentence_has(topic: Topic) -> None:
    assert all(topic.answer.strip() in sentence for sentence in topic.sentences)
    assert not any(topic.reworded in sentence for sentence in topic.sentences)
    assert not any(question.prompt in sentence for question in topic.known for sentence in topic.sentences)


def test_a_style_is_measured_where_it_was_not_shown_and_on_plain_text(
    manager: StageManager, drawn: dict[str, Any]
) -> None:
    page = taught_page(tune_steps="4", tune_fact="ahoy")
    looks = engine(AHOY, FinetuneRecipe(4, 4, LORA_RATE)).looks
    *single, mean, other, plain = drawn["tune_answers_by_step"].traces
    for i, trace in enumerate(single):
        assert trace["y"] == pytest.approx([look.answers[i] for look in looks], abs=1e-6)
    unseen = len(AHOY.unseen)
    assert len(single) == unseen
    assert mean["y"] == pytest.approx([sum(look.answers[:unseen]) / unseen for look in looks], abs=1e-6)
    assert other["y"] == pytest.approx([sum(look.answers[unseen:]) / 2 for look in looks], abs=1e-6)
    assert plain["y"] == pytest.approx([look.plain for look in looks], rel=1e-5) and plain["yaxis"] == "y2"
    model = shipped()
    ids = torch.tensor([model.tokenizer.encode(AHOY.text)])
    logits = model.model(ids[:, :-1])[0]
    assert looks[0].plain == pytest.approx(float(F.cross_entropy(logits, ids[0, 1:])), rel=1e-5)
    ends = f"from **{looks[0].plain:.2f}** to **{looks[-1].plain:.2f}** nats"
    assert "has not learned the style yet" in unescaped(page) and ends in unescaped(page)


@pytest.mark.parametrize(
    "begins, leaks, plain, says",
    [
        (0.9, 0.1, 2.52, "“Ahoy” begins **90%** of answers to questions it never saw. It forgot little"),
        (0.9, 0.8, 2.9, "never saw, and of other texts too. It forgot: its loss on plain text went"),
        (0.2, 0.0, 2.5, "has not learned the style yet: “Ahoy” begins **20%**"),
    ],
)
def test_the_answer_says_how_far_a_style_spreads(
    begins: float, leaks: float, plain: float, says: str
) -> None:
    unseen, others = len(AHOY.unseen), len(AHOY.others)
    look = FactEvaluation(0, 6.0, (0.0,) * (unseen + others), 2.5)
    last = replace(look, step=10, answers=(begins,) * unseen + (leaks,) * others, plain=plain)
    taught = Taught((look, last), (), (), 1, 2, MatrixChange("w", 0.1, (1.0,)), {})
    assert says in words.learned(AHOY, taught)


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

SHAKESPEARE = pytest.mark.skipif(corpora.shakespeare_path() is None, reason="Tiny Shakespeare is not here")


def run_on_letters(manager: StageManager, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a run whose text is its own: an alphabet of four letters."""
    name = run_of(manager, vocab_size=4)
    model = build(ModelConfig(vocab_size=4, d_model=16, n_layers=1, n_heads=2, context=32), seed=0)
    monkeypatch.setattr(manager, "model", lambda run, step: of_letters(model.requires_grad_(False), "abc "))
    return name


def test_a_run_is_taught_a_pasted_text(
    manager: StageManager, drawn: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = opened(
        ROOM,
        after_view="finetune",
        model=run_on_letters(manager, monkeypatch),
        tune_fact="own-text",
        tune_sample="ab",
        tune_text_steps="12",
    )
    assert words.TEXT_MISSING in unescaped(page, "info")
    page.text_area(key="tune_text").set_value("cab").run()
    assert "at least 500 are needed" in unescaped(page, "warning")
    page.text_area(key="tune_text").set_value("c7ab" * 300).run()
    assert "because the vocabulary lacks them: 7." in unescaped(page, "caption")
    assert "Guess what 12 steps do to both" in unescaped(page)
    page.button(key="tune_go").click().run()
    assert not page.exception
    new, old = drawn["tune_losses_by_step"].traces
    assert new["x"] == list(range(13)) and new["y"][-1] < new["y"][0] - words.FORGETS
    assert f"the loss is **{new['y'][-1]:.2f}** ({new['y'][0]:.2f} before)" in unescaped(page)
    assert f"**{old['y'][-1]:.2f}** ({old['y'][0]:.2f}) on the old" in unescaped(page)


@SHAKESPEARE
def test_the_shipped_model_is_taught_the_python_manual_beside_stored_seeds(
    manager: StageManager, drawn: dict[str, Any]
) -> None:
    page = opened(ROOM, after_view="finetune", model=SMALL, tune_text_steps="12", tune_rehearse="true")
    assert page.selectbox(key="tune_fact").value == "python"
    page.button(key="tune_go").click().run()
    assert not page.exception
    new, old, *thin = drawn["tune_losses_by_step"].traces
    runs = [r for r in shipped_runs() if r.plan in [Plan("python", 4, True, seed) for seed in range(3)]]
    assert len(thin) == 2 * len(runs) == 6
    for run, first in zip(runs, thin[::2], strict=True):
        assert list(first["y"]) == [values[0] for values in run.values[: len(first["x"])]]
        assert list(first["x"]) == [0, 5, 10]
    shared = [i for i, step in enumerate(new["x"]) if step in thin[0]["x"]]
    for live, stored in ((new, thin[0]), (old, thin[1])):
        assert [live["y"][i] for i in shared] == pytest.approx(list(stored["y"]), rel=0.02)
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
    assert says in words.text_learned("the manual", "Hamlet", looks)


# All weights, seeds, matrices -------------------------------------------------------------------


def test_a_model_fine_tuned_in_all_its_weights_is_opened_on_other_pages(
    manager: StageManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    led: dict[str, Any] = {}
    monkeypatch.setattr(tuned_model.st, "switch_page", lambda path, query_params: led.update(query_params))
    page = taught_page(tune_steps="2", tune_method="full")
    page.button(key="tune_look_inside").click().run()
    held = tuned.get(led["model"])
    assert not page.exception and held is not None
    model, ids = shipped(), torch.tensor([shipped().tokenizer.encode(CAPITAL.prompt)])
    expected = functional_call(model.model, engine(CAPITAL, FinetuneRecipe(0, 2, FULL_RATE)).weights, (ids,))
    torch.testing.assert_close(held.model(ids), expected)


def test_a_model_that_is_too_large_to_be_opened_says_so_and_offers_lora(
    manager: StageManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_fact, "MOST_BYTES", 1000)
    page = taught_page(tune_steps="2", tune_method="full")
    assert "other pages cannot open it" in unescaped(page, "caption")
    page.button(key="tune_use_lora").click().run()
    assert not page.exception and page.selectbox(key="tune_method").value == "lora-4"


def test_another_seed_draws_other_adapters(manager: StageManager, drawn: dict[str, Any]) -> None:
    taught_page(tune_steps="2", tune_seed="5")
    taught = engine(CAPITAL, FinetuneRecipe(4, 2, LORA_RATE, 5))
    other = engine(CAPITAL, FinetuneRecipe(4, 2, LORA_RATE))
    shown = drawn["tune_answers_by_step"].traces[0]["y"]
    assert shown == pytest.approx([look.answers[0] for look in taught.looks], rel=1e-4)
    assert shown != pytest.approx([look.answers[0] for look in other.looks], rel=1e-4)


def test_the_singular_values_of_any_adapted_matrix_are_shown(
    manager: StageManager, drawn: dict[str, Any]
) -> None:
    page = taught_page(tune_steps="2", measure="true")
    taught = engine(CAPITAL, FinetuneRecipe(4, 2, LORA_RATE))
    choice = page.selectbox(key="tune_matrix")
    assert choice.value == taught.largest.name and len(choice.options) == len(taught.adapters)
    name = next(name for name in taught.adapters if name != taught.largest.name)
    choice.set_value(name).run()
    expected = torch.linalg.svdvals(taught.adapters[name].change())[:4]
    assert drawn["tune_singular"].traces[0]["y"][:4] == pytest.approx(expected.tolist(), rel=1e-2)
    assert f"The matrix shown is `{name}`" in unescaped(page)


@pytest.mark.parametrize("plain, count", [(False, 4), (True, 6)])
def test_stored_runs_are_thin_lines_of_all_but_the_single_prompts(plain: bool, count: int) -> None:
    labels = [("a", "new"), ("b", "known"), ("c", "single")]
    lines = np.full((3, 2), 0.5)
    loss = np.array([2.0, 2.1]) if plain else None
    stored = [((0, 1), np.full((3, 2), value), np.array([2.0, 3.0])) for value in (0.4, 0.6)]
    figure = figures.answers_by_step([0, 1], lines, labels, 1, loss, stored)
    assert (
        sum(trace["line"]["width"] == 1.0 and trace.get("opacity") == 0.5 for trace in figure.traces) == count
    )


def test_the_spread_of_stored_runs_is_written_out() -> None:
    values = np.array([[0.9, 0.5, 0.1, 0.2, 0.4], [0.98, 0.5, 0.0, 0.2, 0.4]])
    says = words.spread(CAPITAL, 2, 10, values)
    assert without_escapes(says) == (
        "Thin lines: 2 stored runs (seeds 0 to 1). At step 10: Orsk: the new fact 90% to 98%; Paris: known"
        " before 0% to 10%."
    )
    styled = words.spread(AHOY, 1, 10, np.array([[0.8, 0.8, 0.9, 0.9, 0.0, 0.5, 2.75]]))
    assert "Ahoy: new questions 85%; Ahoy: other texts 25%; loss on plain text 2.75." in without_escapes(
        styled
    )
