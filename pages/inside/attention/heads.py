"""The view "Heads": all patterns sorted by what they do, one enlarged; or one or two numbers of each head."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from engine.data.tokenizers import Tokenizer, token_bytes
from engine.model import Transformer
from engine.parts.attention import Attention
from engine.recording import Recording
from engine.slices import extent
from pages.inside.attention import axes, head_pairs
from pages.inside.attention.heads_map import HEAD_COLOURS, TOPIC
from studies.attention.attention_targets import NEAREST, shares
from studies.attention.copying_heads import name_mover_scores
from studies.attention.head_patterns import (
    HABITS,
    STRONG,
    Followers,
    Habit,
    clearest,
    counts,
    extremes,
    followers,
    grouped,
    habit_of_each,
    largest,
    least_bar,
    mean_head,
    measured_habits,
    ranked,
    score_of,
    two_numbers,
)
from studies.attention.heads import HeadNumbers, head_numbers
from studies.circuits.induction import (
    Repeated,
    duplicate_score,
    induction_score,
    ordinary,
    repeatable,
    repeated,
)
from studies.costs.growth import by_heads
from ui import content, explain, memo, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures import theme
from ui.figures.charts import head_heatmap, head_table
from ui.figures.patterns import heatmap_height, pattern_heatmap, pattern_table
from ui.model_bar import Subject
from ui.model_needs import HEADS
from ui.page_frame import Code, View
from ui.players.component import mounted
from ui.players.plot import plot

TEXT = content.beside(__file__)
PATTERNS, PAIRS = "patterns", "pairs"  # or one number of each head, by the field of HeadNumbers or the place
MEASURES = (
    *("entropy", "relative_entropy", "distance", "previous", "first", "word_start", "own_word", "near"),
    *("breaks", "same", "itself", "induction", "duplicate", "name_mover"),
)
UNITS = {"entropy": "nats", "distance": "tokens"}  # the others are shares
COLUMNS = ("relative_entropy", "name_mover", "word_start", "own_word", "breaks", "near")  # with short names
KIND, LAYERS = "kind", "layer"
RESORTED = "attention_resorted"  # in the session: sorted anew, and the strongest head is not known yet
MANY = 64  # heads: of so many a few of each kind are shown first
OF_A_KIND = 3
MENTIONED = 3  # habits in one sentence
NAMED_HEADS = 4  # of one habit
REPEATED = 24  # tokens that are read twice: as many as Circuits reads first, the same ones
MAP_HEIGHT = 400
MAX_PIXELS = 300_000  # of all small pictures together; beyond that they are drawn coarser
GRID = "attention_grid"
Strongest = tuple[Habit, float] | None  # what a head does most and how much; None where nothing is clear
UNCLEAR = "nothing clear"
COLOURS: dict[Habit, str] = {
    "previous": "run0",
    "word_start": "run1",
    "breaks": "run2",
    "same": "run3",
    "itself": "run4",
    "induction": "attention",
    "duplicate": "run5",
    "name_mover": "output",
    "own_word": "validation",
    "broad": "training",
    "near": "position",
    "first": "quiet",
}


def draw(subject: Subject) -> None:
    config = subject.config
    numbers, measure = _numbers_of(subject), _shown(subject)
    titles = _shown_titles()
    if measure == PAIRS:
        _draw_pairs(subject, numbers)
        return
    if measure != PATTERNS:
        widgets.select(TEXT["show"], titles, "attention_number", kind="list", width=220)
        _draw_measure(subject, numbers, measure)
        return
    patterns = subject.recording().stacked("pattern")
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):  # two in a row on a phone
        widgets.select(TEXT["show"], titles, "attention_number", kind="list", width=170)
        by, order = _sorted(numbers, config.n_heads)
        layer, head = widgets.head(config, TOPIC)
    habits = habit_of_each(numbers)
    _grid(subject, patterns, numbers, habits, (layer, head), order=order, by=by)
    if numbers.choice:
        explain.answer(_specialities(numbers, habits[layer * config.n_heads + head], layer, head))
    else:
        explain.answer(TEXT["one token"])
    explain.measure_it(_more, subject, patterns[layer], layer, head)


def _shown(subject: Subject) -> str:
    """The chosen kind of picture: PATTERNS, PAIRS, or one of MEASURES. Where the point of a head was clicked,
    that head's pattern.
    """
    shown = widgets.settled(_shown_titles(), "attention_number")
    head = head_pairs.clicked(subject.config.n_layers, subject.config.n_heads)
    if shown != PAIRS or head is None:
        return shown
    widgets.put("attention_number", PATTERNS)
    _look_at(head)
    st.session_state[RESORTED] = False
    return PATTERNS


def _look_at(head: Sequence[int]) -> None:
    """Chooses a head (layer, head), for all views of Attention."""
    for key, index in zip((f"{TOPIC}_layer", f"{TOPIC}_head"), head, strict=True):
        widgets.put(key, index)


def _shown_titles() -> dict[str, str]:
    titles: dict[str, str] = {PATTERNS: TEXT["patterns"], PAIRS: TEXT["pairs"]}
    return titles | {name: TEXT[f"measure {name}"] for name in MEASURES}


# Patterns ---------------------------------------------------------------------------------------


def _sorted(numbers: HeadNumbers, heads: int) -> tuple[Habit | None, list[int] | None]:
    """The habit that heads are sorted by, and those that are shown; None for all, layer by layer. With
    another habit the strongest head is chosen.
    """
    options: dict[str, str] = {KIND: TEXT["head type"], LAYERS: TEXT["block"]}
    options |= {str(habit): TEXT[f"habit {habit}"] for habit in HABITS}
    sort = widgets.select(TEXT["sort"], options, "attention_sort", kind="list", width=170, on_change=_resort)
    strong = widgets.switch(
        TEXT["strong only"], False, "attention_strong", hint=TEXT("strong hint", strong=STRONG)
    )
    by = next((habit for habit in HABITS if habit == sort), None)
    most = OF_A_KIND if numbers.entropy.size > MANY else numbers.entropy.size
    order = grouped(numbers, most, strong) if sort == KIND else ranked(numbers, by, strong)
    if not order:
        st.caption(f":material/info: {TEXT('none strong', least=least_bar(numbers, by))}")
        order = ranked(numbers, by)
    known = by is None or by in measured_habits(numbers)
    _follow(sort, known, divmod(clearest(numbers) if sort == KIND else order[0], heads))
    return by, None if sort == LAYERS and not strong else order


def _follow(sort: str, known: bool, strongest: tuple[int, int]) -> None:
    """Chooses the strongest head where somebody has sorted the heads by another habit, or nobody has chosen
    one yet. A measurement under way is followed when it is `known`. An address that says which head it shows
    is followed in any case.
    """
    keys = (f"{TOPIC}_layer", f"{TOPIC}_head")
    if widgets.unsaid(keys):
        _resort()
    elif widgets.went_back():
        st.session_state[RESORTED] = False
    if known and st.session_state.get(RESORTED):
        st.session_state[RESORTED] = False
        if sort != LAYERS:
            _look_at(strongest)


def _resort() -> None:
    st.session_state[RESORTED] = True


def _specialities(numbers: HeadNumbers, strongest: Strongest, layer: int, head: int) -> str:
    """Says what heads specialise in, and what the chosen one does (Markdown)."""
    found = counts(numbers)
    ranks = sorted(((count, habit) for habit, count in found.by_habit.items() if count), key=lambda x: -x[0])
    habits = [
        TEXT("some", heads=count, doing=TEXT(f"doing {habit}", heads=count))
        for count, habit in ranks[:MENTIONED]
    ]
    if rest := found.heads - sum(count for count, _ in ranks[:MENTIONED]):
        habits.append(TEXT("others", heads=rest))
    habit, value = strongest or (UNCLEAR, 0.0)
    here = TEXT(f"does {habit}", layer=layer, head=head, value=value, strong=STRONG, nearest=NEAREST)
    return TEXT("habits", heads=found.heads, habits=content.Filled(", ".join(habits)), here=here)


def _more(subject: Subject, patterns: np.ndarray, layer: int, head: int) -> None:
    """The chosen head of a layer's patterns (head, query, key) as a figure that can be saved, and what
    several heads cost.
    """
    if widgets.select(TEXT["show as"], (TEXT["heatmap"], TEXT["arcs"]), "attention_as") == TEXT["arcs"]:
        _arcs(subject, patterns, layer, head)
    else:
        weights = patterns[head]
        plot(
            pattern(weights, subject.labels, subject.config.causal),
            key="attention_pattern",
            alt=TEXT("alt pattern", layer=layer, head=head),
            height=heatmap_height(len(weights)),
            data=pattern_table(weights, subject.labels),
            name=f"pattern-layer-{layer}-head-{head}",
        )
    st.caption(TEXT("where recorded", layer=layer, head=head, tokens=len(subject.ids)))
    st.markdown(TEXT["several heads"])
    c = subject.config
    cuts = by_heads(c, c.context, subject.model.parts)
    columns = {
        TEXT["head width"]: [f"{cut.d_head}" for cut in cuts],
        TEXT("flops", tokens=c.context): [f"{cut.flops:,}" for cut in cuts],
    }
    rows = [TEXT("cost of", heads=cut.heads) for cut in cuts]
    st.table(pd.DataFrame(columns, index=pd.Index(rows, name="")))
    st.markdown(TEXT["published"])


def pattern(weights: np.ndarray, labels: Sequence[str], causal: bool) -> go.Figure:
    """Draws weights (query, key) in [0, 1], queries down; what the mask hides is grey."""
    wide, tall = 230, heatmap_height(len(weights)) - 100  # pixels of the cells, where they have least
    margin = {"l": 34 + axes.room_for(labels, tall), "t": 30 + axes.room_for(labels, wide), "r": 8, "b": 8}
    layout = {"margin": margin, "xaxis": axes.across(labels, wide), "yaxis": axes.down(labels, tall)}
    masked = {"plot_bgcolor": axes.MASKED} if causal else {}
    return pattern_heatmap(axes.unmasked(weights, causal), labels).changed(layout | masked)


# The two components that draw patterns in the browser -------------------------------------------


def _grid(
    subject: Subject,
    patterns: np.ndarray,
    numbers: HeadNumbers,
    habits: Sequence[Strongest],
    chosen: tuple[int, int],
    *,
    order: Sequence[int] | None,
    by: Habit | None,
) -> None:
    """Patterns (layer, head, query, key) as small pictures: of all heads, a row for each layer, or of those
    in `order` (layer * heads + head), each with its score of the habit `by`, or of its own; beside them one
    large, which follows the pointer. A click goes to `_take_head`.
    """
    layers, heads = patterns.shape[:2]
    pixels, size, triangle = _pixels(subject.key, subject.ids, patterns)
    layer, head = chosen
    many = counts(numbers).by_habit
    data = {
        "layers": layers,
        "heads": heads,
        "size": size,
        "pixels": pixels,
        "step": -(-patterns.shape[-1] // size),
        "triangle": triangle,
        "masked": subject.config.causal,
        "full": _weights(subject.key, subject.ids, layer, patterns[layer], head),
        "tokens": subject.labels,
        "hints": [_hint(at // heads, at % heads, habit, numbers.choice) for at, habit in enumerate(habits)],
        "chosen": [int(c) for c in chosen],
        "order": None if order is None else list(order),
        "scores": _scores(numbers, habits, by),
        "names": [TEXT[f"below {by or (habit[0] if habit else UNCLEAR)}"] for habit in habits],
        "habits": [None if habit is None else habit[0] for habit in habits],
        "legend": [
            (name, COLOURS[name], TEXT("legend", habit=TEXT[f"habit {name}"], heads=many[name]))
            for name in HABITS
            if many[name]
        ],
        "palette": theme.palette(),
        "alt": (
            TEXT("alt grid", layers=layers, heads=heads)
            if order is None
            else TEXT("alt sorted", chosen=len(order))
        ),
    }
    mounted("headgrid")(key=GRID, data=data, on_chosen_change=partial(_take_head, (layers, heads)))


def _take_head(there: tuple[int, int]) -> None:
    """Takes over the head that was clicked in the grid, of (layers, heads): the choosers follow."""
    where = widgets.indexes_of(widgets.picked(GRID, "chosen"), there, ",")
    if where is not None:
        _look_at(where)


def _hint(layer: int, head: int, strongest: Strongest, choice: bool) -> str:
    """Where a head is and what it does; without a `choice` there is only one token."""
    if not choice or strongest is None:
        return TEXT("hint unclear" if choice else "hint one token", layer=layer, head=head)
    habit, value = strongest
    case = {"broad": "broad", "induction": "random text", "duplicate": "random text"}.get(habit, "share")
    return TEXT(f"hint of {case}", layer=layer, head=head, habit=TEXT[f"habit {habit}"], value=value)


def _scores(numbers: HeadNumbers, habits: Sequence[Strongest], by: Habit | None) -> list[str]:
    """The number beside each head's name: its score of a habit, or of its own."""
    if by is None:
        return ["" if top is None else f"{top[1]:.0%}" for top in habits]
    values = score_of(numbers, by)
    if values is None:
        return [""] * numbers.entropy.size
    return ["" if np.isnan(value) else f"{value:.0%}" for value in values.reshape(-1)]


