"""Seconds per step of LoRA fine-tuning beside transformers and peft on a model of the same size, interleaved.

    python -m benchmarks.finetune [--rounds 10] [--small]

Both read the lessons of *After pre-training > Fine-tuning* at once, rank 4 on the matrices of attention,
AdamW, float32. The sizes are SmolLM2-135M's, the weights random: a step takes the same time. `--small` is a
model of a thousandth.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.report import Goals, finish, table
from engine.config import ModelConfig
from engine.model import Transformer, build
from studies.after.finetune import IGNORED, FinetuneRecipe, FinetuneStep, fine_tune_on
from studies.costs.presets import PRESETS
from studies.weights.export.hugging_face import plan

GOALS: Goals = {"vs_peft": (">=", 1.1)}
SENTENCES, LENGTH = 7, 14  # as in the app
RANK = 4


def sizes(small: bool) -> ModelConfig:
    config = PRESETS["smollm2-135m"].model
    if not small:
        return config
    return replace(
        config, vocab_size=96, d_model=64, n_layers=2, n_heads=4, n_kv_heads=2, d_head=16, d_ff=128
    )


def ours(model: Transformer, data: tuple[Tensor, Tensor], rounds: int) -> Callable[[], None]:
    steps: Iterator[FinetuneStep] = fine_tune_on(model, data, FinetuneRecipe(rank=RANK, steps=rounds))
    next(steps)  # before the first step

    def step() -> None:
        next(steps)

    return step


def theirs(model: Transformer, data: tuple[Tensor, Tensor]) -> Callable[[], None]:
    import transformers
    from peft import LoraConfig, get_peft_model

    facts = dict(plan(model).facts)
    other = transformers.AutoModelForCausalLM.from_config(
        transformers.LlamaConfig(
            **{k: v for k, v in facts.items() if k not in ("model_type", "architectures")}
        )
    )
    names = ["q_proj", "k_proj", "v_proj", "o_proj"]
    tuned = get_peft_model(other, LoraConfig(r=RANK, lora_alpha=RANK, target_modules=names, bias="none"))
    trained = [parameter for parameter in tuned.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=4e-3, weight_decay=0.0)

    def step() -> None:
        logits = tuned(data[0], use_cache=False).logits
        loss = F.cross_entropy(logits.flatten(0, 1), data[1].flatten(), ignore_index=IGNORED)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = build(sizes(options.small)).requires_grad_(False).eval()
    tokens = torch.randint(model.config.vocab_size, (SENTENCES, LENGTH + 1))
    data = tokens[:, :-1], tokens[:, 1:]
    steps = {"glassformer": ours(model, data, options.rounds + 1), "transformers + peft": theirs(model, data)}
    seconds: dict[str, list[float]] = {who: [] for who in steps}
    for turn in range(options.rounds + 1):
        for who, step in steps.items():
            started = time.perf_counter()
            step()
            if turn:
                seconds[who].append(time.perf_counter() - started)
    mine, other = seconds.values()
    ratio = statistics.median(b / a for a, b in zip(mine, other, strict=True))
    table([{"who": who, "ms": statistics.median(times) * 1e3} for who, times in seconds.items()])
    finish("finetune", {"vs_peft": ratio, "ms": statistics.median(mine) * 1e3}, GOALS)


if __name__ == "__main__":
    main()
