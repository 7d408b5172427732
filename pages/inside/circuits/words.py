"""Sentences of the views of Circuits."""

from dataclasses import replace

from ui.model_bar import Subject
from ui.page_frame import Words
from ui.text.numbers import counted

TEXT = (
    "The capital of France is Paris, and the capital of Italy is Rome. Most people who visit Europe for the"
    " first time want to see one of the two, and many of them come back. In Paris they walk along the river,"
    " climb the tower and wait in long lines for the museums. In Rome they sit in the sun, eat ice cream and"
    " look at old stones. Both cities are full of tourists in summer, and both are quiet in the early"
    " morning, when the streets are washed and the first trains arrive."
)


def read_instead(tokens: int, instead: int) -> str:
    """Says that a text of ours is read, and why."""
    return (
        f":material/info: The text above has {counted(tokens, 'token')}, too few to measure on, so a text"
        f" of {instead}"
        " tokens about Paris and Rome is read instead."
    )


PATCHING_QUESTION = "Which activations carry the difference between two prompts?"
PATCHING = Words(
    see=(
        "Activation patching on two prompts that differ at one position. One activation of the first run"
        " replaces its counterpart in the second, at one block and one token, and everything above is"
        " recomputed. The colour is (patched − second) / (first − second), each a logit difference,"
        " logit(first answer) − logit(second answer): 0 means no change, 1 means that the first prompt's"
        " answer is fully restored (Meng et al. 2022; Wang et al. 2023; Zhang and Nanda 2024)."
    ),
    why=(
        "A pattern shows where a head attends; an intervention shows what the answer *depends on*. The stream"
        " map shows which token carries the *difference* between the prompts, not where in the weights a fact"
        " is stored. The attention map shows which block moves it to the last token, the head map which head"
        " does."
    ),
    attempt=(
        "Choose France / Italy and switch from the stream to attention: one block restores most of it. Then"
        " switch to heads. Shares do not add up to 1: components can back each other up, and one can undo"
        " what another did. Try Anna / Peter, where there is little to find."
    ),
)

OF_LETTERS = (
    "Switch from the stream to attention and to the feed-forward network: in so small a model several"
    " components share the work, and shares do not add up to 1. In “Thou wert, further off” the model has"
    " forgotten the “thou” a few characters later. Then choose SmolLM2 in the bar, which reads words."
)


def patching(subject: Subject) -> Words:
    return PATCHING if subject.is_pretrained else replace(PATCHING, attempt=OF_LETTERS)
