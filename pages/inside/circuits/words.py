"""Sentences of the views of Circuits."""

from dataclasses import replace

from ui.model_bar import Subject
from ui.page_frame import Words

TEXT = (
    "The capital of France is Paris, and the capital of Italy is Rome. Most people who visit Europe for the"
    " first time want to see one of the two, and many of them come back. In Paris they walk along the river,"
    " climb the tower and wait in long lines for the museums. In Rome they sit in the sun, eat ice cream and"
    " look at old stones. Both cities are full of tourists in summer, and both are quiet in the early"
    " morning, when the streets are washed and the first trains arrive."
)

PATCHING_QUESTION = "Where is the difference between two prompts carried?"
PATCHING = Words(
    see=(
        "Two prompts that differ in one place. A piece of the first run is put into the second, at one block"
        " and one token, and all above it is computed again. The colour is (patched − second) / (first −"
        " second), each a logit(first answer) − logit(second answer): 0 changes nothing, 1 brings the whole"
        " answer back (Meng et al. 2022; Wang et al. 2023; Zhang and Nanda 2024)."
    ),
    why=(
        "A pattern shows where a head looks; an intervention shows what the answer *hangs on*. The map of the"
        " stream says which token carries the *difference* of the two prompts, not where in the weights a"
        " fact is kept; that of attention, who carries it to the end; that of the heads, which one does."
    ),
    attempt=(
        "Take France / Italy and change from the stream to attention: one block carries it all. Then heads."
        " Shares do not add up to 1: parts stand in for each other, and one can undo what another did. Try"
        " Anna / Peter, where little is to be found."
    ),
)

OF_LETTERS = (
    "Change from the stream to attention and to the feed-forward network: in so small a model several parts"
    " share the work, and shares do not add up to 1. “Thou wert, further off”: some letters on, the model has"
    " lost the thou. Then take SmolLM2 in the bar, which reads words."
)


def patching(subject: Subject) -> Words:
    return PATCHING if subject.is_pretrained else replace(PATCHING, attempt=OF_LETTERS)
