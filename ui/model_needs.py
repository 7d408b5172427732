"""Models that a view takes: properties without which it has nothing to show, each with the sentence for a
model that lacks it.

    View("steps", TEXT, draw, ..., takes=(QUERIES_KEYS,))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.data.tokenizers.char import CharTokenizer
from studies.costs.cards.mixers import MixerCard
from studies.costs.cards.table import card_of
from studies.costs.ledger import kv_numbers
from studies.positions.position_table import learned_table
from studies.positions.rope import turned_by
from ui import families
from ui.model_bar import Subject
from ui.models import kind_of


@dataclass(frozen=True)
class Need:
    """A property of a model. `met` is True of a subject that has it; `lacks` is the sentence for one that has
    it not (Markdown).
    """

    met: Callable[[Subject], bool]
    lacks: str


# An encoder-decoder is looked into at its encoder, which says nothing by itself.
SAYS = Need(lambda subject: subject.pair is None, families.CLOSED["says"])
SUMS = Need(lambda subject: subject.pair is None, families.CLOSED["sums"])
CHECKS = Need(lambda subject: subject.pair is None, families.CLOSED["checks"])
CAUSAL = Need(
    lambda subject: subject.config.causal,
    "This model fills in masked tokens: it attends in both directions and does not predict the next token.",
)
CHARACTERS = Need(
    lambda subject: isinstance(subject.tokenizer, CharTokenizer) and kind_of(subject.key[0]) == "letters",
    "This model does not read running text in single characters.",
)
KEEPS = Need(
    lambda subject: bool(kv_numbers(subject.config)),
    "This model cannot use a KV cache: it has no causal mask, so later tokens change earlier keys and values,"
    " or it has no mixer.",
)
HEADS = Need(
    lambda subject: subject.model.parts.mixer(subject.config).present,
    "This model has no mixer: its tokens never attend to each other, and there are no heads.",
)
QUERIES_KEYS = Need(
    lambda subject: _card(subject).scored and _card(subject).learned,
    "This model's mixer has no queries and keys: it compares the tokens' own vectors, or nothing at all.",
)
ROTATES = Need(
    lambda subject: turned_by(subject.model) is not None and _card(subject).scored,
    "This model does not rotate queries and keys (no RoPE).",
)
POSITION_TABLE = Need(
    lambda subject: learned_table(subject.model) is not None,
    "This model has no learned position table.",
)
FEEDFORWARD = Need(
    lambda subject: subject.config.ffn != "none",
    "This model has no feed-forward networks, so it has no neurons.",
)
DENSE = Need(
    lambda subject: not subject.config.n_experts,
    "This model is a mixture of experts, which is written for no other program here.",
)


def _card(subject: Subject) -> type[MixerCard]:
    return card_of(subject.model.parts.mixer(subject.config))


def lacking(needs: tuple[Need, ...], subject: Subject) -> Need | None:
    """Returns the first of the needs that a subject does not meet; None where it meets all."""
    return next((need for need in needs if not need.met(subject)), None)
