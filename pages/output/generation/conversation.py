"""A text as a person's turn in a conversation, for a model that was trained to answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.data.tokenizers import ends as ends_of
from engine.errors import TokenizerError
from studies.weights.pretrained.vocabulary import PretrainedTokenizer
from ui import content, widgets
from ui.model_bar import Subject
from ui.text.markdown import sentence

TEXT = content.beside(__file__)


def converses(subject: Subject) -> bool:
    """True if the model was trained to answer."""
    return isinstance(subject.tokenizer, PretrainedTokenizer) and subject.tokenizer.template is not None


def conversation(subject: Subject, container: Any) -> tuple[Subject, frozenset[int], str]:
    """Returns the subject to continue, the tokens that end it, and a sentence about it: the text as it is,
    or, for a model that was trained to answer and where somebody wants that, as a person's turn, unless
    its chat template refuses it. The switch stands in `container`.
    """
    tokenizer = subject.tokenizer
    if not isinstance(tokenizer, PretrainedTokenizer) or tokenizer.template is None:
        return subject, frozenset(), ""
    hint = TEXT["hint"]
    if not widgets.switch(TEXT.title, False, "generation_chat", container=container, hint=hint):
        return subject, frozenset(), ""
    try:
        turn = tokenizer.user_turn(subject.text)
    except TokenizerError as error:  # its template has rules of its own
        return subject, frozenset(), TEXT("no turn", why=content.Filled(sentence(error)))
    ends = ends_of(tokenizer)
    marks = " or ".join(f"`{subject.vocabulary[i]}`" for i in sorted(ends & set(turn.ids)) or sorted(ends))
    about = TEXT(
        "turn",
        around=turn.around,
        tokens=turn.text_tokens,
        special=turn.special,
        ends=content.Filled(marks),
    )
    return replace(subject, ids=turn.ids), ends, about
