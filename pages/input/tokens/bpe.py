"""The view "BPE": merges learned from a text, played in the browser over one's own passage, and what they are
worth.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from engine.data import corpora
from engine.data.tokenizers.bpe import BpeTokenizer, Level, Split, train
from pages.input.tokens.examples import MERGES
from pages.input.tokens.text_box import text_box
from pages.input.tokens.training_text import Sources, called, corpus, known_words
from pages.input.tokens.watching import MOST, Watching, learned, watching
from studies.exercises.worked.bpe import two_merges
from studies.guesses import tokens
from studies.tokens.bpe_watch import MAX_SYMBOLS, Watched, Way, affordable, four_ways
from studies.tokens.subwords import Shrinking, ThreeWays, achieved, agreement, three_ways
from ui import content, explain, fill_in, memo, session
from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import colour
from ui.guess import Choice, Guess, ask
from ui.page_frame import View
from ui.players.component import SAVES, STEPPER, mounted
from ui.players.plot import plot
from ui.text.markdown import safe
from ui.text.tokens import show_bytes
from ui.widgets import number_of, picked, put_index, select, url_index, whole

TEXT = content.beside(__file__)
OWN, SHAKESPEARE = "own", "shakespeare"
SHOWN = 2_000  # characters in which merges are watched
COMPARED = 20_000  # characters on which the four ways are compared
NEW_TOKENS = 100
PLAYER, STEP, TOKEN = "bpe_player", "bpe_step", "bpe_token"
FOLLOW = -1  # the token whose tree is shown is the one that the step makes
UNITS: dict[str, Callable[[Shrinking], np.ndarray]] = {
    "tokens left, % of the original": lambda shrinking: shrinking.percent,
    "characters per token": lambda shrinking: shrinking.characters_per_token,
    "bytes per token": lambda shrinking: shrinking.bytes_per_token,
}
LINES = (("embedding", "solid"), ("run1", "dot"))  # of the text and of the passage
CROSSING = 10  # tokens across a word boundary that are named


@dataclass(frozen=True)
class Texts:
    """`learned` is what merges are learned from, `passage` where they are shown; `name` says whose text it
    is.
    """

    learned: str
    passage: str
    name: str

    @property
    def same(self) -> bool:
        return self.learned == self.passage


def draw() -> None:
    """Controls in one line; the player, and beside it what it comes to."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        typed = text_box(MERGES, "bpe_text")
        source, level, split, new_tokens = _settings()
    # so that a sentence more, or a spinner, does not move the player out of its place
    notes = st.container()
    with notes:
        texts = None if typed is None else _texts(typed, level, split, source)
        if texts is None or not learned(texts.learned, new_tokens, level, split):
            return
        watched = watching(texts.learned, texts.passage, new_tokens, level, split)
    if not watched.seen.tokenizer.merges:
        st.info(TEXT["nothing to merge"])
        return
    left, right = st.columns([15, 8], gap="medium")
    with left:
        _play(watched, texts)
    with right:
        explain.answer(_answer(watched.ways, len(watched.seen.tokenizer.merges), texts.name))
        _draw_ways(watched.ways)
    explain.measure_it(_measured, watched, texts, new_tokens, level)
    explain.by_hand(fill_in.draw, "bpe", two_merges)


def _settings() -> tuple[str, Level, Split, int]:
    """(what is learned from, the starting symbols, whether words are kept apart, tokens to learn)"""
    sources = {name: TEXT(f"from {name}") for name in (OWN, SHAKESPEARE, "python")}
    levels: dict[Level, str] = {"byte": TEXT["level byte"], "char": TEXT["level char"]}
    splits: dict[Split, str] = {"words": TEXT["split words"], "none": TEXT["split none"]}
    with st.popover(TEXT["settings"], icon=":material/tune:"):
        source = select(TEXT["train on"], sources, "bpe_from", first=OWN, wrap=True)
        level = select(TEXT["start from"], levels, "bpe_level", wrap=True)
        split = select(TEXT["split"], splits, "bpe_split", wrap=True)
        hint = TEXT("new hint", most=MOST)
        new_tokens = whole(TEXT["new"], 1, MOST, NEW_TOKENS, "bpe_new", step=50, width=180, hint=hint)
    return source, level, split, new_tokens


