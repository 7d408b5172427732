"""Every control of a configuration: its words, when it matters, and how a field's value stands in its widget.

One registry holds them all; a control's key is the field's name, also in the URL. A widget's default is the
chosen preset's value, and Streamlit leaves a value that equals its default out of the URL: a link therefore
holds the preset's name and the differences from it, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

from engine.config import LEARNED_MIXERS, ModelConfig, TrainConfig
from engine.presets import Preset
from studies.costs.cards.norms import NORM_CARDS
from studies.costs.presets import PRESETS
from ui.text.markdown import whole

TRAINABLE = {name: preset for name, preset in PRESETS.items() if preset.train is not None}
FIRST = "fast"
KINDS = ("char", "byte", "bpe")
NEWLINE = "⏎"  # how a line break is typed and shown in one-line fields

Values = dict[str, Any]
HINTS = {**get_type_hints(ModelConfig), **get_type_hints(TrainConfig)}


@dataclass(frozen=True)
class Control:
    """One field: its words, and when it matters (elsewhere it is greyed out). `step` is what + and - add."""

    field: str
    label: str
    help: str
    step: float = 1
    matters: Callable[[Values], bool] = lambda values: True


def _is(field: str, *wanted: object) -> Callable[[Values], bool]:
    return lambda values: values[field] in wanted


def _experts() -> Callable[[Values], bool]:
    return lambda values: values["n_experts"] != 0


def _norm_reads(field: str) -> Callable[[Values], bool]:
    return lambda values: field in NORM_CARDS[values["norm"]].reads


def _with_bias() -> str:
    return ", ".join(card.title for card in NORM_CARDS.values() if "norm_bias" in card.reads)


SIZES = (
    Control(
        "context",
        "Context",
        "Sequence length: how many tokens the model sees at once. A token is a character unless Data says"
        " otherwise.",
        16,
    ),
    Control("d_model", "Width", "d_model: the length of the vector at each position.", 16),
    Control("n_layers", "Layers", "Number of blocks."),
    Control("n_heads", "Heads", "Attention heads in each block; they share the width."),
    Control(
        "n_kv_heads",
        "Key-value heads",
        "0: one per head. 1: all heads share one (MQA). In between: groups of heads share one (GQA).",
    ),
    Control("d_head", "Width of a head", "0: the width divided by the heads.", 4),
    Control("d_ff", "Feed-forward width", "0: 4 times the width, or 8/3 of it for gated kinds.", 32),
    Control(
        "dropout",
        "Dropout",
        "Share of activations set to zero at random during training; 0 switches it off.",
        0.05,
    ),
)
PARTS = (
    Control("position", "Positions", "How the model encodes the order of tokens."),
    Control(
        "rope_theta",
        "RoPE base",
        "Sets the rotation speeds: a larger base makes the slowest pairs rotate more slowly.",
        1000.0,
        _is("position", "rope"),
    ),
    Control(
        "rope_fraction",
        "RoPE share",
        "Share of a head's dimensions that RoPE rotates; 1 is all of them.",
        0.25,
        _is("position", "rope"),
    ),
    Control(
        "mixer", "Mixer", "How tokens exchange information: not at all, by averages, or by full attention."
    ),
    *(
        Control(field, label, text, 8, _is("mixer", "mla"))
        for field, label, text in (
            (
                "d_latent",
                "Latent width",
                "MLA: the vector that keys and values are made of. 0: 4 head widths.",
            ),
            (
                "d_rotated",
                "Rotated width",
                "MLA: dimensions beside the head's that RoPE rotates. 0: half of it.",
            ),
            ("d_query", "Query width", "MLA: the vector that queries are made of. 0: the stream itself."),
        )
    ),
    Control(
        "causal",
        "Causal mask",
        "On: a token attends only to itself and earlier tokens. Off: to all, for the masked objective or to"
        " see what the mask is for.",
    ),
    Control(
        "window",
        "Window",
        "Sliding window: how many positions a token attends to, itself included. 0: all (Mistral 7B: 4,096).",
        8,
        _is("causal", True),
    ),
    Control(
        "global_every",
        "Layers without a window",
        "With a window: how often a layer has none and attends to everything. 0: never (Gemma 3: every 6th,"
        " gpt-oss: every 2nd).",
        matters=lambda values: bool(values["window"]),
    ),
    Control(
        "qk_norm",
        "QK-norm",
        "Normalises queries and keys to RMS 1 (length √d_head) before they are compared; this bounds the"
        " scores.",
        matters=_is("mixer", *LEARNED_MIXERS),
    ),
    Control(
        "qk_gain",
        "QK-norm gain",
        "With QK-norm: a learned scale for each dimension of queries and keys, as in Qwen3.",
        matters=lambda values: bool(values["qk_norm"]) and values["mixer"] in LEARNED_MIXERS,
    ),
    Control(
        "score_scale",
        "Scaled scores",
        "Divides scores by √d_head. T5 does not.",
        matters=_is("mixer", *LEARNED_MIXERS, "similarity"),
    ),
    Control(
        "output_projection",
        "Output projection",
        "The matrix W_O that mixes the heads.",
        matters=_is("mixer", *LEARNED_MIXERS),
    ),
    Control(
        "attention_bias",
        "Attention biases",
        "A bias for queries, keys, values and output.",
        matters=_is("mixer", *LEARNED_MIXERS),
    ),
    Control(
        "output_bias",
        "Bias of W_O",
        "With attention biases: one for the output as well. Qwen2.5 has none there.",
        matters=_is("attention_bias", True),
    ),
    Control(
        "wiring",
        "Wiring",
        "Norm before each sublayer (pre), after it (post), both sublayers in parallel, or no residual"
        " stream.",
    ),
    Control("norm", "Norm", "Normalisation, which keeps the vectors' size in check."),
    Control(
        "norm_gain",
        "Norm gain",
        "A learned scale for each dimension of a norm.",
        matters=_norm_reads("norm_gain"),
    ),
    Control("norm_bias", "Norm bias", f"A learned offset; {_with_bias()} only."),
    Control(
        "norm_eps",
        "Norm epsilon",
        "Keeps a norm from dividing by zero.",
        1e-5,
        _norm_reads("norm_eps"),
    ),
    Control("ffn", "Feed-forward", "Its nonlinearity; swiglu and geglu have a third matrix, the gate."),
    Control(
        "ffn_bias",
        "Feed-forward biases",
        "A bias for each of its matrices.",
        matters=lambda values: values["ffn"] != "none",
    ),
    Control(
        "n_experts",
        "Experts",
        "Mixture of experts: networks of the feed-forward width, of which a router chooses for each token. 0:"
        " one network.",
        1,
        lambda values: values["ffn"] != "none",
    ),
    Control("active_experts", "Active experts", "How many of them compute each token.", 1, _experts()),
    Control(
        "shared_experts", "Shared experts", "Experts beside them that compute every token.", 1, _experts()
    ),
    Control(
        "router",
        "Router",
        "Scores of the experts. softmax: they share 1 among them. sigmoid: each for itself (DeepSeek-V3).",
        matters=_experts(),
    ),
    Control(
        "router_norm",
        "Normalised routing",
        "The weights of the active experts are divided by their sum.",
        matters=_experts(),
    ),
    Control("router_scale", "Routing scale", "A factor of those weights.", 0.1, _experts()),
    Control(
        "balance",
        "Load balancing",
        "none: as it comes. loss: an auxiliary loss (Switch). bias: a bias moves the choice (DeepSeek-V3).",
        matters=_experts(),
    ),
    Control(
        "balance_rate",
        "Balancing rate",
        "The factor of the auxiliary loss, or the step of the bias.",
        0.005,
        lambda values: values["n_experts"] != 0 and values["balance"] != "none",
    ),
    Control("tie_embeddings", "Tied embeddings", "The output matrix is the embedding itself."),
    Control(
        "output_head",
        "Output head",
        "linear: one matrix. scaled: the same, divided by √d_model (T5). masked: BERT's, with a layer before"
        " it. none: only vectors, nothing to train.",
    ),
    Control(
        "pooler",
        "Pooler",
        "A layer that gives one vector for a whole text, for example to classify it (BERT).",
    ),
    Control(
        "pooling",
        "Pooler input",
        "first: the first token's final vector, through a layer (BERT). mean: the mean of all final vectors,"
        " without a layer.",
        matters=_is("pooler", True),
    ),
    Control(
        "token_types",
        "Token types",
        "Segment embeddings: a table that says which of two texts a token belongs to (BERT: 2). Here all"
        " belong to the first. 0: none.",
    ),
    Control("embedding_scale", "Scaled embeddings", "Multiplies embeddings by √d_model, as in Gemma."),
    Control(
        "embedding_norm",
        "Embedding norm",
        "A norm before the first block, as in BERT and BLOOM.",
        matters=lambda values: values["norm"] != "none",
    ),
)
OPTIMISER = (
    Control(
        "optimizer",
        "Optimiser",
        "adamw or sgd for all weights, or muon for the blocks' matrices and adamw for the rest.",
    ),
    Control("learning_rate", "Learning rate", "AdamW's or SGD's peak learning rate.", 1e-4),
    Control(
        "muon_learning_rate",
        "Muon learning rate",
        "Muon's peak learning rate, for the blocks' matrices.",
        1e-3,
        _is("optimizer", "muon"),
    ),
    Control(
        "muon_momentum",
        "Muon momentum",
        "How much of past gradients Muon keeps.",
        0.01,
        _is("optimizer", "muon"),
    ),
    Control("beta1", "Beta 1", "AdamW: decay rate of the mean gradient. SGD: momentum.", 0.01),
    Control("beta2", "Beta 2", "AdamW: decay rate of the mean squared gradient.", 0.01),
    Control("weight_decay", "Weight decay", "Pulls matrices towards zero; 0 switches it off.", 0.01),
    Control("grad_clip", "Gradient clipping", "The largest gradient norm allowed; 0 means no limit.", 0.1),
    Control(
        "init",
        "Initialisation",
        "Standard deviations of the initial weights. scaled: 0.02, less for the matrices that write to the"
        " stream (GPT-2). plain: 0.02 for all. fan_in: 1/√inputs for matrices. normal: as fan_in, with 1 for"
        " embeddings.",
    ),
    Control(
        "precision", "Precision", "auto: bfloat16 where it is faster on this machine, otherwise float32."
    ),
    Control("seed", "Seed", "Fixes the initial weights and the batches: the same seed gives the same run."),
)
SCHEDULE = (
    Control(
        "objective",
        "Objective",
        "next_token: predict what comes next (GPT). masked: fill in masked tokens from both sides (BERT).",
    ),
    Control(
        "mask_rate",
        "Masking rate",
        "Share of tokens that the masked objective hides.",
        0.05,
        _is("objective", "masked"),
    ),
    Control(
        "repeat",
        "Windows that repeat",
        "Share of training windows that are their opening characters repeated over and over: looking back"
        " pays off there, so heads learn to copy. 0: the text as it is.",
        0.1,
    ),
    Control("steps", "Steps", "Number of weight updates.", 100),
    Control(
        "seconds",
        "Seconds",
        "Training ends after this many seconds of compute time, even before the last step. 0: no time limit.",
        5,
    ),
    Control("batch_size", "Batch size", "Number of text windows per step."),
    Control("schedule", "Schedule", "How the learning rate falls from its peak to its final value."),
    Control("warmup_steps", "Warm-up", "Steps in which the learning rate rises from zero to its peak.", 10),
    Control(
        "min_lr_fraction",
        "Final rate",
        "The learning rate one step after the last, as a share of the peak.",
        0.05,
        _is("schedule", "linear", "cosine"),
    ),
)
LOOKS = (
    Control("eval_every", "Validate every", "Steps between validations; 0: only at the end.", 25),
    Control(
        "eval_tokens",
        "Validation size",
        "Tokens read at each validation; 0: the whole split. The last validation always reads all of it.",
        4096,
    ),
    Control("sample_every", "Sample every", "Steps between samples of the model's own text; 0: never.", 25),
    Control(
        "look_early",
        "Validate early",
        "Also validates and samples after 1, 2, 5, 10, 20, 50 … steps, since most is learned early.",
    ),
    Control(
        "sample_length",
        "Sample length",
        "Tokens in a sample: characters, unless Data says otherwise.",
        40,
        lambda values: values["sample_every"] != 0,
    ),
    Control(
        "sample_temperature",
        "Temperature",
        "0: always the likeliest token. 1: the model's own distribution. Above 1: flatter, so more random.",
        0.1,
    ),
    Control(
        "sample_prompt",
        "Prompt",
        f"What a sample continues; {NEWLINE} is a line break. It can be changed during the run.",
    ),
    Control(
        "snapshot_every",
        "Snapshot every",
        "Steps between snapshots on disk, which you can inspect or continue from. 0: only at the end.",
        25,
    ),
    Control(
        "snapshot_early",
        "Early snapshots",
        "Also takes snapshots after 1, 2, 4, 8 … steps, since most is learned early.",
    ),
)
DATA = (  # drawn by pages.start.train.data, above the groups: the text is cut before anything else is known
    Control(
        "tokenizer",
        "Tokens",
        "Tokenizer. char: the text's distinct characters. byte: the 256 bytes of UTF-8, so that nothing is"
        " unknown. bpe: byte-pair encoding, which merges frequent pairs, learned on the training split only.",
    ),
)
VOCABULARY = "vocabulary"  # the key of the number beside it: the V of bpe:V
FIRST_VOCABULARY = 512
GROUPS: dict[str, tuple[Control, ...]] = {
    "Model: sizes": SIZES,
    "Model: parts": PARTS,
    "Optimiser": OPTIMISER,
    "Schedule": SCHEDULE,
    "Validation, samples, snapshots": LOOKS,
}
ICONS = dict(zip(GROUPS, ("straighten", "extension", "speed", "timeline", "visibility"), strict=True))
CONTROLS = {control.field: control for group in (DATA, *GROUPS.values()) for control in group}


def recipe(preset: Preset) -> Values:
    """Returns every field of the two configs of a preset that can be trained, by name."""
    assert preset.train is not None
    return preset.model.to_dict() | preset.train.to_dict()


def preset_values(preset: Preset) -> Values:
    """Returns every control's value under a preset, as its widget holds it."""
    fields = recipe(preset)
    return {name: to_widget(name, fields[name]) for name in CONTROLS}