def _arcs(subject: Subject, patterns: np.ndarray, layer: int, head: int) -> None:
    """Draws two columns of tokens with lines between them, for the heads of one layer: patterns (head, query,
    key).
    """
    colours = theme.palette()
    data = {
        "weights": _weights(subject.key, subject.ids, layer, patterns),
        "tokens": subject.labels,
        "heads": len(patterns),
        "layer": layer,
        "head": head,
        "colours": [colours[name] for name in HEAD_COLOURS],
        "alt": TEXT("alt arcs", layer=layer),
        "hint": TEXT["arcs hint"],
    }
    mounted("arcs")(key="attention_arcs", data=data)


@memo.measured()
def _pixels(key: tuple[str, int], ids: tuple[int, ...], _patterns: np.ndarray) -> tuple[str, int, bool]:
    """(base64 of uint8 (layer, head, row, column), rows, whether only the lower triangles). Large ones shrink
    by taking the largest of neighbouring weights.
    """
    size = _patterns.shape[-1]
    step = 1
    while _patterns.shape[0] * _patterns.shape[1] * (size / step) ** 2 > MAX_PIXELS and size // step > 24:
        step += 1
    rows = -(-size // step)
    padded = np.zeros((*_patterns.shape[:2], rows * step, rows * step), dtype=np.float32)
    padded[..., :size, :size] = np.nan_to_num(_patterns)
    small = np.rint(padded.reshape(*_patterns.shape[:2], rows, step, rows, step).max((3, 5)) * 255)
    triangle = not np.triu(small, 1).any()
    sent = (small[(..., *np.tril_indices(rows))] if triangle else small).astype(np.uint8)
    return base64.b64encode(sent.tobytes()).decode("ascii"), rows, triangle


@memo.measured()
def _weights(
    key: tuple[str, int],
    ids: tuple[int, ...],
    layer: int,
    _patterns: np.ndarray,
    head: int | None = None,
) -> str:
    """base64 of uint16 (head, query, key), or of one head: a weight in steps of 1/65535."""
    if head is not None:
        _patterns = _patterns[head]
    return base64.b64encode(np.rint(np.nan_to_num(_patterns) * 65535).astype("<u2").tobytes()).decode("ascii")


# One number of every head -----------------------------------------------------------------------


def _draw_measure(subject: Subject, numbers: HeadNumbers, field: str) -> None:
    """A cell for each head, coloured by one of MEASURES."""
    arrays = _measured(numbers)
    title, unit = TEXT[f"measure {field}"], UNITS.get(field, "share")
    st.caption(TEXT(f"meaning {field}", nearest=NEAREST))
    if field not in arrays:
        lacking = "yet" if can_repeat(subject) else "in so few"
        case = "in an encoder" if field == "name_mover" else lacking
        st.info(TEXT(f"not measured {case}", measure=title))
    elif not np.isfinite(arrays[field]).any():
        st.info(TEXT["one token"])
    else:
        values = arrays[field]
        least, most = extent(values)
        plot(
            head_heatmap(
                values, f"{title.lower()} ({TEXT[f'unit {unit}']})", top=1.0 if unit == "share" else None
            ),
            key="attention_numbers",
            alt=TEXT("alt measure", measure=title, least=least, most=most, unit=TEXT[f"unit {unit}"]),
            height=MAP_HEIGHT,
            data=head_table(arrays),
            name="heads",
        )
        best, mean = largest(values), mean_head(values)
        explain.answer(
            TEXT(
                f"highest {unit}",
                layer=best.layer,
                head=best.head,
                measure=title.lower(),
                most=best.value,
                mean=mean,
            )
        )
    explain.measure_it(_all_measures, subject, numbers, arrays)


def _draw_pairs(subject: Subject, numbers: HeadNumbers) -> None:
    """A point for each head, by two of MEASURES."""
    arrays, titles = _measured(numbers), {name: TEXT[f"measure {name}"] for name in MEASURES}
    units = {name: TEXT[f"unit {UNITS.get(name, 'share')}"] for name in MEASURES}
    with st.container(horizontal=True, gap="small"):
        widgets.select(TEXT["show"], _shown_titles(), "attention_number", kind="list", width=220)
        pair = head_pairs.choose(arrays, titles)
    head_pairs.draw(pair, arrays, titles, units)
    explain.measure_it(_all_measures, subject, numbers, arrays)


def _measured(numbers: HeadNumbers) -> dict[str, np.ndarray]:
    """Returns MEASURES, as far as there are numbers, (layer, head) each."""
    return {name: values for name in MEASURES if (values := number_of(numbers, name)) is not None}


def number_of(numbers: HeadNumbers, field: str) -> np.ndarray | None:
    """Returns (layer, head); None where it was not measured."""
    return numbers.by_target.get(field, getattr(numbers, field, None))


def _all_measures(subject: Subject, numbers: HeadNumbers, arrays: dict[str, np.ndarray]) -> None:
    """The notable heads, and all numbers as a table."""
    st.markdown(TEXT["stand out"])
    st.markdown("\n".join(f"- {line}" for line in _standing_out(numbers, subject.config.causal)))
    table = pd.DataFrame(head_table(arrays)).rename(
        columns={name: TEXT[f"column {name}"] for name in COLUMNS}
    )
    st.dataframe(
        table,
        hide_index=True,
        width="stretch",
        height=min(38 + 35 * len(table), 460),
        column_config={c: st.column_config.NumberColumn(format="%.3f") for c in table.columns[2:]},
        key="attention_table",
    )
    st.caption(TEXT("measured how", repeated=REPEATED))


def _standing_out(numbers: HeadNumbers, causal: bool) -> list[str]:
    """Sentences that name heads, each with what was measured."""
    lines = [_followers(group) for group in followers(numbers)]
    if ends := extremes(numbers):
        farthest = "farthest back" if causal else "farthest"
        for name, end in (("even", ends.even), ("decided", ends.decided), (farthest, ends.farthest)):
            lines.append(TEXT(f"end {name}", layer=end.layer, head=end.head, value=end.value, nats=ends.nats))
    return lines or [TEXT["one token"]]


def _followers(group: Followers) -> str:
    """Which heads follow a habit, or come closest."""
    doing = TEXT(f"doing {group.habit}", heads=max(1, len(group.heads)))
    if not group.heads:
        most = group.most
        return TEXT("no followers", doing=doing, layer=most.layer, head=most.head, value=most.value)
    heads = ", ".join(
        TEXT("head with share", layer=each.layer, head=each.head, value=each.value)
        for each in group.heads[:NAMED_HEADS]
    )
    more = len(group.heads) - NAMED_HEADS
    return TEXT(
        "more followers" if more > 0 else "followers",
        heads=content.Filled(heads[0].upper() + heads[1:]),
        doing=doing,
        more=more,
    )


# What the heads do, measured once for all -------------------------------------------------------


def _numbers_of(subject: Subject) -> HeadNumbers:
    """All that could be measured so far: where reading twice takes longer than a glance, a bar is drawn, and
    the page again when that is done.
    """
    twice = None
    if can_repeat(subject):
        pool = _pool(subject.key[0], subject.config.vocab_size, subject.tokenizer)
        key = ("repeated", subject.key)
        twice = measured(
            key,
            partial(repeated, subject.model, sequences=1, pool=pool, count=REPEATED),
            TEXT["reading twice"],
        )
    return _numbers(
        subject.key,
        subject.ids,
        twice is not None,
        subject.recording(),
        subject.model,
        subject.tokenizer,
        twice,
    )


def can_repeat(subject: Subject) -> bool:
    """True if induction can be measured."""
    return repeatable(subject.model, min(subject.tokenizer.vocab_size, subject.config.vocab_size)) > 0


@memo.loaded()
def _pool(name: str, vocab_size: int, _tokenizer: Tokenizer) -> np.ndarray:
    return ordinary(token_bytes(_tokenizer)[:vocab_size])


@memo.measured()
def _numbers(
    key: tuple[str, int],
    ids: tuple[int, ...],
    known: bool,
    _recording: Recording,
    _model: Transformer,
    _tokenizer: Tokenizer,
    _repeated: Repeated | None,
) -> HeadNumbers:
    """`known`, whether there are numbers of reading twice, stands for them in the key."""
    patterns, visible = _recording.stacked("pattern"), _recording.seen()
    names = token_bytes(_tokenizer)
    texts = [names[i].decode("utf-8", "replace") if i < len(names) else "" for i in ids]
    where = shares(patterns, visible, ids, texts)
    measures = head_numbers(
        patterns,
        visible,
        _repeated.induction if _repeated else None,
        _repeated.duplicate if _repeated else None,
        name_mover_scores(_model, _recording),
    )
    return replace(
        measures, by_target=where.weight, even_by_target=where.even, word_by_distance=where.word_by_distance
    )


def _variant(subject: Subject) -> str:
    if (shown := _shown(subject)) != PATTERNS:
        return "pairs" if shown == PAIRS else "measures"
    return "" if subject.config.causal else "both ways"


def _code(subject: Subject) -> Code:
    if (shown := _shown(subject)) == PATTERNS:
        return Attention, Attention.forward, head_numbers
    if shown == PAIRS:
        return head_numbers, two_numbers
    return head_numbers, induction_score, duplicate_score, repeated, name_mover_scores


VIEW = View(
    "heads",
    TEXT,
    draw,
    _code,
    takes=(HEADS,),
    variant=_variant,
    variants={"measures": (("attention_number", "entropy"),), "pairs": (("attention_number", PAIRS),)},
    fields={"strong": STRONG},
    figures_only=True,
    shows=("multiple heads", "multi-head attention"),
)
