"""Models to trace: the one in the bar, and well-known sizes."""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import ModelConfig, Seq2SeqConfig
from engine.measure.shapes.operations import (
    TraceStep,
    trace,
    trace_pair,
)
from engine.parts.registry import HEALTHY, Parts
from engine.presets import PRESETS
from engine.sample.pairs import pair_steps
from engine.seq2seq import Seq2Seq
from pages.inside.shapes import words
from ui import widgets
from ui.model_bar import Subject

OWN, WRITES = "own", "writes"


@dataclass(frozen=True)
class Source:
    """Something that can be traced. `only` keeps a part of the steps. For a `pair` it is the half that
    writes, `written` tokens after a source of `tokens`.
    """

    title: str
    note: str
    config: ModelConfig
    tokens: int
    only: str = ""  # "block", or "attention" within it
    parts: Parts = HEALTHY
    pair: Seq2SeqConfig | None = None
    written: int = 0


EXAMPLES = {
    "gpt2": Source(
        "GPT-2 small",
        f"Published sizes ({PRESETS['gpt2'].source}), at its full context of 1,024 tokens.",
        PRESETS["gpt2"].model,
        1024,
    ),
    "llama2-7b": Source(
        "LLaMA-2 7B",
        f"Published sizes ({PRESETS['llama2-7b'].source}), at its full context of 4,096 tokens.",
        PRESETS["llama2-7b"].model,
        4096,
    ),
    "llama2-70b": Source(
        "LLaMA-2 70B",
        f"Published sizes ({PRESETS['llama2-70b'].source}): 64 query heads share 8 key-value heads.",
        PRESETS["llama2-70b"].model,
        4096,
    ),
    "block": Source(
        "One block",
        "T = 16 tokens, d = 512, H = 8 heads.",
        ModelConfig(context=16, d_model=512, n_layers=1, n_heads=8, position="none", norm_bias=True),
        16,
        "block",
    ),
    "gpt": Source(
        "A small GPT",
        "T = 5 tokens, d = 256, V = 1,000, 6 layers, 8 heads: the logits are (5, 1,000).",
        ModelConfig(vocab_size=1000, context=5, d_model=256, n_layers=6, n_heads=8),
        5,
    ),
    "multihead": Source(
        "Tiny multi-head",
        "One attention layer with 2 heads on (1, 3, 4): follow (1, 3, 4) → (1, 3, 2, 2) → (1, 2, 3, 2) → … →"
        " (1, 3, 4).",
        ModelConfig(context=3, d_model=4, n_layers=1, n_heads=2, position="none"),
        3,
        "attention",
    ),
}


def chosen_source(subject: Subject) -> tuple[str, Source]:
    halves = {OWN: words.THIS_MODEL}
    if subject.pair is not None:
        halves = {OWN: words.READER, WRITES: words.WRITER}
    names = halves | {key: source.title for key, source in EXAMPLES.items()}
    key = widgets.select(words.TRACE, names, "shapes_source", kind="list", hidden=True)
    if key in EXAMPLES:
        return key, EXAMPLES[key]
    if key == WRITES and subject.pair is not None:
        return WRITES, _writer(subject, subject.pair.model)
    return OWN, Source(
        words.THIS_MODEL,
        words.bar_note(subject.title, len(subject.ids)),
        subject.config,
        len(subject.ids),
        parts=subject.model.parts,
    )


def _writer(subject: Subject, model: Seq2Seq) -> Source:
    written = sum(1 for _ in pair_steps(model, subject.ids))
    return Source(
        words.WRITER,
        words.writer_note(subject.title, written, len(subject.ids)),
        model.config.decoder,
        len(subject.ids),
        parts=model.parts,
        pair=model.config,
        written=written,
    )


def steps_of(source: Source) -> tuple[TraceStep, ...]:
    if source.pair is not None:
        both = trace_pair(source.pair, source.tokens, source.written, source.parts)
        return tuple(step for step in both if step.stack != "encoder")
    steps = trace(source.config, source.tokens, source.parts)
    if source.only == "block":
        return tuple(s for s in steps if s.stage == "block")
    return tuple(s for s in steps if s.stage == "block" and s.part == "attention") if source.only else steps
