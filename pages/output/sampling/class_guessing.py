"""A room, a part of the view "You are the model": phones guess the next character, and their shares are a
distribution with a loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st

from engine.errors import GlassformerError
from pages.output.sampling import held_out
from pages.output.sampling.held_out import MODEL, Studied
from runs.rooms import MAX_ALPHABET, Question, Rooms
from studies.generation.guessing_game import ENOUGH, ClassGuess, class_nats, mean_nats, standard_error
from ui import content, explain, live, session
from ui.figures import theme
from ui.model_bar import Subject
from ui.page_frame import View
from ui.players.component import mounted
from ui.stage.draw import way_to
from ui.text.tokens import show_characters

TEXT = content.beside(__file__)
PLAYER, REVEALED = "you_class", "you_revealed"
LOOK_SECONDS = 1.0
ROWS = 7  # characters that have bars
MOST_NAMED = 3  # characters of a tie that a sentence names
CLASS = "class"
NEXT = {
    "ready": "ask",
    "voting": "close",
    "guessed": "reveal",
    "revealed": "ask",
}  # what the first button does


@dataclass(frozen=True)
class Round:
    """The room's question about a passage: the index of the character, how far it is (a key of NEXT), and the
    counts of the votes on it and on those before it.
    """

    at: int
    state: str
    counts: tuple[tuple[int, ...], ...] = ()
    question: Question | None = None

    @property
    def known(self) -> int:
        """Returns how many characters have been revealed."""
        return self.at + (self.state == "revealed")

    @property
    def next(self) -> int:
        """Returns the index of the character that is asked for next."""
        return self.at + 1 if self.state == "revealed" else self.at


def draw(subject: Subject) -> None:
    """Draws what the room has guessed so far, and leads on."""
    if (found := held_out.passage_shown(subject)) is None:
        return
    alphabet = tuple(subject.tokenizer.decode([i]) for i in range(subject.tokenizer.vocab_size))
    if len(alphabet) > MAX_ALPHABET:
        st.info(TEXT("large alphabet", characters=len(alphabet), most=MAX_ALPHABET), icon=":material/info:")
        return
    rooms, owner = session.rooms(), session.owner()
    try:
        now = current(rooms, owner, found, alphabet)
    except GlassformerError as error:
        st.info(str(error), icon=":material/info:")
        return
    _buttons(now, found, alphabet)
    if now.state == "voting":
        live.follow("class", partial(_seen, rooms, owner), every=LOOK_SECONDS)
    nats = losses(now, found)
    mounted("class_guessing", styles=("shared/save", "guessing", "class_guessing"))(
        key=PLAYER, data=_sent(now, found, alphabet, nats)
    )
    explain.answer(_answer(now, found, alphabet, nats))


def current(rooms: Rooms, owner: str, studied: Studied, alphabet: tuple[str, ...]) -> Round:
    """Returns how far the owner's room is in a passage: behind the last character that was answered, where it
    is asked something else now. Raises RunError where the rooms cannot be reached.
    """
    question, past = rooms.mine(owner), rooms.past(owner, text_before(studied, 0, alphabet), alphabet)
    at, texts = len(past), [text_before(studied, i, alphabet) for i in range(len(studied.passage.ids))]
    if question is None or [text for text, _ in past] != texts[:at]:
        return Round(0, "ready")
    counts = tuple(votes for _, votes in past)
    if (question.letters, question.answers, question.text) == (True, alphabet, "".join(texts[at : at + 1])):
        shown = st.session_state.get(REVEALED) == (question.room, question.number)
        state = "voting" if question.open else "revealed" if shown else "guessed"
        return Round(at, state, (*counts, question.counts), question)
    return Round(at - 1, "revealed", counts, question) if past else Round(0, "ready")


def text_before(studied: Studied, index: int, alphabet: tuple[str, ...]) -> str:
    """Returns the lead and all of the passage before a character."""
    return "".join(alphabet[i] for i in (*studied.passage.lead, *studied.passage.ids[:index]))


def losses(now: Round, studied: Studied) -> dict[str, np.ndarray]:
    """Returns -ln p of each character that has been revealed, (character,), by predictor, the class last."""
    of_class = class_nats(now.counts[: now.known], studied.passage.ids[: now.known])
    return {name: each[: now.known] for name, each in studied.nats.items()} | {CLASS: of_class}


def _seen(rooms: Rooms, owner: str) -> live.Sight:
    question = rooms.mine(owner)
    return live.Sight(question and (question.number, question.open, sum(question.counts)))


def _buttons(now: Round, found: Studied, alphabet: tuple[str, ...]) -> None:
    over = now.next >= len(found.passage.ids)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="you_buttons"):
        # Streamlit's own: buttons that lead on have no value.
        st.button(
            TEXT[f"button {now.state}"],
            key="you_next",
            type="primary",
            disabled=over and now.state in ("ready", "revealed"),
            on_click=_lead,
            args=(
                NEXT[now.state],
                now,
                text_before(found, min(now.next, len(found.passage.ids)), alphabet),
                alphabet,
            ),
        )
        st.button(TEXT["another"], key="you_another", on_click=_another, args=(now,))
        if now.question is not None:
            st.button(TEXT["end"], key="you_end", on_click=_lead, args=("end", now, "", alphabet))


def _another(now: Round) -> None:
    """Goes to another passage; phones can no longer vote on this one."""
    if now.state == "voting":
        _lead("close", now, "", ())
    held_out.next_passage()


def _lead(do: str, now: Round, text: str, alphabet: tuple[str, ...]) -> None:
    """Leads the room on, as a button says."""
    rooms, owner = session.rooms(), session.owner()
    try:
        if do == "ask":
            rooms.ask_next(owner, text, alphabet)
        elif do == "close":
            rooms.close(owner)
        elif do == "end":
            rooms.end(owner)
        elif now.question is not None:
            st.session_state[REVEALED] = (now.question.room, now.question.number)
    except GlassformerError as error:
        st.toast(str(error), icon=":material/info:")


def _sent(
    now: Round, found: Studied, alphabet: tuple[str, ...], nats: dict[str, np.ndarray]
) -> dict[str, object]:
    votes, guessed = sum(now.counts[-1]) if now.counts else 0, now.state in ("guessed", "revealed")
    return {
        "text": text_before(found, now.at, alphabet),
        "next": alphabet[found.passage.ids[now.at]] if now.state == "revealed" else "",
        "voted": TEXT("votes", votes=votes) if now.state == "voting" else "",
        "rows": rows(now, found, alphabet) if guessed else [],
        "losses": [
            {"name": name, "title": TEXT[f"by {name}"], "nats": loss}
            for name, loss in mean_nats(nats, now.known).items()
        ],
        "head": TEXT["head"],
        "loss_head": TEXT("loss head", characters=now.known),
        "names": [TEXT["by class"], TEXT["by model"]],
        "way": _way(now.question) if now.question is not None else None,
        "table": [[name, *each.round(5).tolist()] for name, each in nats.items()],
        "palette": theme.palette(),
    }


def _way(question: Question) -> dict[str, object]:
    return way_to(st.context.url or "", question.room) | {"room": question.room}


def rows(now: Round, studied: Studied, alphabet: tuple[str, ...]) -> list[dict[str, object]]:
    """Returns the characters that class or model hold for likeliest, with both probabilities; among them is
    the right one, once it is revealed.
    """
    guess = ClassGuess.of(now.counts[-1], studied.log_p[now.at])
    right = studied.passage.ids[now.at] if now.state == "revealed" else None
    return [
        {
            "character": alphabet[i],
            CLASS: float(guess.of_class[i]),
            MODEL: float(guess.of_model[i]),
            "right": i == right,
        }
        for i in guess.likeliest(ROWS, right)
    ]


def _answer(now: Round, found: Studied, alphabet: tuple[str, ...], nats: dict[str, np.ndarray]) -> str:
    """Says what the room is asked, what it prefers, or how its loss stands."""
    if now.state == "revealed":
        means = mean_nats(nats, now.known)
        said = TEXT("losses", characters=now.known, room=means[CLASS], model=means[MODEL])
        if now.known >= ENOUGH:
            return said
        chance = 2 * standard_error(nats[CLASS])
        return f"{said} {TEXT('few', chance=chance) if now.known > 1 else TEXT['single']}"
    if now.state == "guessed":
        guess = ClassGuess.of(now.counts[-1], found.log_p[now.at])
        room, model = guess.first
        several = "tie" if len(room) <= MOST_NAMED else "tie of many"
        case = "no votes" if not any(now.counts[-1]) else "guesses" if len(room) == 1 else several
        return TEXT(
            case,
            room=", ".join(show_characters(alphabet[i]) for i in room[:MOST_NAMED]),
            tied=len(room),
            model=show_characters(alphabet[model]),
            share=float(guess.of_class[room[0]]),
            p=float(guess.of_model[model]),
        )
    return TEXT["voting" if now.state == "voting" else "ready"]


PART = View("room", TEXT, draw)