def _texts(typed: str, level: Level, split: Split, source: str) -> Texts | None:
    """Returns the text to learn from and the passage to watch; says what was left out. None, with a sentence,
    where there is nothing to learn from.
    """
    limit = min(session.profile().max_watched, MAX_SYMBOLS)
    if source == OWN:
        if not typed:
            st.info(TEXT["no text"])
            return None
        text, name = typed, called("yours")
        most = affordable(text, level, split, limit)
    else:
        chosen = corpus(source)
        text, name = chosen.text, called(chosen.name)
        most = _affordable(chosen.name, level, split, limit, text)
        if not typed:
            st.caption(TEXT["beginning shown"])
    if most < len(text):
        unsplit = "learned partly, unsplit" if split == "none" else "learned in part"
        st.caption(TEXT(unsplit, learned=most, characters=len(text)))
    if len(typed) > SHOWN:
        shown = "shown in part" if source == OWN else "passage in part"
        st.caption(TEXT(shown, shown=SHOWN, characters=len(typed)))
    return Texts(text[:most], (typed or text)[:SHOWN], name)


@memo.measured()
def _affordable(corpus: str, level: Level, split: Split, limit: int, _text: str) -> int:
    return affordable(_text, level, split, limit)


def _answer(ways: ThreeWays, merges: int, name: str) -> str:
    """Says what pieces save, and what whole words would not do."""
    letters, pieces = ways.characters.tokens, ways.pieces.tokens
    if pieces >= letters:
        return TEXT("no shorter", letters=letters, pieces=pieces, name=name, merges=merges)
    less = content.Filled(f"{ways.less_work:,.{1 if ways.less_work < 10 else 0}f}")
    saved = TEXT("shorter", letters=letters, pieces=pieces, shorter=ways.shorter, less=less)
    if ways.words is None:
        return saved
    if not ways.new or ways.words.spelled:
        return f"{saved} {TEXT('whole words', words=ways.words.tokens)}"
    return f"{saved} {TEXT('new word', new=ways.new, spelled=ways.pieces.spelled)}"


def _draw_ways(ways: ThreeWays) -> None:
    """Characters, pieces and whole words of the same text, and of a word that it does not have."""
    rows = {"characters": ways.characters, "BPE": ways.pieces}
    if ways.words is not None:
        rows["whole words"] = ways.words
    table = pd.DataFrame({"tokens T": [f"{way.tokens:,}" for way in rows.values()]}, index=list(rows))
    if ways.new:
        table[f"“␣{safe(ways.new)}”"] = [
            TEXT("spelled" if way.spelled else "not spelled", spelled=way.spelled) for way in rows.values()
        ]
    st.table(table)


@st.fragment
def _play(watched: Watching, texts: Texts) -> None:
    """The player. It is told all frames once and plays by itself; where it came to rest, it tells, for the
    link.
    """
    own = watched.seen.tokenizer
    step, token = _at(len(own.merges), own.vocab_size)
    _keep(step, token)
    data = {"frames": watched.frames, "key": watched.key, "step": step, "token": token, "name": texts.name}
    mounted("bpe", styles=(SAVES, STEPPER, "scrubber", "bpe"))(key=PLAYER, data=data, on_at_change=_rested)
    ask("merge", next_merge, watched.seen, step)


def _at(merges: int, vocabulary: int) -> tuple[int, int]:
    """(step, token) of the link; what does not fit falls back."""
    chosen = url_index(TOKEN, vocabulary)
    return url_index(STEP, merges, nearest=True) or 0, FOLLOW if chosen is None else chosen


def _keep(step: int | None, token: int | None) -> None:
    put_index(STEP, step or None)
    put_index(TOKEN, None if token == FOLLOW else token)