def configs(values: Values, vocab_size: int) -> tuple[ModelConfig, TrainConfig]:
    """Returns the two configs of a set of values, not yet validated. A gain of queries and keys is left out
    where its switch is greyed out: nobody could turn it off there.
    """
    model = {name: value for name, value in values.items() if name in ModelConfig.__dataclass_fields__}
    model["qk_gain"] = bool(values["qk_gain"]) and CONTROLS["qk_gain"].matters(values)
    train = {name: value for name, value in values.items() if name in TrainConfig.__dataclass_fields__}
    masked = train.get("objective") == "masked"
    return ModelConfig(vocab_size=vocab_size + masked, **model), TrainConfig(**train)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Returns the fields in which two sets of values differ, with both values."""
    return {
        name: (before[name], after[name]) for name in after if name in before and before[name] != after[name]
    }


def label_of(field: str) -> str:
    return CONTROLS[field].label if field in CONTROLS else field


def show(value: Any) -> str:
    """Returns a value as a person writes it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None:
        return "derived"
    return f"{value:g}" if isinstance(value, float) else str(value).replace("\n", NEWLINE)


def visible(text: str) -> str:
    r"""Returns typed text with its marked line breaks made real; all else stays as it was typed.

    >>> visible("a⏎b"), visible(r"\nabla")
    ('a\nb', '\\nabla')
    """
    return text.replace(NEWLINE, "\n")


def to_widget(name: str, value: Any) -> Any:
    """Returns a field's value for its widget: derived sizes are 0 there (a number can always be in the URL;
    nothing cannot); line breaks are visible.
    """
    if name == "tokenizer":
        return str(value).partition(":")[0]  # its number has a widget of its own
    if value is None:
        return 0
    if HINTS[name] is float:
        return float(value)
    return whole(value).replace("\n", NEWLINE) if isinstance(value, str) else value


def from_widget(name: str, value: Any) -> Any:
    if type(None) in get_args(HINTS[name]) and not value:
        return None
    return visible(value) if isinstance(value, str) and HINTS[name] is str else value
