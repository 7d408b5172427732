"""Guesses before the views of Parameters."""

from __future__ import annotations

from engine.lab.guesses import sizes
from pages.models.parameters.change import SLIDERS
from pages.models.parameters.choice import LENGTHS
from pages.models.parameters.choice import Choice as Model
from ui.guess import Choice, Guess, offered
from ui.text.numbers import flop, gigabytes, short

WIDER = {
    "twice": Choice(
        "About 2 times",
        "Tables have d_model on one side, so they double; but most matrices of a block have it on both"
        " sides.",
    ),
    "between": Choice(
        "Between 2 and 4 times", "Matrices in the blocks become 4 times as large, embedding tables twice."
    ),
    "four": Choice(
        "4 times",
        "A block's matrices become 4 times as large; but token and position tables have d_model on one side"
        " only.",
    ),
}
WIDER_HOLDS = {
    "twice": "Nearly all parameters are in tables, which grow on one side only.",
    "between": "Matrices in the blocks become 4 times as large, embedding tables twice, and this model has"
    " plenty of both.",
    "four": "Nearly all parameters are in the blocks, whose matrices have both sides doubled.",
}
LONGER = {
    "same": Choice(
        "None, or hardly any",
        "The matrices do not depend on the text's length; but each token is also compared with all earlier"
        " ones.",
    ),
    "between": Choice(
        "More, but less than twice as much",
        (
            "A token's own products stay the same and only its comparisons double; here one of the two"
            " dominates."
        ),
    ),
    "twice": Choice(
        "Twice as much",
        "Only the comparisons with earlier tokens double; the products with the matrices stay as they are.",
    ),
}
LONGER_HOLDS = {
    "same": "Nearly all compute is in products with matrices, which do not depend on the length.",
    "between": "Products with matrices stay the same, comparisons with earlier tokens double.",
    "twice": "At this length nearly all compute is in comparisons with earlier tokens.",
}


def wider(model: Model) -> Guess | None:
    """Makes a guess about a model twice as wide, in the view Breakdown."""
    fields = sizes.twice_as_wide(model.config)
    other = model.variant(**fields)
    if other is None or fields["d_model"] > SLIDERS["d_model"][1]:
        return None
    truth = sizes.wider(model.ledger, other)
    choices, right = offered(truth, WIDER, WIDER_HOLDS[truth.right])
    n = truth.numbers
    return Guess(
        f"Make every layer twice as wide: d_model {fields['d_model']:,} instead of {model.config.d_model:,}."
        " By what factor do the parameters grow?",
        choices,
        right,
        f"{short(n['before'])} becomes {short(n['after'])}: {n['times']:.2f} times as many. The areas show it"
        " now; undo it in “Change any field”.",
        {f"parameters_{field}": value for field, value in fields.items()},
    )


def single_key_head(model: Model, dtype: str, batch: int, tokens: int) -> Guess | None:
    """Makes a guess about sharing keys and values, in the view Memory."""
    other = model.variant(n_kv_heads=1) if model.config.mixer == "attention" else None
    truth = None if other is None else sizes.single_key_head(model.ledger, other, dtype, batch, tokens)
    if truth is None:
        return None
    n = truth.numbers
    replies = {
        "part": "The cache holds keys and values for each key-value head, and nothing else.",
        "half": "Values are shared along with the keys: a key-value head has one of each.",
        "same": "Queries are not cached at all: no later token needs an earlier query.",
    }
    choices, right = offered(truth, {name: Choice(gigabytes(n[name]), replies[name]) for name in replies})
    return Guess(
        f"The KV cache takes {gigabytes(n['before'])}. How much would it take with one key-value head"
        f" instead of {model.config.n_kv_heads}?",
        choices,
        right,
        f"{gigabytes(n['before'])} becomes {gigabytes(n['found'])}. The bars show it now; undo it in “Change"
        " any field”.",
        {"parameters_n_kv_heads": 1},
    )


def longer(model: Model, tokens: int) -> Guess | None:
    """Makes a guess about a text of twice the length, in the view FLOPs."""
    double = next((length for length in LENGTHS if length == 2 * tokens), None)
    if double is None:
        return None
    truth = sizes.longer(model.ledger, tokens)
    choices, right = offered(truth, LONGER, LONGER_HOLDS[truth.right])
    n = truth.numbers
    return Guess(
        f"A token's context grows from {tokens:,} to {double:,} tokens. How much more compute does it take?",
        choices,
        right,
        f"{flop(n['before'])} becomes {flop(n['after'])}: {n['times']:.2f} times as much. The slider is now"
        " set to that length.",
        {"parameters_length": double},
    )