def _rested() -> None:
    """The player has come to rest."""
    step, _, token = str(picked(PLAYER, "at")).partition(",")
    _keep(number_of(step), number_of(token))


def next_merge(watched: Watched, step: int) -> Guess | None:
    """Returns which pair is merged after the one that the player shows."""
    merge = tokens.next_merge(watched, step)
    if merge is None:
        return None
    table = watched.tokenizer.tokens
    names = [" + ".join(show_bytes(table[i]) for i in pair) for pair in merge.pairs]
    most = merge.counts[merge.right]
    choices = []
    for at, (name, count) in enumerate(zip(names, merge.counts, strict=True)):
        passed = "used up" if count is None else "tied" if count == most else "rarer"
        choices.append(Choice(name, TEXT(f"reply {'merged' if at == merge.right else passed}", count=count)))
    right = content.Filled(names[merge.right])
    outcome = TEXT("outcome", step=step + 2, pair=right, count=most)
    return Guess(TEXT("guess", step=step + 1), tuple(choices), merge.right, outcome)


def _measured(watched: Watching, texts: Texts, new_tokens: int, level: Level) -> None:
    st.markdown(_achieved(watched.seen, new_tokens))
    st.markdown(_vocabularies(watched, texts, level))
    st.caption(TEXT("learned from", name=texts.name, characters=watched.seen.characters))
    parts = {name: TEXT(f"part {name}") for name in ("compression", "merges", "ways", "tiktoken")}
    part = select(TEXT["shown"], parts, "bpe_part", hidden=True)
    if part == "merges":
        _draw_merges(watched.seen)
    elif part == "ways":
        _draw_four(texts, new_tokens)
    elif part == "tiktoken":
        _draw_tiktoken(watched.seen.tokenizer, texts.passage)
    else:
        _draw_compression(watched, texts)


def _achieved(seen: Watched, requested: int) -> str:
    """Says how many tokens were learned; `requested` should have been."""
    result = achieved(seen)
    each = result.shrinking
    said = [
        TEXT(
            "achieved",
            start=result.start,
            left=result.left,
            merges=result.merges,
            share=result.share,
            characters=each.characters_per_token[-1],
            bytes=each.bytes_per_token[-1],
            vocabulary=result.vocab_size,
        )
    ]
    if result.early:
        said.append(TEXT("half early", half=result.half))
    if result.learned < requested:
        said.append(TEXT("no pair left", requested=requested))
    if result.once is not None:
        said.append(TEXT("pairs occur once", once=result.once))
    return " ".join(said)


def _vocabularies(watched: Watching, texts: Texts, level: Level) -> str:
    """Says how large each vocabulary is, for this text."""
    ways, base, large = watched.ways, len(watched.seen.tokenizer.base), _large_list(texts)
    case = "without words" if ways.words is None else "of this text" if large is None else "with long one"
    return TEXT(
        f"vocabularies {case}",
        characters=ways.characters.vocab_size,
        base=base,
        level=TEXT(f"level {level}").lower(),
        merges=ways.pieces.vocab_size - base,
        words=0 if ways.words is None else ways.words.vocab_size,
        large=large,
    )


def _large_list(texts: Texts) -> int | None:
    """How many words all of Tiny Shakespeare has; None where it is not here, or is what is learned from."""
    if texts.name == called(SHAKESPEARE) or corpora.shakespeare_path() is None:
        return None
    known = known_words(Sources(SHAKESPEARE, "", session.corpus(SHAKESPEARE).text))
    return None if known is None else known.vocab_size


