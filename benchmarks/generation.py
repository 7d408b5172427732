"""Tokens a second when one text is written, beside Hugging Face's `generate` of the same size, interleaved in
one run.

    python -m benchmarks.generation [--rounds 15] [--positions learned rope alibi]

Batch 1, 256 tokens after one, sampled at temperature 0.8; 4 layers x 128 wide, 4 heads, 65 characters,
context 256, float32, one thread. Ours is `engine.sample.generate`, what the app itself calls: with the KV
cache, and without it (then every step reads the whole text again). Theirs is GPT2LMHeadModel with its own
cache. It has learned positions; ours with RoPE and ALiBi are measured beside it as well.

Each round runs every contender once. A ratio is the median over rounds of the two times of the same round, so
that a machine which others use too slows both. The processor's own seconds are beside the clock's: they leave
out the time in which others were served.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import replace

import torch

from benchmarks.report import Goals, finish, table
from engine.config import ModelConfig, SampleConfig
from engine.model import Transformer, build
from engine.sample import generate
from studies.costs.presets import PRESETS

TOKENS = 256
CLASSIC = replace(
    PRESETS["classic"].model,
    vocab_size=65,
    context=TOKENS,
    d_model=128,
    n_layers=4,
    n_heads=4,
    d_ff=512,
    dropout=0.0,
)
WARM = 2  # rounds that are not counted
# Of a token, products with the weights take a third: they read 3 MB, whatever stands between them.
GOALS: Goals = {"vs_hugging_face": (">=", 3.5), "cache_gains": (">=", 5.0)}
Writer = Callable[[], int]  # writes TOKENS tokens and returns how many it wrote


def our_model(position: str) -> Transformer:
    return build(ModelConfig(**{**CLASSIC.to_dict(), "position": position})).requires_grad_(False).eval()


def ours(model: Transformer, *, cached: bool) -> Writer:
    sampling = SampleConfig(temperature=0.8, seed=1)
    return lambda: len(list(generate(model, [0], TOKENS, sampling, cached=cached)))


def theirs() -> Writer:
    """Hugging Face's own loop over its own model, cached, with nothing but the temperature between logits and
    draw.
    """
    from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel
    from transformers.utils import logging

    logging.set_verbosity_error()
    warnings.filterwarnings("ignore", module="transformers")
    sizes = GPT2Config(
        vocab_size=CLASSIC.vocab_size,
        n_positions=CLASSIC.context,
        n_embd=CLASSIC.d_model,
        n_layer=CLASSIC.n_layers,
        n_head=CLASSIC.n_heads,
        activation_function="gelu",
        bos_token_id=None,
        eos_token_id=None,
    )
    model = GPT2LMHeadModel(sizes).eval()
    settings = GenerationConfig(
        do_sample=True,
        temperature=0.8,
        top_k=0,
        top_p=1.0,
        min_new_tokens=TOKENS,
        max_new_tokens=TOKENS,
        use_cache=True,
        eos_token_id=None,
        pad_token_id=0,
    )
    prompt = torch.zeros(1, 1, dtype=torch.int64)
    mask = torch.ones_like(prompt)

    def write() -> int:
        with torch.inference_mode():
            return model.generate(prompt, attention_mask=mask, generation_config=settings).shape[1] - 1

    return write


def measure(positions: list[str], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Contender -> (seconds on the clock, seconds of the processor) in each round."""
    writers = {"hugging_face": theirs()}
    for position in positions:
        model = our_model(position)
        writers[position] = ours(model, cached=True)
        writers[f"{position} uncached"] = ours(model, cached=False)
    seconds: dict[str, list[tuple[float, float]]] = {who: [] for who in writers}
    for turn in range(rounds + WARM):
        for who, write in writers.items():
            gc.collect()  # the litter of one is not swept in another's time
            clock, processor = time.perf_counter(), time.thread_time()
            written = write()
            spent = (time.perf_counter() - clock, time.thread_time() - processor)
            if written != TOKENS:
                raise RuntimeError(f"{who} wrote {written} tokens instead of {TOKENS}")
            if turn >= WARM:
                seconds[who].append(spent)
    return seconds


def ratio(slow: list[tuple[float, float]], fast: list[tuple[float, float]], which: int = 0) -> float:
    """How many times as long `slow` takes: the median over rounds. `which`: 0 by the clock, 1 by the
    processor.
    """
    return statistics.median(s[which] / f[which] for s, f in zip(slow, fast, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--positions",
        nargs="+",
        default=["learned", "rope", "alibi"],
        choices=["none", "sinusoidal", "learned", "rope", "alibi", "t5"],
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    seconds = measure(options.positions, options.rounds)
    peer, figures = seconds["hugging_face"], {}
    rows: list[dict[str, object]] = []
    for who, times in seconds.items():
        clock = [c for c, _ in times]
        rows.append(
            {
                "who": who,
                "tokens/s": TOKENS / statistics.median(clock),
                "us a token": statistics.median(clock) / TOKENS * 1e6,
                "processor us": statistics.median(p for _, p in times) / TOKENS * 1e6,
                "min us": min(clock) / TOKENS * 1e6,
                "max us": max(clock) / TOKENS * 1e6,
                "hugging_face takes": ratio(peer, times),
                "by processor": ratio(peer, times, 1),
            }
        )
    table(rows)
    for position in options.positions:
        prefix = "" if position == "learned" else f"{position}."
        cached, uncached = seconds[position], seconds[f"{position} uncached"]
        figures[f"{prefix}vs_hugging_face"] = ratio(peer, cached)
        figures[f"{prefix}vs_hugging_face.processor"] = ratio(peer, cached, 1)
        figures[f"{prefix}cache_gains"] = ratio(uncached, cached)
        figures[f"{prefix}tokens_per_second"] = TOKENS / statistics.median(c for c, _ in cached)
        figures[f"{prefix}uncached.tokens_per_second"] = TOKENS / statistics.median(c for c, _ in uncached)
    figures["hugging_face.tokens_per_second"] = TOKENS / statistics.median(c for c, _ in peer)
    finish("generation", figures, {goal: bound for goal, bound in GOALS.items() if goal in figures})


if __name__ == "__main__":
    main()
