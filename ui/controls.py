"""Draws the controls of `ui.fields` in groups -> frozen configs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.config import MIN_BPE, bpe_size
from engine.presets import Preset
from ui import state
from ui.fields import (
    CONTROLS,
    DATA,
    FIRST,
    FIRST_VOCABULARY,
    GROUPS,
    HINTS,
    ICONS,
    KINDS,
    TRAINABLE,
    VOCABULARY,
    Control,
    Values,
    from_widget,
    preset_values,
    to_widget,
)
<<<<<<< HEAD
PARTS = (
    Control("position", "Positions", "How the model learns which token comes where."),
    Control(
        "rope_theta",
        "RoPE base",
        "The slowest rotation: larger reaches further.",
        1000.0,
        _is("position", "rope"),
    ),
    Control(
        "rope_fraction",
        "RoPE share",
        "Share of a head's dimensions that RoPE turns; 1 is all of them.",
        0.25,
        _is("position", "rope"),
    ),
    Control(
        "mixer", "Mixer", "How tokens exchange information: from nothing, over averages, to full attention."
    ),
    Control(
        "causal",
        "Causal mask",
        "On: a token sees only what came before it. Off: both ways, for the masked objective.",
    ),
    Control(
        "qk_norm",
        "QK-norm",
        "Queries and keys get RMS 1, so length √d_head, before they are compared: bounds the scores.",
        matters=_is("mixer", "attention", "shared_qk"),
    ),
    Control(
        "output_projection",
        "Output projection",
        "The matrix W_O that mixes the heads.",
        matters=_is("mixer", "attention", "shared_qk"),
    ),
    Control(
        "attention_bias",
        "Attention biases",
        "A bias on queries, keys, values and output.",
        matters=_is("mixer", "attention", "shared_qk"),
    ),
    Control(
        "output_bias",
        "Bias of W_O",
        "With attention biases: one on the output as well. Qwen2.5 has none there.",
        matters=_is("attention_bias", True),
    ),
    Control(
        "wiring",
        "Wiring",
        "Norm before each sublayer, after it, both sublayers at once, or no residual stream.",
    ),
    Control("norm", "Norm", "What keeps the size of the vectors in check."),
    Control(
        "norm_gain",
        "Norm gain",
        "A learned scale for each dimension of a norm.",
        matters=_is("norm", "layernorm", "rmsnorm"),
    ),
    Control("norm_bias", "Norm bias", "A learned offset; LayerNorm only."),
    Control(
        "norm_eps",
        "Norm epsilon",
        "Keeps a norm from dividing by zero.",
        1e-5,
        _is("norm", "layernorm", "rmsnorm"),
    ),
    Control("ffn", "Feed-forward", "Its nonlinearity; swiglu and geglu have a third matrix, the gate."),
    Control(
        "ffn_bias",
        "Feed-forward biases",
        "A bias on its matrices.",
        matters=lambda values: values["ffn"] != "none",
    ),
    Control("tie_embeddings", "Tied embeddings", "The output matrix is the embedding itself."),
)
OPTIMISER = (
    Control(
        "optimizer",
        "Optimiser",
        "adamw for everything, or muon for the blocks' matrices and adamw for the rest.",
    ),
    Control("learning_rate", "Learning rate", "AdamW's peak.", 1e-4),
    Control(
        "muon_learning_rate",
        "Muon learning rate",
        "Muon's peak, for the blocks' matrices.",
        1e-3,
        _is("optimizer", "muon"),
    ),
    Control(
        "muon_momentum",
        "Muon momentum",
        "How much of the past gradients Muon keeps.",
        0.01,
        _is("optimizer", "muon"),
    ),
    Control("beta1", "Beta 1", "AdamW: memory of the mean gradient.", 0.01),
    Control("beta2", "Beta 2", "AdamW: memory of the gradient's size.", 0.01),
    Control("weight_decay", "Weight decay", "Pulls matrices towards zero; 0 is none.", 0.01),
    Control("grad_clip", "Gradient clipping", "The longest gradient allowed; 0 is no limit.", 0.1),
    Control("precision", "Precision", "auto: bfloat16 where the processor has it, else float32."),
    Control("seed", "Seed", "Fixes the first weights and the batches: the same seed gives the same run."),
)
SCHEDULE = (
    Control(
        "objective",
        "Objective",
        "next_token: what comes next (GPT). masked: fill gaps from both sides (BERT).",
    ),
    Control(
        "mask_rate",
        "Share hidden",
        "Share of the tokens hidden by the masked objective.",
        0.05,
        _is("objective", "masked"),
    ),
    Control("steps", "Steps", "How many updates of the weights.", 100),
    Control("batch_size", "Batch size", "Windows of text read in each step."),
    Control("schedule", "Schedule", "How the learning rate goes from its peak to its end."),
    Control("warmup_steps", "Warm-up", "Steps in which the learning rate rises from zero to its peak.", 10),
    Control(
        "min_lr_fraction",
        "Last rate",
        "Where the learning rate falls to, as a share of the peak: one step after the last would have it.",
        0.05,
        _is("schedule", "linear", "cosine"),
    ),
)
LOOKS = (
    Control("eval_every", "Validate every", "Steps between validations; 0: only at the end.", 25),
    Control(
        "eval_tokens",
        "Validation size",
        "Tokens read each time; 0: all of the split. The last one always reads all.",
        4096,
    ),
    Control("sample_every", "Sample every", "Steps between samples of the model's own text; 0: never.", 25),
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
        "0: always the likeliest token; 1: as the model believes; more: wilder.",
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
        "Steps between snapshots kept on disk, to look inside or continue from; 0: only at the end.",
        25,
    ),
    Control("snapshot_early", "Early snapshots", "Also after 1, 2, 4, 8 … steps: most is learned early."),
)
DATA = (  # drawn by pages.start.train.data, above the groups: the text is cut before anything else is known
    Control(
        "tokenizer",
        "Tokens",
        "What the text is cut into. char: its distinct characters. byte: the 256 bytes of UTF-8, so that"
        " nothing is unknown. bpe: bytes, and pairs that are often neighbours glued together, learned on the"
        " training part alone.",
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
=======
>>>>>>> parts


def preset_picker() -> Preset:
    """The presets, as buttons. Choosing one fills in every other control."""
    name = st.segmented_control(
        "Preset",
        list(TRAINABLE),
        default=FIRST,
        required=True,
        key="preset",
        bind="query-params",
        on_change=_fill_in,
        width="stretch",
        wrap=True,
        help="A complete recipe: model and training. Everything below can then be changed.",
    )
    return TRAINABLE.get(str(name), TRAINABLE[FIRST])


def fill(values: Mapping[str, Any]) -> None:
    """Puts config values into the controls of the next run. For callbacks: a widget cannot be set once it is
    drawn.
    """
    for name, value in values.items():
        if name in CONTROLS:
            st.session_state[name] = to_widget(name, value)
        if name == "tokenizer" and (size := bpe_size(value)):
            st.session_state[VOCABULARY] = size


def _fill_in() -> None:
    chosen = st.session_state.get("preset")
    if chosen in TRAINABLE:
        for name, value in preset_values(TRAINABLE[chosen]).items():
            st.session_state[name] = value


def tokenizer_control() -> str:
    """Draws what the text is cut into. Returns TrainConfig.tokenizer, not yet validated."""
    _part_tokenizer()
    state.drop_endless()
    (control,) = DATA
    kind = st.segmented_control(
        control.label,
        KINDS,
        default=KINDS[0],
        required=True,
        key=control.field,
        bind="query-params",
        width="stretch",
        help=f"{control.help} `{control.field}`",
    )
    if kind != "bpe":
        return kind if kind in KINDS else KINDS[0]
    size = st.number_input(
        "Vocabulary",
        value=FIRST_VOCABULARY,
        step=256,
        key=VOCABULARY,
        bind="query-params",
        help=(
            f"Tokens in all, from {MIN_BPE}: the 256 bytes, and a merge for each further one. More of them"
            " make a text shorter and the embedding larger."
        ),
    )
    return f"bpe:{FIRST_VOCABULARY if size is None else size}"


def _part_tokenizer() -> None:
    """A link may say tokenizer=bpe:512, as configs and the command line do: its two widgets want
    tokenizer=bpe and vocabulary=512.
    """
    (control,) = DATA
    found = re.fullmatch(r"bpe:([0-9]{1,9})", st.query_params.get(control.field, ""))
    if found and control.field not in st.session_state:  # a widget that is there already has read the link
        st.query_params.update({control.field: "bpe", VOCABULARY: found[1]})
        st.rerun()  # widgets read the address as it was when the run began


def control_groups(preset: Preset) -> tuple[Values, dict[str, DeltaGenerator]]:
    """Draws every group. Returns the fields' values and, by field, the container in which a sentence about it
    belongs.
    """
    defaults = preset_values(preset)
    seen = {name: st.session_state.get(name, value) for name, value in defaults.items()}
    values, places = {}, {}
    for title, group in GROUPS.items():
        with st.expander(title, icon=f":material/{ICONS[title]}:"):
            grid = st.grid("auto", min_column_width=190, gap="small")
            for control in group:
                places[control.field] = grid.cell()
                with places[control.field]:
                    seen[control.field] = _widget(
                        control, defaults[control.field], disabled=not control.matters(seen)
                    )
                    values[control.field] = from_widget(control.field, seen[control.field])
            places[title] = st.container()
    return values, places


def _widget(control: Control, default: Any, *, disabled: bool) -> Any:
    """The widget that suits a field's type. The bounds are the configs' own, so that what is wrong is said,
    not refused.
    """
    hint, label = HINTS[control.field], control.label
    shared: dict[str, Any] = {
        "key": control.field,
        "help": f"{control.help} `{control.field}`",
        "bind": "query-params",
        "disabled": disabled,
    }
    if get_origin(hint) is Literal:
        options = list(get_args(hint))
        value = st.selectbox(label, options, index=options.index(default), **shared)
        return value if value in options else default
    if hint is bool:
        return st.toggle(label, value=default, **shared)
    if hint is str:
        return st.text_input(label, value=default, max_chars=200, **shared)
    if hint is float:
        number = st.number_input(label, value=float(default), step=float(control.step), format="%g", **shared)
    else:
        number = st.number_input(label, value=int(default), step=int(control.step), **shared)
    return default if number is None else number  # None: the field was emptied