def _draw_compression(watched: Watching, texts: Texts) -> None:
    unit = select(TEXT["measure"], list(UNITS), "bpe_unit")
    record, passage = watched.seen, texts.passage
    shrinking = {texts.name: achieved(record).shrinking}
    if not texts.same:
        shrinking[TEXT["passage"]] = Shrinking(
            watched.shown.lengths(len(record.tokenizer.merges)),
            len(passage),
            len(passage.encode("utf-8", "surrogatepass")),
        )
    table = pd.DataFrame({"merges": np.arange(len(record.lengths))})
    for name, shrunk in shrinking.items():
        columns = {"tokens left": shrunk.tokens} | {written: of(shrunk) for written, of in UNITS.items()}
        table = table.assign(**{f"{measure}, {name}": column for measure, column in columns.items()})
    curves = {name: UNITS[unit](shrunk) for name, shrunk in shrinking.items()}
    first, saved = curves[texts.name], shrinking[texts.name].saved
    plot(
        compression(curves, unit),
        key="bpe_compression",
        height=320,
        data=table,
        name="bpe-compression",
        alt=TEXT("alt compression", unit=unit, first=first[0], last=first[-1], name=texts.name),
    )
    st.caption(TEXT("saved", name=texts.name, first=saved[0], last=saved[-1]))


def compression(curves: Mapping[str, np.ndarray], unit: str) -> go.Figure:
    """Draws `curves`: name -> value after 0, 1, 2 ... merges."""
    traces = [
        go.line(
            np.arange(len(values), dtype=np.float32),
            values.astype(np.float32),
            shade,
            plain(name),
            TEXT("hover compression", unit=unit),
            width=3,
            dash=dash,
        )
        for (name, values), (shade, dash) in zip(curves.items(), LINES, strict=False)
    ]
    top = max(float(values.max()) for values in curves.values())
    return go.figure(
        traces,
        xaxis={"title": {"text": TEXT["merges made"]}, "rangemode": "tozero"},
        yaxis={"title": {"text": unit}, "range": [0, top * 1.05]},
        uirevision=f"bpe-{unit}",
        showlegend=len(curves) > 1,
        margin={"l": 64, "r": 16, "t": 28, "b": 44},
    )


def _draw_merges(watched: Watched) -> None:
    st.dataframe(
        merges_table(watched),
        hide_index=True,
        height=360,
        key="bpe_merges",
        column_config={
            "count": st.column_config.NumberColumn(format="localized"),
            "tokens left": st.column_config.NumberColumn(format="localized"),
        },
    )
    st.caption(TEXT["merges in order"])


def merges_table(watched: Watched) -> pd.DataFrame:
    """Returns a row for each merge."""
    tokenizer = watched.tokenizer
    tokens = [show_bytes(token) for token in tokenizer.tokens]
    following = [
        f"{tokens[r[0][0][0]]} + {tokens[r[0][0][1]]}: {r[0][1]:,}" if r else "" for r in watched.runners_up
    ]
    rows = [
        (number, tokens[m.pair[0]], tokens[m.pair[1]], tokens[m.token], m.token, m.count, m.length, after)
        for number, (m, after) in enumerate(zip(tokenizer.merges, following, strict=True), 1)
    ]
    return pd.DataFrame(
        rows, columns=["merge", "left", "right", "token", "id", "count", "tokens left", "runner-up"]
    )


@memo.measured(TEXT["training four"])
def _ways(text: str, new_tokens: int) -> list[Way]:
    return four_ways(text, new_tokens)


