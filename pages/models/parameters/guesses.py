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
        "Tables have one side d_model and double; but most matrices of a block have it on both sides.",
    ),
    "between": Choice(
        "Between 2 and 4 times", "Matrices in the blocks grow 4 times, tables of tokens 2 times."
    ),
    "four": Choice(
        "4 times",
        "A block's matrices grow 4 times; but the tables of tokens and positions have only one side of"
        " d_model.",
    ),
}
WIDER_HOLDS = {
    "twice": "Nearly all parameters are in tables, of which one side alone grows.",
    "between": "Matrices in the blocks grow 4 times, tables of tokens 2 times, and this model has"
    " many of both.",
    "four": "Nearly all parameters are in the blocks, whose matrices have both sides doubled.",
}
LONGER = {
    "same": Choice(
        "Nothing, or hardly more",
        "The matrices do not care how long the text is; but each token is also compared with all before it.",
    ),
    "between": Choice(
        "More, but less than twice as much",
        "A token's own products stay, only its comparisons double; here one of the two is all that counts.",
    ),
    "twice": Choice(
        "Twice as much",
        "Only the comparisons with earlier tokens double; the products with the matrices stay as they are.",
    ),
}
LONGER_HOLDS = {
    "same": "Nearly all the work is products with matrices, which do not see the length.",
    "between": "Products with matrices stay, comparisons with earlier tokens double.",
    "twice": "At this length nearly all the work is comparing with earlier tokens.",
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
        f"Make every layer twice as wide: d_model {fields['d_model']:,} in place of {model.config.d_model:,}."
        " How many times as many parameters?",
        choices,
        right,
        f"{short(n['before'])} become {short(n['after'])}: {n['times']:.2f} times. The areas show it now;"
        " “Change any field” leads back.",
        {f"parameters_{field}": value for field, value in fields.items()},
    )


def single_key_head(model: Model, dtype: str, batch: int, tokens: int) -> Guess | None:
    """Makes a guess about sharing keys and values, in the view Memory."""
    other = model.variant(n_kv_heads=1) if model.config.mixer == "attention" else None
    truth = None if other is None else sizes.single_key_head(model.ledger, other, dtype, batch, tokens)
    if truth is None:
        return None
    n = truth.numbers
    said = {
        "part": "Keys and values are kept for each key head, and only for these.",
        "half": "Values are shared along with the keys: a key head is a pair of both.",
        "same": "Queries are not kept at all: no later token asks for an earlier one's query.",
    }
    choices, right = offered(truth, {name: Choice(gigabytes(n[name]), said[name]) for name in said})
    return Guess(
        f"The KV cache takes {gigabytes(n['before'])} of this. With one key head in place of"
        f" {model.config.n_kv_heads}?",
        choices,
        right,
        f"{gigabytes(n['before'])} become {gigabytes(n['found'])}. The bars show it now; “Change any field”"
        " leads back.",
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
        f"The text before it grows from {tokens:,} to {double:,} tokens. How much more work is one token?",
        choices,
        right,
        f"{flop(n['before'])} become {flop(n['after'])}: {n['times']:.2f} times. The slider stands there"
        " now.",
        {"parameters_length": double},
    )
