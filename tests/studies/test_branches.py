"""Texts as a tree, by branches and by beam search: nothing written is lost, and the best is found."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import SampleConfig
from engine.data.progress import finish
from engine.errors import ConfigError, ShapeError
from engine.sample import generate, steps, uniform
from engine.sample.generate import window
from engine.sample.stages import stages
from studies.generation.beam import beam_search, sampled
from studies.generation.branches import Tree, ended_by, follow, grow, likelihood, pick
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

MODEL = loud(tiny(), seed=3, factor=4.0)
WARM = SampleConfig(temperature=1.0, seed=4)
PROMPT = (1, 2, 3)
KINDS = st.sampled_from(["grow", "pick", "delete"])
MOVES = st.lists(st.tuples(KINDS, st.integers(0, 99), st.integers(0, 10), st.integers(1, 4)), max_size=14)


def words(tree: Tree, end: int | None) -> tuple[int, ...]:
    return tree.tokens(end)[len(tree.prompt) :]


@for_each("cut", [1, 2, 5, 8, 9, 13, 19])
@for_each("changes", [{}, {"position": "rope"}, {"mixer": "mean"}], ids=["plain", "rope", "mean"])
def test_a_text_goes_on_as_if_it_had_never_stopped(cut, changes):
    """Past the context of 8 too: the draws, the window and the logits are those of one call."""
    model = loud(tiny(**changes), seed=3, factor=4.0)
    whole = list(steps(model, PROMPT, 20, WARM))
    before = [r.token for r in whole[:cut]]
    rest = list(steps(model, [*PROMPT, *before], 20 - cut, WARM, written=cut))
    assert [r.token for r in rest] == [r.token for r in whole[cut:]]
    assert [(r.position, r.begin) for r in rest] == [(r.position, r.begin) for r in whole[cut:]]
    for a, b in zip(rest, whole[cut:], strict=True):
        assert torch.allclose(a.logits, b.logits, atol=1e-4)


@given(prompt=st.integers(1, 20), context=st.integers(1, 9))
def test_the_window_is_the_one_that_the_steps_move(prompt, context):
    """Against the rule itself: full, it goes on from the last half."""
    begin = max(0, prompt - context)
    for position in range(prompt, prompt + 30):
        if position - begin > context:
            begin = position - max(1, context // 2)
        assert window(prompt, position, context) == begin


def test_a_tree_writes_what_generate_writes_and_says_with_which_probability():
    tree, end = grow(Tree(PROMPT), MODEL, WARM, None, 12)
    records = list(steps(MODEL, PROMPT, 12, WARM))
    assert words(tree, end) == tuple(generate(MODEL, PROMPT, 12, WARM)) and len(tree) == 12
    for node, record in zip(tree.path(end), records, strict=True):
        assert (math.exp(node.log_p), node.q) == pytest.approx((record.probability,) * 2, rel=1e-4)
        assert (node.begin, node.drawn, node.picked) == (record.begin, record.token, False)
        shares = [p for _, p, _ in node.alternatives]
        assert shares[:8] == sorted(shares, reverse=True)[:8] and sum(shares) <= 1 + 1e-9
    assert len({node.begin for node in tree.path(end)}) > 1  # the window moved


def test_what_the_settings_make_of_a_probability_is_what_the_stages_say():
    cut = SampleConfig(temperature=0.7, top_k=3, top_p=0.9, repetition_penalty=1.4, seed=1)
    tree, end = grow(Tree(PROMPT), MODEL, cut, None, 5)
    ids = list(PROMPT)
    for node, record in zip(tree.path(end), steps(MODEL, PROMPT, 5, cut), strict=True):
        last = stages(record.logits, cut, ids)[-1].probabilities
        assert all(q == pytest.approx(float(last[token]), abs=1e-5) for token, _, q in node.alternatives)
        assert sum(q > 0 for _, _, q in node.alternatives) == (last > 0).sum() <= 3
        ids.append(node.token)


def test_the_probability_of_a_text_is_the_product_and_the_models_own():
    tree, end = grow(Tree((1,)), MODEL, SampleConfig(temperature=0.4, seed=2), None, 7)
    ids = tree.tokens(end)
    with torch.no_grad():  # 8 tokens fit into the context: one forward pass says all
        log_p = MODEL(torch.tensor([ids]))[0].double().log_softmax(-1)
    wanted = sum(float(log_p[i, token]) for i, token in enumerate(ids[1:]))
    found = likelihood(tree.path(end))
    assert found.total == pytest.approx(wanted, abs=1e-4) and found.tokens == 7
    assert found.nats == pytest.approx(-wanted / 7, abs=1e-4)
    assert found.perplexity == pytest.approx(math.exp(-wanted / 7), rel=1e-4)
    assert math.isnan(likelihood(()).nats)


def test_a_pick_changes_only_what_follows_it():
    tree, end = grow(Tree(PROMPT), MODEL, WARM, None, 10)
    first = words(tree, end)
    place = tree.path(end)[3]  # the token at depth 4 is chosen otherwise
    other = next(t for t, _, _ in tree.path(end)[4].alternatives if t != tree.path(end)[4].token)
    more, at = pick(tree, MODEL, WARM, place.index, other)
    more, new = grow(more, MODEL, WARM, at, 5)
    assert words(more, end) == first  # the first branch is untouched
    assert words(more, new)[:4] == first[:4] and words(more, new)[4] == other and len(words(more, new)) == 10
    assert more.picks(new) == ((5, other),) and more.picks(end) == () and more.nodes[at].drawn == first[4]
    assert more.leaves() == (end, new)
    # The numbers of the seed are those of the depth: depth 6 of both branches is drawn with the sixth.
    u = float(uniform(WARM.seed, 6)[5])
    record = next(steps(MODEL, [*PROMPT, *words(more, new)[:5]], 1, WARM, written=5))
    cumulative = record.logits.softmax(-1).double().cumsum(0)
    assert words(more, new)[5] == int((cumulative <= u * cumulative[-1]).sum())


@settings(max_examples=40, deadline=None)
@given(moves=MOVES)
def test_no_branch_is_ever_lost_but_by_deleting_it(moves):
    tree = Tree(PROMPT)
    wanted: set[tuple[int, ...]] = set()  # every text that was ever an end, and is not deleted
    for what, where, token, count in moves:
        alive = [None, *(node.index for node in tree.nodes if tree.has(node.index))]
        place = alive[where % len(alive)]
        if what == "delete" and tree.leaves():
            leaf = tree.leaves()[where % len(tree.leaves())]
            gone = words(tree, leaf)
            tree = tree.delete(leaf)
            others = {words(tree, other)[:n] for other in tree.leaves() for n in range(1, 100)}
            wanted = {text for text in wanted if text in others or gone[: len(text)] != text}
        elif what == "grow":
            tree, end = grow(tree, MODEL, WARM, place, count)
            wanted.add(words(tree, end))
        elif what == "pick":
            tree, end = pick(tree, MODEL, WARM, place, token)
            wanted.add(words(tree, end))
        texts = {words(tree, leaf) for leaf in tree.leaves()}
        assert len(texts) == len(tree.leaves())  # no two branches are the same text
        for text in wanted:
            assert any(branch[: len(text)] == text for branch in texts), (what, text)
        for leaf in tree.leaves():
            path = tree.path(leaf)
            assert [node.depth for node in path] == list(range(1, len(path) + 1))
            assert all(node.token in [t for t, _, _ in node.alternatives] for node in path)
        assert len(tree) == len({text[:n] for text in texts for n in range(1, len(text) + 1)})


@settings(max_examples=20, deadline=None)
@given(picks=st.dictionaries(st.integers(1, 12), st.integers(0, 10), max_size=4), batch=st.integers(1, 5))
def test_a_branch_comes_back_from_its_picks_and_its_length(picks, batch):
    tree, place = Tree(PROMPT), None
    for depth in range(1, 13):
        step, what = (pick, picks[depth]) if depth in picks else (grow, 1)
        tree, place = step(tree, MODEL, WARM, place, what)
    again, end, done = Tree(PROMPT), None, False
    for _ in range(40):
        size = len(again)
        again, end, done = follow(again, MODEL, WARM, tree.picks(place), 12, batch)
        assert len(again) - size <= batch
        if done:
            break
    assert done and words(again, end) == words(tree, place) and again.picks(end) == tree.picks(place)
    assert set(tree.picks(place)) <= set(picks.items())


def test_deleting_stops_where_another_branch_begins():
    tree, end = grow(Tree(PROMPT), MODEL, WARM, None, 6)
    other = next(t for t in range(11) if t != tree.path(end)[2].token)
    tree, new = pick(tree, MODEL, WARM, tree.path(end)[1].index, other)
    less = tree.delete(end)
    assert less.leaves() == (new,) and len(less) == 3 and not less.has(end)
    again, back = grow(less, MODEL, WARM, less.path(new)[1].index, 4)
    assert words(again, back) == words(tree, end)  # the model draws it again
    assert not Tree(PROMPT).has(0) and less.delete(new).leaves() == ()


def test_places_and_tokens_that_are_not_there_are_refused():
    tree, end = grow(Tree(PROMPT), MODEL, WARM, None, 2)
    wrong = [lambda place=place: grow(tree, MODEL, WARM, place, 1) for place in (-1, 2, 99)]
    wrong += [lambda token=token: pick(tree, MODEL, WARM, end, token) for token in (-1, 11)]
    wrong += [lambda: tree.delete(0), lambda: grow(Tree(()), MODEL, WARM, None, 1)]  # 0 ends no branch
    for call in wrong:
        with pytest.raises(ShapeError):
            call()


def test_a_diverged_model_has_no_probabilities():
    model = loud(tiny())
    with torch.no_grad():
        model.embedding.fill_(math.nan)
    tree, end = grow(Tree(PROMPT), model, WARM, None, 2)
    assert words(tree, end) == (0, 0) and all(math.isnan(node.log_p) for node in tree.path(end))


@for_each("parts, stop, wanted", [
    ([b"a", b"b", b"c"], "b", 2), ([b"a", b"bcd", b"e"], "c", 2), ([b"ab", b"ab"], "ba", 2),
    ([b"\xe2\x82", b"\xac", b"!"], "€", 2), ([b"a"], "", None), ([], "a", None), ([b"a\n", b"\n"], "\n\n", 2),
])  # fmt: skip
def test_a_string_ends_a_text_with_the_token_that_completes_it(parts, stop, wanted):
    assert ended_by(parts, stop) == wanted


def model_of(vocab: int = 4, **fields):
    return loud(tiny(vocab_size=vocab, **fields), seed=3)


def log_probability(model, prompt, ids) -> float:
    """Independent: one forward pass over the whole text."""
    with torch.no_grad():
        parts = model(torch.tensor([[*prompt, *ids]])).double().log_softmax(-1)[0]
    return sum(float(parts[len(prompt) - 1 + i, token]) for i, token in enumerate(ids))


@for_each("position", ["learned", "rope", "alibi", "none"])
def test_a_wide_beam_is_exhaustive_search(position):
    model, prompt, depth = model_of(position=position), [1, 2], 4
    # 4^3 branches at the last but one step: none is ever pruned before it
    found = finish(beam_search(model, prompt, depth, 64))
    every = {ids: log_probability(model, prompt, ids) for ids in itertools.product(range(4), repeat=depth)}
    best = max(every, key=every.__getitem__)
    assert found.path(found.winner) == best
    assert found.nodes[found.winner].total == pytest.approx(every[best], abs=1e-4)


@for_each("penalty", [-1.0, 0.0, 1.0, 2.0])
def test_with_a_stop_token_all_lengths_are_compared(penalty):
    model, prompt, depth, end = model_of(3), [1], 4, 0
    found = finish(beam_search(model, prompt, depth, 64, length_penalty=penalty, stop={end}))
    every = {}
    for length in range(1, depth + 1):
        for ids in itertools.product(range(3), repeat=length):
            if end not in ids[:-1] and (ids[-1] == end or length == depth):
                every[ids] = log_probability(model, prompt, ids) / length**penalty
    best = max(every, key=every.__getitem__)
    assert found.path(found.winner) == best
    assert found.nodes[found.winner].score == pytest.approx(every[best], abs=1e-4)
    assert {found.path(node.index) for node in found.ended()} == set(every)


def test_width_one_is_greedy():
    model = loud(tiny(), seed=1)
    found = finish(beam_search(model, [1, 2], 6, 1))
    ids, total = sampled(model, [1, 2], 6, SampleConfig(temperature=0.0))
    assert found.path(found.winner) == ids
    assert found.nodes[found.winner].total == pytest.approx(total, abs=1e-4)
    model = loud(tiny())
    ids, total = sampled(model, [1], 5, SampleConfig(temperature=1.5, seed=4))
    assert total == pytest.approx(log_probability(model, [1], ids), abs=1e-4)


def test_the_tree_is_whole():
    model = loud(tiny(), seed=2)
    found = finish(beam_search(model, [1], 5, 3, shown=5))
    for node in found.nodes:
        before = 0.0
        if node.parent is not None:
            above = found.nodes[node.parent]
            before = above.total
            assert above.in_beam and above.depth == node.depth - 1
        assert node.total == pytest.approx(before + node.log_probability)
        assert node.score == pytest.approx(node.total / node.depth)
        assert node.total == pytest.approx(log_probability(model, [1], found.path(node.index)), abs=1e-4)
    for depth in range(1, 6):
        level = [node for node in found.nodes if node.depth == depth]
        kept = [node.total for node in level if node.in_beam]
        assert len(kept) == 3 and min(kept) >= max(node.total for node in level if not node.in_beam)
    assert found.nodes[found.winner] == found.ended()[0] and len(found.ended()) == 3


def test_a_long_prompt_loses_its_beginning():
    model, prompt = loud(tiny(position="rope")), [i % 11 for i in range(30)]
    end = prompt[-(model.config.context - 3) :]
    search = finish(beam_search(model, prompt, 4, 2))
    assert search == finish(beam_search(model, end, 4, 2))
    total = log_probability(model, end, search.path(search.winner))
    assert search.nodes[search.winner].total == pytest.approx(total, abs=1e-4)


def test_what_cannot_be_searched_is_refused():
    model = loud(tiny())
    for width, depth, what in ((0, 2, "width"), (65, 2, "width"), (2, 0, "depth"), (2, 9, "depth")):
        with pytest.raises(ConfigError, match=what):
            finish(beam_search(model, [1], depth, width))
    for other, prompt in ((loud(tiny(causal=False)), [1]), (model, [])):
        with pytest.raises(ShapeError):
            finish(beam_search(other, prompt, 2, 2))
