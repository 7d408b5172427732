"""A run manager for page tests: it keeps runs as they are put in, and writes down what it is asked to do."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from engine.checkpoints import Checkpoint
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import RunError
from engine.model import build
from engine.training.records import Evaluation, Sample, Step
from runs.history import HistoryLog
from runs.profiles import PROFILES
from runs.state import RunSpec, RunView
from studies.costs.ledger import parameter_formula
from ui import memo

LETTERS = "".join(
    map(chr, (10, *range(32, 127), *range(161, 700)))
)  # the alphabet of its models, as long as they need


def history(steps: int) -> HistoryLog:
    """A curve that falls from 4 towards 2 nats."""
    log = HistoryLog()
    log.add(Evaluation(0, 4.2, 4.2, 0.0, False, 4.2 / math.log(2), 4.2 / math.log(2)))
    log.add(Sample(0, "\n", "xq<b>zj</b>"))
    for step in range(1, steps + 1):
        loss = 2.0 + 2.0 / step
        log.add(Step(step, loss, 1.0 / step, 1e-3, 768 * step, 0.02 * step, loss / math.log(2)))
    if steps:
        log.add(Evaluation(steps, 2.05, 2.1, 0.02 * steps, True, 2.05 / math.log(2), 2.1 / math.log(2)))
        log.add(Sample(steps, "\n", "ROMEO: what light"))
    return log


def view_of(spec: RunSpec, run: str, status: Any = "running", steps: int = 40, **rest: Any) -> RunView:
    log = history(steps)
    values: dict[str, Any] = {
        "queue_position": 0,
        "message": "",
        "precision": "float32 on this processor",
        "resumable": steps > 0,
        "warnings": (),
        "snapshots": (0, steps),
        "name": spec.name,
    } | rest
    return RunView(
        id=run,
        spec=spec,
        status=status,
        step=steps,
        total_steps=spec.train.steps,
        seconds=0.02 * steps,
        tokens_per_second=38_400.0,
        history=log.view(),
        parameters=parameter_formula(spec.model),
        version=1,
        **values,
    )


def trained(manager: Any, spec: RunSpec, at: Callable[[int], Any], steps: tuple[int, ...]) -> str:
    """The name in the bar of a finished training whose checkpoints are those of `at`, a step each; of another kind
    than the stage's own.
    """

    def checkpoint(run: str, step: int | None = None) -> Any:
        if step not in steps:
            raise RunError(f"There is no snapshot of step {step}.")
        return at(step)

    memo.clear()
    manager.views["abc"] = view_of(spec, "abc", "finished", steps[-1], snapshots=steps)
    manager.trained = checkpoint
    return "run-abc"


ASKED = (
    "pause", "resume", "step", "stop", "restart", "extend", "checkpoint", "revive", "set_learning_rate", "set_prompt"
)  # fmt: skip


class StageManager:
    """`asked` holds (what, run or None, arguments)."""

    profile = PROFILES["local"]

    def __init__(self, mine: bool = True) -> None:
        self.mine = mine
        self.views: dict[str, RunView] = {}
        self.asked: list[tuple[Any, ...]] = []
        self.status: Any = "running"
        self.refuse = ""
        self.scale: Callable[[int], float] = lambda step: 1.0  # of a model's weights: large once it diverged

    def start(self, spec: RunSpec, owner: str) -> str:
        if self.refuse:
            raise RunError(self.refuse)
        run = f"run-{len(self.views)}"
        self.views[run] = view_of(spec, run, self.status)
        self.asked.append(("start", run))
        return run

    def start_comparison(self, first: RunSpec, second: RunSpec, owner: str) -> tuple[str, str]:
        one, other = self.start(first, owner), self.start(second, owner)
        self.change(one, beside=other)
        self.change(other, beside=one)
        return one, other

    def start_race(self, specs: Sequence[RunSpec], owner: str, title: str = "") -> tuple[str, ...]:
        name = f"race-{len(self.views)}"
        runs = tuple(self.start(spec, owner) for spec in specs)
        for run in runs:
            self.change(run, race=name, race_title=title)
        return runs

    def race(self, race: str) -> tuple[RunView, ...]:
        return tuple(view for view in self.views.values() if view.race == race)

    def start_beside(self, run: str, spec: RunSpec, owner: str) -> str:
        other = self.start(spec, owner)
        self.change(run, beside=other)
        self.change(other, beside=run)
        return other

    def view(self, run: str) -> RunView | None:
        return self.views.get(run)

    def may_control(self, run: str, owner: str) -> bool:
        return self.mine

    def watch(self, run: str) -> None:
        self.asked.append(("watch", run))

    def runs(self, owner: str) -> list[RunView]:
        return list(self.views.values()) if self.mine else []

    def change(self, run: str, **values: Any) -> None:
        self.views[run] = replace(self.views[run], **values)

    def rename(self, run: str, owner: str, name: str) -> None:
        self.change(run, name=name)

    def remove(self, run: str, owner: str) -> None:
        del self.views[run]

    def model(self, run: str, step: int | None = None) -> Checkpoint:
        """A model of the run's sizes, whose weights differ from step to step."""
        if run not in self.views:
            raise RunError("This run no longer exists.")
        self.asked.append(("model", run, step))
        spec = self.views[run].spec
        config = spec.model
        model = build(config, seed=step or 0).requires_grad_(False).eval()
        for parameter in model.parameters():
            parameter.mul_(self.scale(step or 0))
        return Checkpoint(
            model,
            model.config,
            CharTokenizer(LETTERS[: config.vocab_size - (not config.causal)]),
            {"corpus": spec.corpus, "step": step},
        )

    def __getattr__(self, what: str) -> Any:
        if what not in ASKED:
            raise AttributeError(what)

        def ask(run: str, *arguments: Any) -> None:
            if self.refuse:
                raise RunError(self.refuse)
            self.asked.append((what, run, *arguments[1:]))

        return ask
