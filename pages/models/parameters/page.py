"""Where the parameters, the floating-point operations and the memory of a model are."""

import streamlit as st

from engine.ledger import ledger, parameter_rows
from engine.ledger.flops import products
from engine.ledger.memory import activations, kv_numbers
from pages.models.parameters.choice import chosen_model
from pages.models.parameters.compare import compare_view
from pages.models.parameters.flops import flops_view
from pages.models.parameters.memory import memory_view, takeaway
from pages.models.parameters.where import where_view
from pages.models.parameters.worked import worked_view
from ui import explain

VIEWS = ("Where they are", "Two models", "FLOPs", "Memory", "By hand")
CODE = {
    "Where they are": (parameter_rows,),
    "Two models": (ledger, parameter_rows),
    "FLOPs": (products,),
    "Memory": (kv_numbers, activations),
    "By hand": (parameter_rows,),
}
WORDS = {
    "Where they are": {
        "see": (
            "Every tensor of the model as an area, in the colour of its part. The table below has each one's"
            " shape in letters and in numbers."
        ),
        "why": (
            "A configuration of some twenty fields settles the size of a model, to the last parameter."
            " Nothing is built or estimated here. Where weights are published, the totals of the unchanged"
            " models are theirs; GPT-3's are not, and its paper says about 175 billion."
        ),
        "attempt": (
            "Choose LLaMA-2 70B and give every query head a key of its own. Then untie GPT-2, and watch the"
            " red area grow."
        ),
    },
    "Two models": {
        "see": "The parts of two models, in shares or in counts, and the fields in which they differ.",
        "why": (
            "Names such as 7B hide a lot: a small model with a large vocabulary is mostly a dictionary, "
            "a large one is mostly feed-forward networks."
        ),
        "attempt": (
            "Compare GPT-2 medium with Qwen2.5 0.5B: the larger one has less than half the attention. "
            "Change a field, and compare the changed model with its original."
        ),
    },
    "FLOPs": {
        "see": (
            "What one token costs in the forward pass, both scales logarithmic. Matrices act once on each"
            " token: level lines. What rises is attention's work, since each token looks at T others."
        ),
        "why": (
            "A model's price is counted in FLOP. For short texts it is 2 forward and 6 in training for each"
            " parameter that meets a token in a product; for long ones attention decides."
        ),
        "attempt": (
            "Move T past the crossing. Then choose a wider model: the crossing moves to the right, as"
            " matrices grow with $d^2$ and scores with $d$."
        ),
    },
    "Memory": {
        "see": (
            "Weights stay; the KV cache grows with every token of every text. Training adds gradients,"
            " AdamW's state and everything that backward needs."
        ),
        "why": (
            "Whether a model runs on your device is decided here. Long contexts are a matter of the cache:"
            " that is why keys are shared (GQA)."
        ),
        "attempt": (
            "LLaMA-2 7B at 4,096 tokens: 2 GB of cache. Choose Mistral 7B, whose heads share keys four by"
            " four. Then int4: which device is enough?"
        ),
    },
    "By hand": {
        "see": "The counts that are done on the blackboard, made by the same ledger.",
        "why": (
            "Three formulas, $4d^2$, $2\\,d\\,d_{ff}$ and $V d$, are nearly the whole of a classic"
            " Transformer. A gated network has $3\\,d\\,d_{ff}$, and shared keys make $4d^2$ smaller."
        ),
        "attempt": (
            "Cover the numbers, and count GPT-2's blocks yourself: $12\\,L\\,d^2$. Then find in the first"
            " view what was missing."
        ),
    },
}

st.title("Parameters")
st.markdown(
    "What a model costs, counted from its configuration alone: parameters, floating-point operations, memory."
)


@st.fragment
def look() -> None:
    choice = chosen_model()
    view = explain.choose_view(VIEWS, "parameters_view")
    changes = st.container()  # always there: what stands below keeps its place
    if choice.changed and view != "By hand":
        changes.caption(
            "Changed: "
            + ", ".join(f"`{field}` {before} → {after}" for field, (before, after) in choice.changed.items())
            + "."
        )
    if view == "Two models":
        compare_view(choice)
    elif view == "FLOPs":
        flops_view(choice)
    elif view == "Memory":
        memory_view(choice)
        takeaway(choice)
    elif view == "By hand":
        worked_view()
    else:
        where_view(choice)
    explain.reading(**WORDS[view])
    explain.show_code(*CODE[view])


look()
