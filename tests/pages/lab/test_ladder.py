"""The room of the ladder: every sentence's numbers against the files that they come from."""

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.data import corpora
from engine.data.corpus import Corpus
from engine.training.train import check
from pages.lab.ladder import race as race_view
from pages.lab.ladder import replication
from pages.lab.ladder import rungs as rungs_view
from runs import profiles
from studies.experiments import lab_races, ladder
from studies.experiments.ladder_gains import Finish
from studies.experiments.race_recipes import NORM_DEPTHS, QUESTIONS
from studies.experiments.race_table import Standing
from studies.tasks.all import TASKS
from studies.tasks.ladder import lines
from studies.tasks.rungs import LADDER, LECTURE, MOST_STEPS
from studies.tasks.text_statistics import baselines
from tests.pages import helpers
from tests.pages.helpers import lacking
from ui.site import ROOT

RACES = ROOT / "checkpoints" / "races"
pytestmark = pytest.mark.usefixtures("manager")


def opened(view: str, **query: str) -> AppTest:
    page = helpers.opened("lab/ladder", ladder_view=view, **query)
    assert not page.error, page.error
    return page


def answer(page: AppTest) -> str:
    """The sentence below the figure, without its links."""
    found = [each.value for each in page.markdown if "**" in str(each.value)]
    return re.sub(r":\w+\[([^\]]*)\]|\[([^\]]*)\]\([^)]*\)", r"\1\2", " | ".join(map(str, found)))


@cache
def stored_race(race: str) -> dict[str, Any]:
    return json.loads((RACES / f"{race}.json").read_text())


def over_seeds(race: str, key: str = "validation_loss") -> dict[str, list[float]]:
    """name -> last validation losses by seed, from the file itself."""
    result: dict[str, list[float]] = {}
    for run in (*stored_race(race)["runs"], *stored_race(race)["repeats"]):
        result.setdefault(run["name"], []).append(run["looks"][-1][key])
    return result


def ends(race: str, key: str = "validation_loss") -> dict[str, float]:
    """name -> the median of its last validation losses."""
    return {name: median(losses) for name, losses in over_seeds(race, key).items()}


@pytest.mark.parametrize("name", LADDER)
def test_every_rung_says_what_it_buys(name: str, drawn) -> None:
    rung, losses, over = LADDER[name], ends("ladder"), over_seeds("ladder")
    page = opened("ideas", ladder_rung=name)
    said, after = answer(page), losses[rung.title]
    assert f"{after:,.2f} nats**" in said
    if rung.below is not None:
        below = LADDER[rung.below].title
        verdict = "variation between seeds"
        if max(over[rung.title]) < min(over[below]):
            verdict = f"improves on *{below}* with all 3 seeds"
        if min(over[rung.title]) > max(over[below]):
            verdict = f"does worse than *{below}* with all 3 seeds"
        assert not lacking(said, f": {losses[below]:,.2f} → ", verdict)
    assert (lines(name) in [each.value for each in page.code]) == bool(lines(name))
    changed = " ".join(str(each.value) for each in page.markdown)
    for value in rung.changes.values():
        shown_as = ("off", "on")[value] if isinstance(value, bool) else value
        assert f"→ **{shown_as}**" in changed
    wanted = [losses[rung.title] for rung in LADDER.values()]
    np.testing.assert_allclose(drawn["ladder_ideas"].table["nats"], wanted, rtol=1e-6)


