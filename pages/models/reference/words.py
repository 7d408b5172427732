"""What the views about the reference and the export say."""

from engine.export.gather import gather
from engine.export.hugging_face import plan, tensors, undone
from engine.reference.mistakes import neighbours_turned, other_eps, tiled
from engine.reference.places import hidden, position_bias, turned
from engine.reference.second import attention, block, feedforward, forward, gelu, gelu_by_tanh, norm, shared
from ui.look import Words

ASK_DICE = "Do two programs with the same weights give the same numbers?"
ASK_MODEL = "Do they agree on a trained model?"
ASK_EXPORT = "How do I take it along?"
CODE = (
    *(forward, block, norm, attention, feedforward, turned, shared, hidden, position_bias),
    *(gelu, gelu_by_tanh, neighbours_turned, tiled, other_eps),
)
EXPORT_CODE = (plan, tensors, undone, gather)

DICE = Words(
    see=(
        "A small model with odd sizes and weights drawn by chance. Each point is the residual stream at one"
        " place: how far the two programs are apart there, at the number where they differ most. Above 1"
        " it is"
        " counted as a share of the largest number at that place, since float32 keeps about seven digits."
    ),
    why=(
        "A wrong model often still writes passable text. Held against a second program it cannot hide:"
        " what is"
        " left is rounding, about $10^{-7}$. Equal sizes hide mistakes, odd ones show them."
    ),
    attempt=(
        "Put a mistake into the second program and see where the curve leaves the floor: that is how a"
        " port is"
        " debugged. Then find the family in which the same mistake changes nothing."
    ),
)

MODEL = Words(
    see=(
        "The model chosen above, on the text above, in the engine and in the second program. With mistakes,"
        " the difference begins at one activation and travels from there."
    ),
    why=(
        "Trained weights are larger and more uneven than random ones: they find what random ones do not."
        " The tests hold both programs against Hugging Face's `transformers`, too."
    ),
    attempt=(
        "On a trained model, take the other GELU: the logits hardly move. Such mistakes are in use for years"
        " before anybody sees them."
    ),
)

LIBRARY = (
    "Ten lines of Hugging Face's `transformers` read the unpacked folder and write with the model. The class"
    " is chosen by `config.json`."
)
NO_LIBRARY = (
    "No class of `transformers` is this model. The one file needs torch and safetensors, and nothing else:"
)

EXPORT = Words(
    see=(
        "Two ways out. Hugging Face's layout, if a family there can say what this model is: then"
        " `transformers`"
        " opens it. And one file of PyTorch, cut out of this app's own source, which can say them all."
    ),
    why=(
        "What you trained here is yours. It opens elsewhere, without this app, and gives the same logits:"
        " the tests open each kind and compare."
    ),
    attempt=(
        "Train a model with squared ReLU, RoPE and QK-norm: no family has all three, and the page says which"
        " is in the way."
    ),
)

NAMES = {  # what an activation is, for a sentence
    "resid_pre": "the embedding",
    "norm1": "the stream after the norm",
    "norm2": "the stream after the norm",
    "q": "the queries",
    "k": "the keys",
    "v": "the values",
    "q_rot": "the queries, once they are turned",
    "k_rot": "the keys, once they are turned",
    "scores": "the scores",
    "pattern": "the attention pattern",
    "z": "the weighted sum of values",
    "attn_out": "what attention writes",
    "resid_mid": "the stream after attention",
    "ffn_pre": "the widened vector",
    "ffn_gate": "the gate",
    "ffn_post": "the neurons' activations",
    "ffn_out": "what the network writes",
    "resid_post": "the stream after the network",
    "norm_final": "the stream after the last norm",
    "logits": "the logits",
}
