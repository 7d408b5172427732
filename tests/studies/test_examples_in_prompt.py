"""Examples in a prompt: every question is the prompt that it says it is, and a model that copies is measured as
one.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.data.progress import Progress, finish
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import ConfigError
from studies.circuits.examples_in_prompt import COUNTS, EXCHANGED, RIGHT, FewShot, measure, order, prompt
from tests.engine.helpers import loud, tiny

LETTERS = CharTokenizer("\n :" + "abcdefghijklmnopqrstuvwxyz")


class Words(CharTokenizer):
    """Reads a space and the letter after it as one token, as the tokenizers of words do."""

    def encode(self, text: str) -> list[int]:
        return super().encode(text.replace(" ", ""))


PAIRS = [(letter, chr(ord("z") - i)) for i, letter in enumerate("abcdefghijklmnopqr")]


def model():
    torch.set_num_threads(1)
    return loud(tiny(vocab_size=29, context=80, position="rope")).requires_grad_(False)


@pytest.fixture(scope="module")
def few() -> FewShot:
    return finish(measure(model(), Words(LETTERS.alphabet), PAIRS, draws=2))


@pytest.mark.parametrize("way", [RIGHT, EXCHANGED])
def test_every_word_is_asked_after_the_examples_that_stand_before_it(few: FewShot, way: int) -> None:
    tokenizer, net = Words(LETTERS.alphabet), model()
    for draw in range(2):
        drawn = order(len(PAIRS), draw)
        for place, i in enumerate(drawn):
            for column, count in enumerate(COUNTS):
                before = [drawn[(place - count + k) % len(PAIRS)] for k in range(count)]
                shown = [
                    (PAIRS[b][0], PAIRS[b if way == RIGHT else drawn[(drawn.index(b) + 1) % len(PAIRS)]][1])
                    for b in before
                ]
                ids = tokenizer.encode(prompt(shown, PAIRS[i][0]))
                p = net(torch.tensor([ids]))[0, -1].softmax(-1)
                answer = tokenizer.encode(PAIRS[i][1])[0]
                assert few.probability[way, draw, i, column] == pytest.approx(float(p[answer]), rel=1e-4)
                assert few.guess[way, draw, i, column] == int(p.argmax())


def test_shares_are_means_over_the_words(few: FewShot) -> None:
    assert few.accuracy.shape == few.likelihood.shape == (2, 2, len(COUNTS))
    answers = [Words(LETTERS.alphabet).encode(answer)[0] for _, answer in PAIRS]
    by_hand = np.mean([few.guess[1, 0, i] == answer for i, answer in enumerate(answers)], axis=0)
    np.testing.assert_allclose(few.accuracy[1, 0], by_hand)
    np.testing.assert_allclose(few.likelihood[0, 1], few.probability[0, 1].mean(0))
    np.testing.assert_allclose(few.probability[0, :, :, 0], few.probability[1, :, :, 0], rtol=1e-5)


def test_what_there_is_grows_draw_by_draw(few: FewShot) -> None:
    steps: list[Progress] = list(measure(model(), Words(LETTERS.alphabet), PAIRS, draws=2))
    assert [step.done for step in steps] == list(range(steps[0].total + 1))
    shapes = [step.so_far.accuracy.shape[1] for step in steps]
    assert shapes == sorted(shapes) and shapes[0] == 0 and shapes[-1] == 2
    half = steps[len(steps) // 2].so_far
    np.testing.assert_allclose(half.probability, few.probability[:, :1])


def test_too_few_pairs_and_long_answers_are_refused() -> None:
    with pytest.raises(ConfigError, match="pairs"):
        finish(measure(model(), Words(LETTERS.alphabet), PAIRS[: max(COUNTS)]))
    with pytest.raises(ConfigError, match="one token"):
        finish(measure(model(), LETTERS, PAIRS))
