"""One reader, a part of the view "You are the model": two minutes of guessing, in the browser."""

from __future__ import annotations

from pages.output.sampling import held_out
from studies.generation.guessing_game import GUESSES, Turn
from ui import content, explain
from ui.figures import theme
from ui.model_bar import Subject
from ui.page_frame import View
from ui.players.component import mounted

TEXT = content.beside(__file__)
PLAYER = "you_game"
SECONDS = 120
DECIMALS = 5  # of the nats that are sent
SAID = "say "  # begins the names of what the browser fills in


def draw(subject: Subject) -> None:
    """Draws the game of a passage; the browser keeps the guesses to itself."""
    if (found := held_out.passage_shown(subject)) is None:
        return
    passage = found.passage
    alphabet = [subject.tokenizer.decode([i]) for i in range(subject.tokenizer.vocab_size)]
    data = {
        "key": [*subject.key, found.source, held_out.seed_shown()],
        "alphabet": alphabet,
        "lead": "".join(alphabet[i] for i in passage.lead),
        "ids": list(passage.ids),
        "nats": {name: nats.round(DECIMALS).tolist() for name, nats in found.nats.items()},
        "turns": {name: [_sent(turn) for turn in turns] for name, turns in found.turns.items()},
        "seconds": SECONDS,
        "guesses": GUESSES,
        "words": {name: TEXT[f"say {name}"] for name in _said()},
        "palette": theme.palette(),
    }
    mounted("guessing", styles=("shared/save", "shared/alphabet", "guessing"))(
        key=PLAYER, data=data, on_again_change=held_out.next_passage
    )
    source = TEXT[f"source {found.source}"]
    explain.answer(TEXT("waiting", minutes=SECONDS // 60, source=source))


def _sent(turn: Turn) -> int:
    """The number of the guess that was right; 0 for none."""
    return turn.guesses if turn.right else 0


def _said() -> list[str]:
    return [name.removeprefix(SAID) for name in TEXT if name.startswith(SAID)]


PART = View("reader", TEXT, draw)