def test_the_chosen_step_is_drawn_from_the_rung_below(drawn: dict[str, Any]) -> None:
    """A bar from the loss of the rung below, up, to its own."""
    losses, over, names = ends("ladder"), over_seeds("ladder"), list(LADDER)
    opened("ideas", ladder_rung="positions")
    figure, below = drawn["ladder_ideas"], LADDER["positions"].below
    assert below is not None
    bar, points, written = figure.traces
    before, after = losses[LADDER[below].title], losses[LADDER["positions"].title]
    np.testing.assert_allclose(bar["x"], [before, before, after], rtol=1e-6)
    assert list(bar["y"]) == [names.index(below), names.index("positions"), names.index("positions")]
    np.testing.assert_allclose(points["x"], [losses[LADDER[n].title] for n in names], rtol=1e-6)
    ranges = [(min(over[LADDER[n].title]), max(over[LADDER[n].title])) for n in names]
    bars = points["error_x"]
    found = np.stack([np.subtract(points["x"], bars["arrayminus"]), np.add(points["x"], bars["array"])], 1)
    np.testing.assert_allclose(found, ranges, rtol=1e-6)
    assert written["text"][names.index("positions")].strip() == f"{after:.2f}"
    sides = [side == "middle right" for side in written["textposition"]]
    beyond = [high if right else low for right, (low, high) in zip(sides, ranges, strict=True)]
    np.testing.assert_allclose(written["x"], beyond, rtol=1e-6, err_msg="a number stands on its range")


def test_n_grams_stand_where_their_losses_are(drawn: dict[str, Any], shakespeare: Corpus) -> None:
    opened("ideas", ladder_rung="positions")
    figure, shown = drawn["ladder_ideas"], dict(baselines(shakespeare))
    wanted = {name: shown[name] for name in ("unigram", "bigram", "trigram")}
    assert {note["text"]: note["x"] for note in figure.layout["annotations"]} == pytest.approx(wanted)
    assert sorted(line["x0"] for line in figure.layout["shapes"]) == pytest.approx(sorted(wanted.values()))