def _draw_four(texts: Texts, new_tokens: int) -> None:
    """The four ways to start: from bytes or characters, split into words or not."""
    text = texts.learned[:COMPARED]
    ways = _ways(text, new_tokens)
    names = [TEXT(f"way {way.level} {way.split}") for way in ways]
    counts = ", ".join(TEXT("way left", way=n, left=w.length) for n, w in zip(names, ways, strict=True))
    table = pd.DataFrame(
        {
            "way": names,
            TEXT["at start"]: [w.start for w in ways],
            "tokens left": [w.length for w in ways],
            "vocabulary": [w.vocab_size for w in ways],
            "characters per token": [w.characters_per_token for w in ways],
            TEXT["crossing"]: [len(w.crossing) for w in ways],
        }
    )
    plot(
        ways_bars(names, [w.start for w in ways], [w.length for w in ways]),
        key="bpe_ways",
        height=330,
        data=table,
        name="bpe-four-ways",
        alt=TEXT("alt four ways", merges=new_tokens, counts=counts),
    )
    st.dataframe(
        table,
        hide_index=True,
        key="bpe_ways_table",
        column_config={"characters per token": st.column_config.NumberColumn(format="%.2f")},
    )
    part = TEXT("first characters", characters=COMPARED, name=texts.name)
    cut = part if len(text) < len(texts.learned) else texts.name
    said = TEXT("four ways", cut=cut, merges=new_tokens)
    st.caption(f"{said} {TEXT['memorised']}" if any(way.by_heart for way in ways) else said)
    crossing = ways[1].crossing
    some = " · ".join(TEXT("quoted", token=show_bytes(token)) for token in crossing[:CROSSING])
    case = "tokens cross" if crossing else "no token crosses"
    st.markdown(TEXT(case, tokens=len(crossing), some=content.Filled(some)))


def ways_bars(names: Sequence[str], start: Sequence[int], left: Sequence[int]) -> go.Figure:
    """Draws tokens of the same text before and after the same number of merges, a pair of bars for each way,
    first on top.
    """
    at = -np.arange(len(names))
    bars = [
        go.Bar(
            orientation="h",
            y=at,
            x=np.asarray(values),
            name=name,
            marker={"color": colour("residual", 45) if light else colour("embedding")},
            text=[f"{v:,}" for v in values],
            textposition="auto",
            hovertemplate=f"%{{x:,}} {name}<extra></extra>",
        )
        for name, values, light in ((TEXT["at start"], start, True), ("tokens left", left, False))
    ]
    return go.figure(
        bars,
        barmode="group",
        bargap=0.25,
        margin={"l": 8, "r": 16, "t": 28, "b": 40},
        xaxis={"title": {"text": TEXT["tokens of text"]}, "rangemode": "tozero"},
        yaxis=go.ticks(at, [plain(n) for n in names], automargin=True),
        uirevision="bpe-ways",
    )


NOTEBOOK = """import json
from engine.data.tokenizers.bpe import BpeTokenizer

own = BpeTokenizer.from_dict(json.load(open("tokenizer.json")))
encoding = own.as_tiktoken()  # a tiktoken.Encoding
encoding.encode_ordinary("any text")"""


@memo.measured()
def _theirs(frozen: str, passage: str) -> list[int]:
    """The passage's ids by tiktoken, from the tokenizer written down."""
    return BpeTokenizer.from_dict(json.loads(frozen)).as_tiktoken().encode_ordinary(passage)


def _draw_tiktoken(tokenizer: BpeTokenizer, passage: str) -> None:
    frozen = json.dumps(tokenizer.to_dict())
    if tokenizer.level == "char":
        st.info(TEXT["bytes only"])
    else:
        mine, theirs = tokenizer.encode(passage), _theirs(frozen, passage)
        both = agreement(mine, theirs)
        if both.first is None:
            st.success(TEXT("same ids", tokens=both.ours), icon=":material/check:")
        else:
            st.error(TEXT("other ids", first=both.first, ours=both.ours, theirs=both.theirs))
        st.dataframe(
            pd.DataFrame(
                {
                    "position": np.arange(len(mine)),
                    "token": [show_bytes(tokenizer.tokens[i]) for i in mine],
                    "our id": mine,
                    "tiktoken's id": pd.Series(theirs).reindex(range(len(mine))),
                }
            ),
            hide_index=True,
            height=240,
            key="bpe_ids",
        )
        st.caption(TEXT["both computed"])
        st.code(NOTEBOOK, language="python")
    st.download_button(
        TEXT["download"],
        frozen,
        "tokenizer.json",
        "application/json",
        icon=":material/download:",
        on_click="ignore",
        key="bpe_download",
    )


VIEW = View("bpe", TEXT, draw, code=(train, BpeTokenizer.encode, three_ways), needs_model=False)
