"""Makes what is stored under checkpoints/: `python -m studies.experiments NAME [OPTION ...]`.

`--list` prints every NAME with what it writes; `NAME --help` prints the options of one. Long trainings are
resumable: the same command goes on from where it was interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

# Name -> (the module, here or elsewhere, whose main(arguments) runs it, what it writes)
EXPERIMENTS = {
    "benchmark": (
        "benchmark_runs",
        "benchmark.json: marks of SmolLM2 on our questions, before and after training on them, over seeds",
    ),
    "bigrams": (
        "bigram_expectations",
        "races/pairs.json: what rungs of the ladder expect after a letter or two",
    ),
    "bugs": ("bug_races", "bugs/: every fault beside its healthy twin"),
    "distillation": ("distil_runs", "distillation.json: students of a shipped model, over seeds"),
    "doctor": ("studies.lab.doctor.table", "doctor.json: which check finds which bug"),
    "dropout": ("dropout_runs", "dropout.json: models with and without dropout, over seeds"),
    "encoder-decoders": ("shipped_pairs", "paired/: the encoder-decoders and the classifier"),
    "experts": ("expert_runs", "experts.json: mixtures of experts, balanced and not, over seeds"),
    "extrapolation": ("extrapolation", "positions/seeds.json: the models of Extrapolation, with other seeds"),
    "finetune": (
        "finetune_runs",
        "finetune.json: models taught a fact, a style and another text, over seeds",
    ),
    "fixed-memory": (
        "fixed_memory",
        "fixed_memory.json: recall with attention, with memories of fixed size, and with both, over seeds",
    ),
    "ladder": ("ladder", "ladder.json: the lecture's experiment, repeated"),
    "masks-swapped": ("masks_swapped", "swapped.json: the two masks of an encoder-decoder swapped"),
    "no-causal-mask": ("no_causal_mask", "unmasked.json and square/: a decoder without its mask"),
    "no-feedforward": (
        "no_feedforward",
        "feedforward.json: tasks learned with and without feed-forward networks, over seeds",
    ),
    "no-residual": ("no_residual", "residuals.json: models without residual connections"),
    "preferences": ("preference_runs", "preferences.json: a model trained by preferences (DPO), over seeds"),
    "races": ("lab_races", "races/: the races that are shown before anybody presses a button"),
    "reward": ("reward_runs", "reward.json: a model trained by reward, over seeds"),
    "scaling": ("scaling", "scaling.json: models of many sizes for the same work"),
    "smaller-caches": ("smaller_caches", "caches.json: SmolLM2 with smaller KV caches, over passages"),
    "story": ("studies.lab.doctor.story", "story.json: a Transformer that does not learn, and why"),
    "stretched-rope": (
        "stretched_rope",
        "positions/stretched.json: RoPE models with slower frequencies, over seeds",
    ),
    "timelapse": ("timelapse", "timelapse/: one training at many of its steps"),
    "tools": ("tool_runs", "tools.json: a model that learns to call a calculator, over seeds"),
}
MODELS = ("shipped", "a shipped model, or `positions` or `tasks` for all of these")


def main(arguments: Sequence[str]) -> None:
    """Runs the experiment of the first argument with the rest as its options."""
    name, *options = arguments or ["--help"]
    if name in ("-h", "--help", "--list"):
        from studies.experiments.shipped import ALL_RECIPES

        rows = {name: what for name, (_, what) in EXPERIMENTS.items()}
        rows |= {name: f"{name}/: a shipped model" for name in ALL_RECIPES}
        width = max(map(len, rows))
        sys.stdout.write(
            (__doc__ or "") + "\n" + "".join(f"{name:{width}}  {what}\n" for name, what in rows.items())
        )
        return
    module, _ = EXPERIMENTS.get(name, MODELS)
    path = module if "." in module else f"studies.experiments.{module}"
    import_module(path).main(options if name in EXPERIMENTS else arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