def test_the_first_race_is_there_at_first_sight() -> None:
    losses, four = ends("ladder"), ["Positions", "Full block ×4", "Bigram", "Average"]
    assert sorted(four, key=losses.__getitem__) == four
    others = ", ".join(f"{name} {losses[name]:.2f}" for name in four[1:])
    told = f"**Positions** has the lowest loss, **{losses['Positions']:.2f} nats**, ahead of {others}."
    assert told in answer(opened("race"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The runs that a race was drawn for."""
    specs: list[Any] = []
    real = race_view.show_race

    def show(key: str, title: str, given: Any, **rest: Any) -> Any:
        specs.extend(given)
        return real(key, title, given, **rest)

    monkeypatch.setattr(race_view, "show_race", show)
    return specs


@pytest.mark.parametrize(("budget", "steps", "seconds"), [("1500", 1500, 0.0), ("5s", MOST_STEPS, 5.0)])
def test_the_budget_is_steps_or_seconds(asked, budget, steps, seconds):
    opened("race", ladder_steps=budget)
    assert len(asked) == 4
    assert all((spec.train.steps, spec.train.seconds) == (steps, seconds) for spec in asked)
    offered = [each for each in profiles.PROFILES.values() if seconds or 4 * steps <= each.max_steps]
    assert offered
    for profile in offered:
        profiles.check_race(profile, asked)


def test_a_task_is_raced_like_any_text(asked, drawn) -> None:
    opened("race", ladder_text="reverse")
    corpus = corpora.load("reverse")
    assert {(spec.corpus, spec.model.vocab_size) for spec in asked} == {("reverse", corpus.vocab_size)}
    for spec in asked:
        check(spec.model, spec.train, corpus)
    notes = [note["text"] for note in drawn["race_chart_ladder"].layout["annotations"]]
    floor = f": {TASKS['reverse'].floor(asked[0].model.context):.2f}"
    assert any(note.startswith("floor of this task") and note.endswith(floor) for note in notes)


def line(name: str, loss: float) -> Standing:
    return Standing(name, name, "finished", 9, 9, loss, loss, True, 1.0, 1, 1, 1, 1.0, 9)


def test_a_race_below_the_line_of_pairs() -> None:
    def told(*losses: float, ended: Standing | None = None, lines: tuple[float, ...] = ()) -> str:
        runs = [line(name, loss) for name, loss in zip("ab", losses, strict=False)]
        return race_view.answer(Finish((*runs, *([ended] if ended else [])), "nats", *lines))

    lowest = "**a** has the lowest loss, **2.10 nats**, ahead of"
    assert told(2.1, 2.6, lines=(3.35, 2.48)) == f"{lowest} b 2.60. Below the bigram line at 2.48: a."
    assert "None is below" in told(2.5, 2.6, lines=(3.35, 2.48))
    assert told(2.5, 2.6).endswith("b 2.60.")
    stopped = replace(line("c", 3.0), status="stopped", step=4, total_steps=9)
    assert told(2.1, ended=stopped) == f"{lowest} c 3.00. Ended early: c (at step 4)."
    assert "Ended early: c (at" in race_view.compared("heads", Finish((line("a", 2.1), stopped), "nats"))


@pytest.mark.parametrize("other", ["attention-1", "positions"])
def test_shares_after_th_and_sh(other: str, drawn) -> None:
    found = stored_race("pairs")
    e = found["letters"].index("e")

    def share(source: dict, given: str) -> str:
        return f"{source[given][e]:.0%}"

    said = answer(opened("pairs", ladder_seeing=other))
    text, last, seeing = found["text"], found["rungs"]["last"], found["rungs"][other]
    assert share(last, "th") == share(last, "sh")
    assert not lacking(
        said,
        f"the text has **{share(text, 'th')}** and **{share(text, 'sh')}**",
        f"gives e **{share(last, 'th')}** after both th and sh",
        share(seeing, "th"),
        share(seeing, "sh"),
    )
    apart = sum(abs(a - b) for a, b in zip(seeing["th"], seeing["sh"], strict=True)) / 2
    assert ("hardly" in said) == (apart < 0.05) == (other == "attention-1")
    bars = [trace for trace in drawn["ladder_pairs"].traces if trace["name"] == "the text"]
    assert len(bars) == 6
    layout = drawn["ladder_pairs"].layout
    assert [layout[f"xaxis{n}"]["domain"][1] for n in (3, 6)] == pytest.approx([1, 1])  # three fill the width
    np.testing.assert_allclose(bars[4]["y"], sorted(text["th"], reverse=True)[:5], atol=1e-6)
    order = np.argsort(np.negative(text["sh"]), kind="stable")[:5]
    for name, source in (("last", last), (other, seeing)):  # after sh, the last panel of each
        drawn_last = [t for t in drawn["ladder_pairs"].traces if t["name"] == LADDER[name].title][-1]
        np.testing.assert_allclose(drawn_last["y"], np.array(source["sh"])[order], atol=1e-6)


def standing() -> dict[str, ladder.Climbed]:
    """rung -> the training that stands for it, where one held."""
    return {name: each for name, each in ladder.shipped().rungs.items() if each.finished}


def test_published_stands_beside_ours(drawn) -> None:
    found, rungs = ladder.shipped(), standing()
    assert found.lost == ("attention-8",) and len(found.of("attention-8")) == 3
    said, deep = answer(opened("lecture")), rungs["block-8"]
    assert found.letters == 1_003_854 and round(10_000 * 64 * 128 / found.letters) == 82
    assert not lacking(
        said,
        "after 82 epochs",
        f"here it is {deep.train[-1]:.2f}, with a validation loss of **{deep.validation[-1]:.2f}**.",
        f"**{len(found.agreeing)} of {len(found.compared) + 1}** published losses",
        "*Full block ×8* ends 0.103 above, *Attention ×4* ends 0.055 above; *Attention ×8* diverges with all 3 seeds.",
    )
    published, training, unseen, seeds, seeds_held_out, cross = drawn["ladder_lecture_ends"].traces
    backwards = list(LECTURE)[::-1]
    losses = [LECTURE[name].loss for name in backwards if LECTURE[name].loss is not None]
    assert list(published["x"]) == losses
    order = [name for name in backwards if name in rungs]
    others = [each for n in order for each in found.of(n) if each.finished and each is not rungs[n]]
    for column, median_of, rest in (("train", training, seeds), ("validation", unseen, seeds_held_out)):
        assert list(median_of["x"]) == pytest.approx([getattr(rungs[n], column)[-1] for n in order])
        assert sorted(rest["x"]) == pytest.approx(sorted(getattr(each, column)[-1] for each in others))
    assert list(cross["x"]) == pytest.approx([min(min(each.train) for each in found.of("attention-8"))])
    table = {
        n: dict(zip(LECTURE, values, strict=True)) for n, values in drawn["ladder_lecture_ends"].table.items()
    }
    assert list(table["rung"].values()) == [each.rung.title for each in LECTURE.values()]
    assert table["parameters"]["block-4"] == 2_916_864 == 2 * 65 * 256 + 11 * 4 * 256**2
    assert table["seeds"] == {n: len(found.of(n)) for n in LECTURE}
    for name in rungs:
        assert table["precision"][name] == rungs[name].precision
        assert table["steps"][name] == "10,000"
    assert table["steps"]["attention-8"] == "diverged by 7,500"


def test_what_stands_in_the_fold_of_the_replication_is_in_the_file() -> None:
    told, found = [], ladder.shipped()
    for name in ("block-2", "block-4", "block-4-sinusoidal"):
        kinds = (found.of(name, init) for init in ("torch", "normal"))
        ends = [[each.train[-1] for each in kind if each.finished] for kind in kinds]
        code, text = (f"{min(losses):.2f} to {max(losses):.2f}" for losses in ends)
        told.append(f"*{LECTURE[name].rung.title}* {code} against {text}")
        assert max(ends[0]) < min(ends[1]), "the code's weights end lower with every seed"
        if (published := LECTURE[name].loss) is not None:  # "are those of the code"
            assert all(abs(loss - published) < 0.03 for loss in ends[0])
            assert all(abs(loss - published) > 0.02 for loss in ends[1])
    for name, init, whose in (("attention-4", "torch", "code"), ("block-8", "normal", "text")):
        lost = [not each.finished for each in found.of(name, init)]
        told.append(
            f"*{LECTURE[name].rung.title}* from the {whose}'s weights {sum(lost)} of {len(lost)} (step"
        )
    with_biases = [each for each in found.runs if each.biases]
    assert len(with_biases) == 2
    for biased in with_biases:
        plain = next(each for each in found.of(biased.name) if each.seed == biased.seed)
        told.append(f"{plain.train[-1]:.3f} → {biased.train[-1]:.3f}")
    unseen = {name: each.validation[-1] for name, each in standing().items()}
    for kind, depths in (("attention-", (1, 2, 4)), ("block-", (1, 2, 4, 8))):
        told.append(": " + ", ".join(f"{unseen[kind + str(n)]:.2f}" for n in depths))
    assert unseen["attention-1"] - unseen["attention-4"] > 0.3, "depth pays without a feed-forward network"
    lost = [each.validation for each in found.of("attention-8")]
    told.append(f"*Attention ×8* reached {min(map(min, lost)):.2f} at step ")
    for name in ("block-8", "block-4"):
        run = standing()[name]
        step = run.steps[int(np.argmin(run.validation))]
        told.append(f"*{LECTURE[name].rung.title}* {min(run.validation):.2f} (step {step:,})")
    told.append("*Attention ×4* 1.93 (one run held) against 1.95 to 2.05")
    whole = next(each for each in found.runs if each.name == "attention-4" and each.precision == "float32")
    told.append(f"*Attention ×4* {whole.train[-1]:.2f} at step 10,000, in bfloat16 1.96")
    deep = [
        each
        for each in found.runs
        if each.name == "attention-8" and each.seed == 1339 and each.init == "normal"
    ]
    exact, rounded = sorted(deep, key=lambda each: each.precision, reverse=True)
    step = exact.steps[-1]
    at = rounded.train[rounded.steps.index(step)]
    told.append(
        f"*Attention ×8* {exact.train[-1]:.2f} at step {step:,}, in bfloat16 {at:.2f}. So the precision is"
    )
    assert exact.precision == "float32" and at > exact.train[-1] + 50
    assert all(each.precision == "bfloat16" for each in found.runs if each.diverged is not None)
    letters, tokens = found.cuts["cut-characters"], found.cuts["cut-gpt2"]
    told.append(f"after {min(tokens.validation):.2f} nats at step 1,000: from there on it overfits")
    told += [f"**{cut.bits:.2f} bits per character**" for cut in (letters, tokens)]
    page = opened("lecture", measure="true")
    assert not lacking(" ".join(str(each.value) for each in page.markdown), *told)
    assert tokens.bits > letters.bits + 0.5
    assert (letters.parameters, tokens.parameters) == (2_916_864, 28_615_168)
    characters = 1_115_394 - 1_003_854
    assert letters.bits == pytest.approx(letters.whole / np.log(2), abs=1e-3)
    assert tokens.bits == pytest.approx(tokens.whole * 36_058 / (characters - 1) / np.log(2), rel=2e-3)


def made_up(path: Path, finished: int, begun: int = 0) -> dict:
    """A stored ladder with the first rungs at their end, every other one 0.07 above its published loss, and
    others at half way.
    """
    rungs = {}
    for i, name in enumerate(list(LECTURE)[: finished + begun]):
        steps = range(0, 10_001 if i < finished else 5_001, 1_000)
        end = (LECTURE[name].loss or 2.0) + (0.07 if i % 2 else -0.01)
        rungs[name] = {
            "parameters": 1,
            "curve": [[step, end + (steps[-1] - step) / 100_000, end + 0.1] for step in steps],
            "of": 10_000,
            "seconds": 1.0,
            "numerics": "bfloat16 on this processor" if i % 3 else "float32 on this processor",
            "processor": "one kind" if i % 3 else "another kind",
            "text": f"written by {name}",
        }
    path.write_text(json.dumps({"made": dict(ladder.shipped().made), "letters": 1_003_854, "runs": rungs}))
    return rungs


@pytest.mark.parametrize(("finished", "begun"), [(0, 1), (5, 0), (9, 2), (14, 0)])
def test_the_replication_holds_however_many_rungs_are_there(finished, begun, tmp_path, monkeypatch, drawn):
    rungs = made_up(tmp_path / "ladder.json", finished, begun)
    stored = ladder.shipped(tmp_path / "ladder.json")
    monkeypatch.setattr(replication, "shipped", lambda: stored)
    page = opened("lecture", measure="true")
    done = [name for name in list(rungs)[:finished] if LECTURE[name].loss is not None]
    off = [name for name in done if list(LECTURE).index(name) % 2]
    said, table = answer(page), drawn["ladder_lecture_ends"].table
    if done:
        assert f"**{len(done) - len(off)} of {len(done)}** published losses replicate" in said
        assert [f"*{LECTURE[name].rung.title}* ends 0.070 above" in said for name in done] == [
            name in off for name in done
        ]
    for name, each in rungs.items():
        loss, published = each["curve"][-1][1], LECTURE[name].loss
        line = (
            f"*{LECTURE[name].rung.title}* ends at {loss:.3f}, **+0.070** from the lecture's {published or 0:.2f};"
            " over the last 1,000 steps its training loss fell by 0.010. It has one seed."
        )
        assert (line in said) == (name in off)
    kinds = [(each["numerics"].split()[0], each["processor"]) for each in rungs.values()]
    told = " ".join(str(each.value) for each in page.caption)
    for precision, processor in set(kinds):
        count = kinds.count((precision, processor))
        assert f"{count} run{'s' if count > 1 else ''} in {precision} on {processor}" in told
    assert [each for each in table["precision"] if each] == [precision for precision, _ in kinds]
    assert table["steps"].count("not run") == len(LECTURE) - len(rungs)
    assert len(opened("lecture", ladder_lecture="curves").exception) == 0


def test_the_lecture_s_curves_and_folds(drawn) -> None:
    found = standing()
    page = opened("lecture", ladder_lecture="curves", measure="true")
    told = " ".join(str(each.value) for each in page.caption).replace("\\", "").replace("(R)", "")
    assert not lacking(told, *(each.processor.replace("(R)", "") for each in found.values()))
    lines = {line["name"]: line for line in drawn["ladder_lecture_curves"].traces}
    exact = [name for name, each in LECTURE.items() if each.loss is not None and not each.about]
    assert len(lines) == 3 * len(exact) == 18
    broken = lines["Attention ×8"]  # as far as it held
    assert max(broken["y"]) < 4 and broken["x"][-1] == 7_250
    for name in found.keys() & {*exact}:
        run = found[name]
        for losses, label in ((run.train, ""), (run.validation, ", held-out")):
            line = lines[f"{LECTURE[name].rung.title}{label}"]
            np.testing.assert_allclose(line["x"], run.steps[1:])
            np.testing.assert_allclose(line["y"], losses[1:])
    stored = json.loads((ROOT / "checkpoints" / "shakespeare-modern" / "metrics.json").read_text())
    curve = stored["curve"][1:]
    read = [look["step"] * 32 * 128 / ladder.shipped().letters for look in curve]
    for trace, kind in zip(drawn["ladder_readings"].traces, ("train", "validation"), strict=True):
        np.testing.assert_allclose(trace["y"], [look[f"{kind}_loss"] for look in curve])
        np.testing.assert_allclose(trace["x"], read)


def test_a_rung_s_sample_stands_beside_the_short_ladder_s() -> None:
    page = opened("lecture", measure="true", ladder_wrote="attention-4")
    long, title = standing()["attention-4"], LADDER["attention-4"].title
    short = next(run for run in lab_races.shipped(lab_races.RUNGS).runs if run.name == title)
    assert [each.value for each in page.code][:2] == [long.text, short.history.samples[-1].text]
    assert not lacking(
        " ".join(each.value for each in page.caption),
        f"training loss {long.train[-1]:.2f}",
        f"validation loss {short.history.evaluations[-1].validation_loss:.2f}",
    )


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_has_its_answer(name: str, drawn) -> None:
    said = answer(opened("race", ladder_question=name))
    key, unit = ("validation_bits", "bits per character") if name == "cuts" else ("validation_loss", "nats")
    over, found = over_seeds(name, key), ends(name, key)
    seeds = len(QUESTIONS[name].seeds)
    best, worst = min(found, key=found.__getitem__), max(found, key=found.__getitem__)
    stalled = stalls(name, key)
    if name.startswith("norms") and any(stalled.values()) and corpora.shakespeare_path():  # which is counted
        for who, count in stalled.items():
            assert (f"**{who}** stalled with {count}" in said) == bool(count)
        assert f"Medians: {best} {found[best]:.2f}, " in said and f", {worst} {found[worst]:.2f}." in said
    else:
        assert f"**{best}** has the lowest loss, **{found[best]:.2f} {unit}**" in said
        assert f"{worst} the highest, {found[worst]:,.2f} (medians of {seeds} seeds, " in said
        alike = max(over[best]) >= min(over[worst])
        assert ("within the variation between seeds" in said) == alike
    traces = drawn[f"race_chart_question_{name}"].traces
    thin = [trace for trace in traces if trace.get("line", {}).get("width") == 1.2]
    assert len(thin) == (seeds - 1) * len(over)
    stored = stored_race(name)
    last = [run for run in stored["runs"] + stored["repeats"] if run["name"] == stored["runs"][-1]["name"]]
    last.sort(key=lambda run: run["looks"][-1][key])
    del last[(len(last) - 1) // 2]  # the median, which is thick
    for line, run in zip(thin[-len(last) :], last, strict=True):
        looks = [look[key] for look in run["looks"] if not look["complete"]]
        np.testing.assert_allclose(line["y"], looks, rtol=1e-5)


def test_what_each_modern_part_buys_is_as_the_explanation_says() -> None:
    over = over_seeds("parts")
    base = median(over["GPT-2's parts"])
    gains = {who: (base - median(losses)) / base for who, losses in over.items()}
    assert f"lowers the loss by {gains['RoPE']:.0%}" in race_view.TEXT["texts"] and max(over["RoPE"]) < 2.3
    for who in ("RMSNorm", "SwiGLU", "QK-norm"):
        assert 0.0005 < gains[who] < 0.015 and max(over[who]) > min(over["GPT-2's parts"])


def stalls(race: str, key: str = "validation_loss") -> dict[str, int]:
    """name -> how many of its seeds end near the unigram loss."""
    low, high = 3.347 - 0.15, 4.347
    return {who: sum(low <= loss <= high for loss in each) for who, each in over_seeds(race, key).items()}


def test_how_many_seeds_stall_is_as_the_explanation_says() -> None:
    counts = {depth: stalls(f"norms-{depth}") for depth in NORM_DEPTHS}
    assert [counts[depth]["post-norm"] for depth in NORM_DEPTHS] == [0, 2, 3]
    assert "of five, none at 4 blocks, two at 12 and three at 24" in race_view.TEXT["texts"]
    assert counts[24]["post-norm, warm-up"] == 1
    assert not any(counts[depth][who] for depth in NORM_DEPTHS for who in ("pre-norm", "pre-norm, warm-up"))


def test_what_is_said_of_widths_heads_and_depth_is_in_the_stored_races() -> None:
    def spread(race: str) -> float:
        medians = [median(losses) for losses in over_seeds(race).values()]
        return max(medians) - min(medians)

    widths, rungs = over_seeds("widths"), over_seeds("ladder")
    assert "the number of heads matters little, a wider feed-forward network more" in unfolded(
        race_view.TEXT["why"]
    )
    assert spread("widths") > 2 * spread("heads") and max(widths["d_ff 8x"]) < min(widths["d_ff 1x"])
    assert "In these 500 steps depth pays off only with the feed-forward network" in unfolded(
        rungs_view.TEXT["why"]
    )
    assert min(rungs["Attention ×8"]) > min(rungs["Attention ×1"])
    assert max(rungs["Full block ×8"]) < min(rungs["Full block ×1"])


def test_how_post_norm_s_other_seeds_train_is_as_the_explanation_says() -> None:
    assert (
        "At 4 and 12 blocks the other seeds, with or without a warm-up, end within 0.1 nats of pre-norm's"
        " median; at 24, three of six end 0.5 to 0.8 above it." in unfolded(race_view.TEXT["texts"])
    )
    for depth in NORM_DEPTHS:
        over = over_seeds(f"norms-{depth}")
        pre, post = ([*over[name], *over[f"{name}, warm-up"]] for name in ("pre-norm", "post-norm"))
        others = [loss - median(pre) for loss in post if loss < 3.347 - 0.15]
        behind = [loss for loss in others if loss > 0.1]
        assert len(behind) == (3 if depth == 24 else 0) and all(0.5 < each < 0.8 for each in behind)
        assert depth < 24 or len(others) == 6


def unfolded(text: str) -> str:
    return " ".join(text.split())


def test_a_number_stands_on_the_side_of_its_point_that_the_chosen_step_leaves_free() -> None:
    losses = {"last": (2.5, 2.6), "mean": (3.2, 3.3), "attention-1": (2.4, 2.5), "values": (2.7, 2.8)}
    for chosen, left in (("attention-1", {"attention-1"}), ("mean", set())):
        figure = rungs_view.rungs(losses, chosen, {}, list(losses))
        numbers = next(trace for trace in figure.traces if trace.get("mode") == "text")
        sides = dict(zip(losses, numbers["textposition"], strict=True))
        assert {name for name, side in sides.items() if side == "middle left"} == left
