"""What the living map is sent, read back as the browser reads it and held against the recording and the sampler.

tests/js/livemap.json holds a small picture and what is to be read from it, for tests/js/livemap.test.js; it is
written anew by `python -m tests.pages.start.test_home_packing`.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.config import SampleConfig
from engine.recording import record
from engine.sample.stages import stages
from pages.start.home.packing import packed, spoken
from studies.home import living_map
from tests.engine.helpers import loud, tiny
from tests.models import REAL, SHIPPED, TEXTS, opened
from tests.pages.start.home import array

VALUES = Path(__file__).parents[2] / "js" / "livemap.json"
IDS = [7 * i % 300 for i in range(3, 23)]


def picture(model: Any, ids: list[int], words: list[str]) -> dict[str, Any]:
    """All that can be known of a text, as it is sent."""
    reading = living_map.read(model, ids)
    logits = living_map.depth_logits(model, reading.streams)
    said = {lane: living_map.likeliest_tokens(logits[:, lane : lane + 1]) for lane in range(logits.shape[1])}
    depths = range(logits.shape[0])
    outlook = living_map.outlook(logits[:, -1])
    return (
        packed(reading, words)
        | spoken("name", reading.predictions, said, outlook, depths, words)
        | {"whole": True}
    )


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", [*SHIPPED, *REAL])
def test_what_is_sent_is_the_recording(name: str, text: str) -> None:
    model, tokenizer = opened(name)
    ids = list(tokenizer.encode(text))
    sent = json.loads(json.dumps(picture(model, ids, [str(i) for i in range(model.config.vocab_size)])))
    full = record(model, ids)
    lanes, layers, heads = min(16, len(ids)), model.config.n_layers, model.config.n_heads
    assert sent["ids"] == ids[-lanes:] and sent["earlier"] == len(ids) - lanes
    # strips: in every depth a multiple of the means of neighbouring numbers, cut off where they are huge
    stream = array(sent["stream"], np.int8, layers + 1, lanes)
    for depth in range(layers + 1):
        before = full[f"blocks.{min(depth, layers - 1)}.{'resid_pre' if depth < layers else 'resid_post'}"]
        means = before[-lanes:].reshape(lanes, 16, -1).mean(-1)
        typical = np.median([np.abs(row).max() for row in means])
        np.testing.assert_allclose(stream[depth] / 127, np.clip(means / typical, -1, 1), atol=1 / 127)
    for field, activation in (("middle", "resid_mid"), ("attention", "attn_out"), ("feedforward", "ffn_out")):
        for layer in range(layers):
            means = full[f"blocks.{layer}.{activation}"][-lanes:].reshape(lanes, 16, -1).mean(-1)
            typical = np.median([np.abs(row).max() for row in means])
            drawn = array(sent[field], np.int8, layers, lanes)[layer] / 127
            np.testing.assert_allclose(drawn, np.clip(means / typical, -1, 1), atol=1 / 127)
    patterns = array(sent["patterns"], "<u2", layers, heads, lanes) / 65535
    neurons, active = (
        array(sent[field], kind, layers, lanes) for field, kind in (("neurons", "<u4"), ("active", "<f4"))
    )
    for layer in range(layers):
        pattern, post = full[f"blocks.{layer}.pattern"], full[f"blocks.{layer}.ffn_post"]
        np.testing.assert_allclose(patterns[layer, :, :, 1:], pattern[:, -lanes:, -lanes:], atol=0.51 / 65535)
        rest = pattern[:, -lanes:, : len(ids) - lanes].sum(-1)
        np.testing.assert_allclose(patterns[layer, :, :, 0], rest, atol=0.51 / 65535)
        for lane in range(lanes):
            row = post[len(ids) - lanes + lane]
            np.testing.assert_array_equal(active[layer, lane], row[neurons[layer, lane]])
            assert abs(active[layer, lane, 0]) == np.abs(row).max()


@pytest.mark.parametrize("name", [*SHIPPED, *REAL])
def test_what_is_sent_is_small(name: str) -> None:
    model, tokenizer = opened(name)
    most = 600_000 if name not in SHIPPED else 300_000
    ids = list(tokenizer.encode("the moon and the moon and " * 20))[: min(128, model.config.context)]
    words = ["␣internationalization"] * model.config.vocab_size  # as long as words become
    assert len(json.dumps(picture(model, ids, words))) < most


def test_numbers_have_words_where_they_are_shown() -> None:
    words = [f"w{i}" for i in range(300)]
    sent = picture(made(), IDS, words)
    shown = array(sent["outlook"]["tokens"], "<u4", 3)[:, :14]
    for token in {*sent["ids"], *array(sent["guesses"], "<u4").ravel().tolist(), *shown.ravel().tolist()}:
        assert (sent["names"] | sent["words"])[str(token)] == f"w{token}"
    assert sent["shapes"]["pattern"] == "(head, query, key) = (4, 20, 20)"
    assert sent["shapes"]["resid_post"] == "(query, d_model) = (20, 16)"


def made() -> Any:
    return loud(tiny(vocab_size=300, context=24), factor=6.0)


def values() -> dict[str, Any]:
    """A small picture, and what is to be read from it: by the engine's own functions."""
    model = made()
    sent, full = picture(model, IDS, [f"w{i}" for i in range(300)]), record(model, IDS)
    logits = living_map.depth_logits(model, living_map.read(model, IDS).streams)
    outlooks = []
    for depth, temperature, top_k in ((2, 1.0, 0), (2, 0.3, 0), (1, 2.0, 7), (0, 0.7, 50), (2, 1.6, 1)):
        last = stages(logits[depth, -1], SampleConfig(temperature=temperature, top_k=top_k))[-1]
        best = logits[depth, -1].topk(128).indices.tolist()
        kept = [float(last.probabilities[i]) for i in best]
        outlooks.append(
            {
                "depth": depth,
                "temperature": temperature,
                "topK": top_k,
                "tokens": best[:14],
                "p": [round(one, 5) for one in kept[:14]],
                "others": round(1 - sum(kept), 5),
            }
        )
    weights = [
        [layer, head, lane, key, round(float(full[f"blocks.{layer}.pattern"][head, 4 + lane, 4 + key]), 4)]
        for layer, head, lane, key in ((0, 0, 3, 1), (1, 3, 15, 2), (1, 2, 9, 9), (0, 1, 15, 15))
    ]
    shares = torch.softmax(logits, -1)
    guesses = [
        [depth, lane, int(shares[depth, lane].argmax()), round(float(shares[depth, lane].max()), 5)]
        for depth, lane in ((0, 0), (1, 7), (2, 15))
    ]
    earlier = round(float(full["blocks.1.pattern"][2, 4 + 6, :4].sum()), 4)
    return {
        "picture": sent,
        "outlooks": outlooks,
        "weights": weights,
        "guesses": guesses,
        "earlier": [1, 2, 6, earlier],
    }


def test_the_fixed_values_are_the_engines() -> None:
    fixed, now = json.loads(VALUES.read_text("utf-8")), values()
    for theirs, ours in zip(fixed["outlooks"], now["outlooks"], strict=True):
        assert theirs["tokens"] == ours["tokens"]
        np.testing.assert_allclose([*theirs["p"], theirs["others"]], [*ours["p"], ours["others"]], atol=1e-4)
    for name in ("weights", "guesses", "earlier"):
        np.testing.assert_allclose(fixed[name], now[name], atol=1e-4)
    theirs, ours = fixed["picture"], now["picture"]
    assert theirs.keys() == ours.keys() and theirs["words"] == ours["words"]
    np.testing.assert_allclose(
        array(theirs["patterns"], "<u2").astype(int), array(ours["patterns"], "<u2").astype(int), atol=7
    )


if __name__ == "__main__":
    VALUES.write_text(json.dumps(values()) + "\n", "utf-8")
