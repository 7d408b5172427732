"""What the causal mask is for: the same training with it and without, step by step.

`python -m engine.training.unmasked` trains both (half a minute) and writes checkpoints/unmasked.json, which
comes with the app.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch

from engine import corpora
from engine.checkpoints import write_whole
from engine.config import ModelConfig, SampleConfig, TrainConfig
from engine.corpora import Corpus
from engine.model import Transformer, build
from engine.numerics import choose
from engine.parts.registry import HEALTHY
from engine.presets import PRESETS
from engine.sample.generate import generate
from engine.training.batches import Batches
from engine.training.evaluation import loss_of, measure
from engine.training.optim import Optimiser, learning_rate_factor

SHIPPED = Path(__file__).parents[2] / "checkpoints" / "unmasked.json"
PRESET, PROMPT = "fast", "ROMEO:"
STEPS, EVERY = 200, 10
WRITTEN, SEEN = 60, 8192  # letters; tokens of unseen text


@dataclass(frozen=True)
class Learning:
    """One training: at each of `steps`, the `losses` on unseen text (nats per letter, what training
    minimises) and the `texts` that the model writes after PROMPT, a letter at a time.
    """

    steps: tuple[int, ...]
    losses: tuple[float, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Both:
    """The same model, texts, seed and steps with the causal mask and without."""

    masked: Learning
    unmasked: Learning


def learn(model_config: ModelConfig, config: TrainConfig, corpus: Corpus) -> Iterator[tuple[int, float, str]]:
    """(step, loss on unseen text, what is written) every EVERY steps: next-token training, also without the
    mask, which `engine.training.train` guards against.
    """
    numerics = choose("float32", "cpu")
    model = build(model_config, config.seed, init=config.init)
    HEALTHY.mode(model, True)
    optimiser, batches = Optimiser(model, config, numerics), Batches(corpus, model_config, config)
    for step in range(config.steps + 1):
        if step % EVERY == 0:
            loss = measure(model, batches, corpus.validation, SEEN).nats
            yield step, loss, written(model, corpus, config.seed)
        if step < config.steps:
            optimiser.update(
                loss_of(model, batches.at(step), numerics.device), learning_rate_factor(config, step)
            )


def written(model: Transformer, corpus: Corpus, seed: int) -> str:
    """WRITTEN letters after PROMPT, each drawn from the last position's probabilities."""
    HEALTHY.mode(model, False)
    ids = generate(
        model,
        corpus.tokenizer.encode(PROMPT),
        WRITTEN,
        SampleConfig(temperature=0.8, seed=seed),
        cached=False,
    )
    text = corpus.tokenizer.decode(list(ids))
    HEALTHY.mode(model, True)
    return text


def both(corpus: Corpus, steps: int) -> Both:
    """Trains with the mask, then without."""
    preset, found = PRESETS[PRESET], []
    config = replace(preset.train or TrainConfig(), steps=steps)
    for causal in (True, False):
        model = replace(preset.model, causal=causal, vocab_size=corpus.vocab_size)
        rows = list(learn(model, config, corpus))
        found.append(Learning(*(tuple(column) for column in zip(*rows, strict=True))))
    return Both(*found)


@cache
def shipped(path: Path = SHIPPED) -> Both:
    """What comes with the app: STEPS steps of the preset "fast" on Tiny Shakespeare."""
    read = json.loads(path.read_text(encoding="utf-8"))
    return Both(
        *(
            Learning(*(tuple(read[name][field]) for field in ("steps", "losses", "texts")))
            for name in ("masked", "unmasked")
        )
    )


def main() -> None:
    torch.set_num_threads(1)
    found = both(corpora.load("shakespeare"), STEPS)
    data = {
        name: {"steps": one.steps, "losses": [round(x, 4) for x in one.losses], "texts": one.texts}
        for name, one in (("masked", found.masked), ("unmasked", found.unmasked))
    }
    write_whole(SHIPPED, json.dumps(data, ensure_ascii=False, indent=1).encode())


if __name__ == "__main__":
    main()
