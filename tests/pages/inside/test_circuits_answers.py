"""The answers about sinks and facts, worked out here from whole passes of the model and plain arithmetic: none of
what measures it for the page is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from pages.inside.circuits.words_behaviour import SINKS_TEXT
from tests.pages.helpers import unescaped
from tests.pages.inside.circuits import CITIZEN, circuit
from tests.pages.inside.models import MODERN, SMALL, shipped

Edit = Callable[[str, Tensor], Tensor]

pytestmark = pytest.mark.usefixtures("manager")


def passed(
    ids: list[int], edit: Edit | None = None, name: str = SMALL
) -> tuple[np.ndarray, dict[str, Tensor]]:
    """(logits (query, vocab), every activation) of one whole pass; `edit` puts others in their place."""
    seen: dict[str, Tensor] = {}

    def probe(what: str, x: Tensor) -> Tensor:
        seen[what] = x if edit is None else edit(what, x)
        return seen[what]

    with torch.no_grad():
        logits = shipped(name).model(torch.tensor([ids]), probe)[0]
    return logits.double().numpy(), seen


def log_softmax(x: np.ndarray) -> np.ndarray:
    top = x.max(-1, keepdims=True)
    return x - top - np.log(np.exp(x - top).sum(-1, keepdims=True))


def losses(logits: np.ndarray, ids: list[int]) -> np.ndarray:
    """(query - 1,): of each token from the second on."""
    return np.array([-row[after] for row, after in zip(log_softmax(logits), ids[1:], strict=False)])


def encoded(text: str, name: str = SMALL) -> list[int]:
    return shipped(name).tokenizer.encode(text)


# Sinks -----------------------------------------------------------------------------------------------


def hidden(key: int, start: int) -> Edit:
    """A key that no query from `start` on sees."""

    def edit(what: str, x: Tensor) -> Tensor:
        if not what.endswith("masked_scores"):
            return x
        x = x.clone()
        x[:, :, start:, key] = -math.inf
        return x

    return edit


def test_sinks_say_how_much_rests_there_and_what_it_costs_to_lose_it() -> None:
    ids = encoded(CITIZEN)
    n, half = len(ids), len(ids) // 2
    logits, seen = passed(ids)
    weight = np.stack([seen[f"blocks.{i}.pattern"][0, :, 1:, 0].double().numpy() for i in range(4)])
    even = np.mean([1 / (i + 1) for i in range(1, n)])
    kept = losses(logits, ids)[half:].mean()
    forgotten_logits, later = passed(ids, hidden(0, half))
    forgotten = losses(forgotten_logits, ids)[half:].mean()
    control = losses(passed(ids, hidden(half // 2, half))[0], ids)[half:].mean()
    never = losses(passed(ids[1:])[0], ids[1:])[half - 1 :].mean()
    front = encoded("\n") + ids
    in_front, with_front = passed(front)

    words = unescaped(circuit("sinks", text=CITIZEN))
    most = weight.mean(-1)
    best = np.unravel_index(most.argmax(), most.shape)
    assert f"**{weight.mean():.1%}** of all weight lies on the first token, “F”" in words
    assert f"spread evenly it would be {even:.1%}. The most that a head gives it is {most.max():.0%}" in words
    assert f"({best[0]}.{best[1]}): this model makes no sink" in words
    assert (
        f"the rest of the text costs **{forgotten:.2f}** nats a token instead of {kept:.2f} ({never:.2f} where"
        in words
    )
    words = unescaped(circuit("sinks", text=CITIZEN, sinks_opening="other"))
    weight_in_front = np.mean([with_front[f"blocks.{i}.pattern"][0, :, 1:, 0].mean() for i in range(4)])
    assert (
        f"begins with “⏎”, and **{weight_in_front:.0%}** of all weight lies on that ({weight.mean():.0%}"
        in words
    )
    costs = losses(in_front, front)[half + 1 :].mean()
    assert f"The second half costs {costs:.2f} nats a token instead of {kept:.2f}." in words
    words = unescaped(circuit("sinks", text=CITIZEN, sinks_opening="dropped"))
    assert f"The second half costs {never:.2f} nats a token instead of {kept:.2f}." in words
    words = unescaped(circuit("sinks", text=CITIZEN, sinks_opening="forgotten"))
    second = np.mean([later[f"blocks.{i}.pattern"][0, :, half:, 1].mean() for i in range(4)])
    evenly = np.mean([1 / i for i in range(half, n)])
    assert f"is now the first, “i”, gets **{second:.0%}** (evenly: {evenly:.0%})" in words
    assert (
        f"the second half costs {forgotten:.2f} nats a token instead of {kept:.2f}. A text that never had"
        in words
    )
    assert f"it costs {never:.2f}." in words
    words = unescaped(circuit("sinks", text=CITIZEN, sinks_opening="control"))
    told = f"the second half costs {control:.2f} nats a token instead of {kept:.2f}. Without the first one it was"
    assert (
        f"(position {half // 2}), a token of the first half like any other: {told} **{forgotten:.2f}**."
        in words
    )
    assert len(encoded(SINKS_TEXT)) > n  # the text of the bar was read, not ours


# A fact ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [SMALL, MODERN])
def test_a_fact_says_where_it_comes_up_and_who_wrote_it(name: str) -> None:
    model = shipped(name).model
    ids, answer = encoded("thou ar", name), encoded("t", name)[0]
    logits, seen = passed(ids, name=name)
    streams = [seen["blocks.0.resid_pre"], *(seen[f"blocks.{i}.resid_post"] for i in range(4))]
    with torch.no_grad():
        last = torch.stack([x[0, -1] for x in streams])
        rows = (model.norm_final(last[None])[0] @ model.output_matrix.T).double().numpy()  # (depth, vocab)
    p = np.exp(log_softmax(rows))
    np.testing.assert_allclose(p[-1], np.exp(log_softmax(logits[-1])), atol=1e-5)
    rank = 1 + (p > p[:, [answer]]).sum(1)
    first = next(d for d in range(5) if (rank[d:] == 1).all())
    words = unescaped(circuit("fact", name, fact_question="art"))
    since = {
        0: "is the likeliest token from the embedding on;",
        4: "is the likeliest token only after **block 3**, the last;",
    }.get(first, f"after **block {first - 1}**")
    assert "After “thou ar”: “t” " in words and since in words
    assert f"in the end with a probability of **{p[-1, answer]:.2f}**." in words
    climbs = rank[:-1] / rank[1:]
    leap = 1 + int(climbs.argmax())
    assert f"It climbs most in block {leap - 1}: from number {rank[leap - 1]:,} to {rank[leap]:,}." in words

    # what each part wrote: the logit less the mean of all is linear in it, with the norm's divisor as it was
    x = last[-1].double()
    writes = {
        (part, i): seen[f"blocks.{i}.{what}"][0, -1].double()
        for i in range(4)
        for part, what in (("attention", "attn_out"), ("feed-forward network", "ffn_out"))
    }
    gain = getattr(model.norm_final, "gain", None)
    centred = "layer" in model.config.norm
    u = model.output_matrix.double()
    d = u[answer] - u.mean(0)
    d = d if gain is None else d * gain.double()
    d = d - d.mean() if centred else d
    y = x - x.mean() if centred else x
    scale = float((y.square().mean() + model.config.norm_eps).sqrt())
    pushes = {which: float(write @ d) / scale for which, write in writes.items()}
    part, block = max(pushes, key=lambda which: pushes[which])
    told = f"written by the {part} of block {block} (**{pushes[part, block]:+.1f}** nats)"
    assert f"Most of it was {told}." in words
