"""The map of a Transformer, drawn from a configuration."""

import streamlit as st

from engine.ledger import component_parameters
from engine.presets import PRESETS
from pages.start.home.map import transformer_map
from ui import controls, explain, site
from ui.fields import TRAINABLE

# Models that are a pill; the other published ones are in a list beside them.
FEATURED = (*TRAINABLE, "gpt2", "bert-base", "llama2-7b", "llama2-70b")


def prepare_training(name: str) -> None:
    """Puts every control of the training page where the preset has it."""
    preset = PRESETS[name]
    assert preset.train is not None
    if st.session_state.get("preset") != name:
        st.session_state["preset"] = name
    controls.fill({**preset.model.to_dict(), **preset.train.to_dict()})


st.title("A Transformer, with the lid off")
st.markdown(
    "Text goes in, a guess at the next token comes out. Point at a part to see what it does and costs."
)


def take_published() -> None:
    """A published model was chosen: it becomes one of the pills, and theirs is the choice."""
    chosen = st.session_state.get("home_published")
    if chosen in PRESETS:
        st.session_state["preset"] = chosen
    st.session_state["home_published"] = None


# The name comes out of the URL as well; one that does not exist falls back to the first.
names = list(PRESETS)
others = [name for name in names if name not in FEATURED]
current = st.session_state.get("preset", st.query_params.get("preset"))
if current in others:
    st.session_state["home_other"] = current
offered = [*FEATURED, *(name for name in others if name == st.session_state.get("home_other"))]
choice, more, action = st.columns([5, 1.6, 1.3], vertical_alignment="center", gap="small")
with choice:
    name = st.pills(
        "Model",
        offered,
        default=names[0],
        required=True,
        key="preset",
        bind="query-params",
        label_visibility="collapsed",
        wrap=True,
    )
with more:
    st.selectbox(
        "More published models",
        others,
        index=None,
        key="home_published",
        on_change=take_published,
        placeholder="More models",
        label_visibility="collapsed",
        format_func=lambda other: (
            PRESETS[other].title.removesuffix(" (published)") if other in PRESETS else str(other)
        ),
    )
name = name if name in PRESETS else names[0]
preset = PRESETS[name]
target = name if preset.trainable else names[0]
with action:
    hint = f"Starts training the preset {target} and shows it."
    wanted = st.button(
        "Train one now",
        type="primary",
        key="train_now",
        width="stretch",
        help=hint,
        on_click=prepare_training,
        args=(target,),
    )
if wanted:
    st.session_state["start_at_once"] = True
    st.switch_page(
        "pages/start/train/page.py", query_params={}
    )  # {}: without it, Streamlit refuses to leave a page that has bound widgets

config = preset.model.resolved()
counts = component_parameters(config)
total = sum(counts.values())
blocks = sum(counts[part] for part in ("norm1", "attention", "norm2", "feedforward"))
source = f" *Source: {preset.source}.*" if preset.source and not preset.trainable else ""
st.markdown(
    f"**{preset.title}.** {preset.summary} **{total:,} parameters**, {blocks / total:.0%} of them in the"
    f" {config.n_layers} blocks.{source}"
)

kind = "decoder-only" if config.causal else "encoder-only"
alt = (
    f"Map of a {kind} Transformer, {preset.title}: from tokens through {config.n_layers} blocks to"
    f" probabilities; {total:,} parameters."
)
opened = transformer_map(config, key="map", alt=alt, pages=site.explanations())
if opened:
    st.switch_page(site.explanations()[opened], query_params={})

explain.reading(
    see=(
        "The grey road is the **residual stream**: a vector of numbers for each token, carried from the input"
        " to the output. Every sublayer reads from it and adds an update to it, and the block in the middle"
        " is repeated until the stream is full of meaning."
    ),
    why=(
        "The way in and the way out are simple tables. All the work is done by one block, copied: to make a"
        " model more able, you add more of the same."
    ),
    attempt=(
        "Choose GPT-2, then LLaMA-2 70B: the drawing hardly changes, the numbers do. Then choose BERT, and"
        " look for what became of the mask and the norms."
    ),
)
