"""Parts of the maps: the name of each, its numbers, one sentence; all computed from the configuration."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.config import ResolvedConfig
from engine.parts.registry import HEALTHY, Parts
from engine.probe import axes_of
from studies.costs.cards.table import card_of
from studies.costs.ledger import Ledger, shape_trace
from studies.costs.shares import IN_BLOCKS, part_share
from ui import content

TEXT = content.beside(__file__)
Rows = tuple[tuple[str, str], ...]
# The encoder of a pair predicts nothing: its output is the memory.
LEFT_OUT = {"encoder": {"unembedding", "softmax"}, "decoder": set[str]()}
IN_STACK = ("attention", "cross_attention", "feedforward", "norm1", "norm_cross", "norm2")


@dataclass(frozen=True)
class Part:
    """One part of the map. `lines` stand in its box; `text` and `rows` (name, value) in the panel beside
    it.
    """

    colour: str
    title: str
    lines: tuple[str, ...] = ()
    text: str = ""
    rows: Rows = ()
    shape: str = ""
    tied: bool = False
    inside: bool = False  # drawn inside attention

    @property
    def parameters(self) -> str:
        """Returns its row of parameters; '' for a part that has none."""
        return dict(self.rows).get(TEXT["parameters"], "")


def describe(c: ResolvedConfig, made_of: Parts = HEALTHY) -> dict[str, Part]:
    """Returns the parts of a configuration, by their id on the map, in the words of those that it is made of.
    A part that the model lacks is not there.
    """
    m = _Model(c, made_of)
    parts = {
        "tokens": _tokens(m),
        "embedding": _embedding(m),
        "position": _position(m),
        **_sums(m),
        "norm_embed": _norm(m, "norm_embed"),
        "block": _block(m),
        "norm1": _norm(m, "norm1"),
        "attention": _attention(m),
        "norm2": _norm(m, "norm2"),
        "feedforward": _feedforward(m),
        "norm_final": _norm(m, "norm_final"),
        "unembedding": _unembedding(m),
        "softmax": _softmax(m),
    }
    return {name: part for name, part in parts.items() if part is not None}


def dims(letters: str, sizes: tuple[int, ...]) -> str:
    """
    >>> dims("T, d", (64, 128))
    '(T, d) = (64, 128)'
    """
    comma = "," if len(sizes) == 1 else ""  # as Python writes a shape of one axis
    return f"({letters}{comma}) = ({', '.join(f'{n:,}' for n in sizes)}{comma})"


def parameters(n: int) -> str:
    return TEXT("some parameters", count=n) if n else TEXT["no parameters"]


def _params(n: int) -> str:
    return TEXT("some params", count=n) if n else TEXT["no params"]


def _none() -> tuple[str, str]:
    return TEXT["parameters"], "0"


def _share(share: float) -> tuple[str, str]:
    return TEXT["of the model"], f"{share:.1%}"


@dataclass(frozen=True)
class _Model:
    """A configuration, and the parts that it is made of."""

    c: ResolvedConfig
    made_of: Parts

    def count(self, part: str) -> int:
        """Returns the parameters of one instance of a part: a block's parts are counted for one block."""
        return part_share(self.c, part, self.made_of).each

    def shapes(self, *names: str) -> Rows:
        """Returns rows for those of the named activations that this model has; one sequence, so without the
        batch axis.
        """
        trace = shape_trace(self.c, self.made_of)
        rows = []
        for name in names:
            if name in trace:
                pairs = [(a, n) for a, n in zip(axes_of(name), trace[name], strict=True) if a != "batch"]
                rows.append(
                    (name, f"({', '.join(a for a, _ in pairs)}) = ({', '.join(f'{n:,}' for _, n in pairs)})")
                )
        return tuple(rows)

    def rows(self, part: str, *names: str) -> Rows:
        """Returns the rows of a part: the shapes of the named activations, and its parameters."""
        share = part_share(self.c, part, self.made_of)
        each = f"{share.each:,}"
        if part in IN_BLOCKS and share.each:
            each = TEXT("in each block", count=share.each)
        rows = [*self.shapes(*names), (TEXT["parameters"], each)]
        if share.each != share.all:
            rows.append((TEXT["in all blocks"], f"{share.all:,}"))
        if share.each:
            rows.append(_share(share.share))
        return tuple(rows)


def _tokens(m: _Model) -> Part:
    c = m.c
    text = TEXT("tokens", context=c.context, vocab=c.vocab_size)
    box = TEXT("ids", shape=dims("T", (c.context,)))
    return Part("embedding", TEXT["tokens title"], (box,), text, (*m.shapes("tokens"), _none()))


def _embedding(m: _Model) -> Part:
    c = m.c
    text = [TEXT("embedding", vocab=c.vocab_size, width=c.d_model)]
    if c.embedding_scale:
        text.append(TEXT["embedding scaled"])
    if c.token_types:
        text.append(TEXT("segments", types=c.token_types))
    lines = (dims("V, d", (c.vocab_size, c.d_model)), parameters(m.count("embedding")))
    rows = m.rows("embedding", "embed")
    return Part("embedding", TEXT["embedding title"], lines, " ".join(text), rows)


def _position(m: _Model) -> Part | None:
    scheme = m.made_of.position(m.c)
    inside = "embed" not in scheme.enters
    if not scheme.present or (inside and not m.made_of.mixer(m.c).present):
        return None
    lines = () if inside else (card_of(scheme).short or card_of(scheme).title, _params(m.count("position")))
    names = ("q_rot", "k_rot") if "rotate" in scheme.enters else ("scores" if inside else "pos_embed",)
    rows = m.rows("position", *names)
    return Part("position", card_of(scheme).title, lines, card_of(scheme).sentence, rows, inside=inside)


def _sums(m: _Model) -> dict[str, Part]:
    entered = m.shapes("embed", "pos_embed", "resid_pre")
    added = m.shapes("resid_pre", "resid_mid", "resid_post")
    names = {"position": entered, "attention": added, "feedforward": added, "both": added}
    return {
        f"sum_{name}": Part("residual", TEXT[f"sum_{name} title"], (), TEXT[f"sum_{name}"], rows)
        for name, rows in names.items()
    }


def _block(m: _Model) -> Part:
    c = m.c
    share = part_share(c, "block", m.made_of)
    rows = (
        *m.shapes("resid_pre", "resid_post"),
        (TEXT["parameters"], TEXT("in each of", count=share.each, layers=c.n_layers)),
        _share(share.share),
    )
    each = TEXT("each", parameters=parameters(share.each)) if share.each else TEXT["no parameters"]
    normed = m.made_of.norm(c).present
    text = card_of(m.made_of.wiring(c)).sentence.format(
        copy=TEXT["normed copy" if normed else "copy"], normed=TEXT["normed sum"] if normed else ""
    )
    title = TEXT("block title", layers=c.n_layers)
    return Part("residual", title, (each,), text, rows, dims("T, d", (c.context, c.d_model)))


def _norm(m: _Model, name: str) -> Part | None:
    c = m.c
    norm = m.made_of.norm(c)
    there = {
        "norm_embed": c.embedding_norm,
        "norm1": m.made_of.mixer(c).present,
        "norm2": m.made_of.feedforward(c).present,
        "norm_final": not m.made_of.wiring(c).ends_normed,
    }[name]
    if not norm.present or not there:
        return None
    learned = "plain" if not c.norm_gain else "gain, bias" if c.norm_bias else "gain"
    said = [TEXT(f"norm {learned}", norm=content.Filled(card_of(norm).sentence.removesuffix(".")))]
    if f"where {name}" in TEXT:
        said.append(TEXT[f"where {name}"])
    count, final = m.count(name), name == "norm_final"
    title = TEXT("norm_final title", norm=card_of(norm).title) if final else card_of(norm).title
    lines = (parameters(count) if final else _params(count),)
    return Part("norm", title, lines, " ".join(said), m.rows(name, name))


def _heads(c: ResolvedConfig) -> str:
    return TEXT("heads", heads=c.n_heads, width=c.d_head)


def _attention(m: _Model) -> Part | None:
    c = m.c
    mixer = m.made_of.mixer(c)
    if not mixer.present:
        return None
    heads = _heads(c)
    if c.n_kv_heads != c.n_heads:
        heads = f"{heads} {TEXT('key-value heads', heads=c.n_kv_heads)}"
    sight = "causal" if c.causal else "all-to-all"
    lines = (heads, TEXT(f"{sight} box"), parameters(m.count("attention")))
    rows = m.rows("attention", "q", "k", "v", "pattern", "attn_out")
    return Part("attention", card_of(mixer).title, lines, f"{card_of(mixer).sentence} {TEXT[sight]}", rows)


def _feedforward(m: _Model) -> Part | None:
    c = m.c
    kind = m.made_of.feedforward(c)
    if not kind.present:
        return None
    lines = (
        f"{c.d_model:,} → {c.d_ff:,} → {c.d_model:,}",
        card_of(kind).title,
        parameters(m.count("feedforward")),
    )
    rows = m.rows("feedforward", "router", "routing", "ffn_pre", "ffn_gate", "ffn_post", "ffn_out")
    return Part("feedforward", TEXT["feedforward title"], lines, card_of(kind).sentence, rows)


def _unembedding(m: _Model) -> Part:
    c = m.c
    if not m.made_of.output(c).present:
        shape = dims("T, d", (c.context, c.d_model))
        rows = (*m.shapes("norm_final"), _none())
        return Part("output", TEXT["vectors title"], (shape,), TEXT["vectors"], rows)
    tied = c.tie_embeddings
    text = [TEXT("next scores" if c.causal else "scores", vocab=c.vocab_size)]
    if not m.made_of.output(c).linear:
        text.insert(0, TEXT["extra layer"])
    text.append(TEXT("tied", saved=c.vocab_size * c.d_model) if tied else TEXT["untied"])
    lines = (
        dims("d, V", (c.d_model, c.vocab_size)),
        TEXT["tied box"] if tied else parameters(m.count("unembedding")),
    )
    rows = m.rows("unembedding", "logits")
    return Part("output", TEXT["unembedding title"], lines, " ".join(text), rows, tied=tied)


def _softmax(m: _Model) -> Part | None:
    c = m.c
    if not m.made_of.output(c).present:
        return None
    text = TEXT("next probabilities" if c.causal else "probabilities", vocab=c.vocab_size)
    sizes = (c.context, c.vocab_size)
    rows = ((TEXT["shape of probabilities"], dims("query, vocab", sizes)), _none())
    return Part("output", TEXT["softmax title"], (dims("T, V", sizes),), text, rows)


# An encoder-decoder -------------------------------------------------------------------------------


def describe_pair(counted: Ledger) -> dict[str, Part]:
    """Returns the parts by their stack and id, `decoder.cross_attention`, those of a stack as in a model of
    one, with the numbers of the whole; and the `memory`.
    """
    result = {"memory": _memory(counted)}
    for stack, config in (("encoder", counted.encoder), ("decoder", counted.config)):
        assert config is not None
        for name, part in describe(config, counted.parts).items():
            if name not in LEFT_OUT[stack]:
                result[f"{stack}.{name}"] = _of_the_whole(counted, stack, name, part)
    result["decoder.cross_attention"] = _cross(counted)
    result["decoder.sum_cross_attention"] = Part(
        "residual", TEXT["sum_cross_attention title"], (), TEXT["sum_cross_attention"]
    )
    if (norm := result.get("decoder.norm1")) is not None:
        result["decoder.norm_cross"] = replace(norm, rows=_rows(counted, "norm_cross"))
    for stack in ("encoder", "decoder"):
        tokens, embedding = result[f"{stack}.tokens"], result[f"{stack}.embedding"]
        title = TEXT[f"tokens of {stack} title"]
        result[f"{stack}.tokens"] = replace(tokens, text=TEXT[f"tokens of {stack}"], title=title)
        result[f"{stack}.embedding"] = replace(embedding, text=f"{embedding.text} {TEXT['same table']}")
    return result


def _of_the_whole(counted: Ledger, stack: str, name: str, part: Part) -> Part:
    """Returns the part of a stack with its parameters as the whole model counts them."""
    config = counted.encoder if stack == "encoder" else counted.config
    assert config is not None
    rows = tuple(row for row in part.rows if row[0] != TEXT["of the model"])
    if name != "block":
        return replace(part, rows=rows)
    every = counted.of_stack(stack, IN_STACK)
    each = every // config.n_layers
    rows = (
        *(row for row in rows if row[0] != TEXT["parameters"]),
        (TEXT["parameters"], TEXT("in each of", count=each, layers=config.n_layers)),
        _share(every / counted.total),
    )
    return replace(part, rows=rows, lines=(TEXT("each", parameters=parameters(each)),))


def _rows(counted: Ledger, component: str) -> Rows:
    """Returns the rows of a part that only a decoder with cross-attention has."""
    every = counted.of_stack("decoder", (component,))
    return (
        (TEXT["parameters"], TEXT("in each block", count=every // counted.config.n_layers)),
        (TEXT["in all blocks"], f"{every:,}"),
        _share(every / counted.total),
    )


def _cross(counted: Ledger) -> Part:
    c = counted.config
    each = counted.of_stack("decoder", ("cross_attention",)) // c.n_layers
    lines = (_heads(c), TEXT["cross_attention box"], parameters(each))
    rows = _rows(counted, "cross_attention")
    return Part("attention", TEXT["cross_attention title"], lines, TEXT["cross_attention"], rows)


def _memory(counted: Ledger) -> Part:
    assert counted.encoder is not None
    c = counted.encoder
    shape = dims("S, d", (c.context, c.d_model))
    rows = ((TEXT["memory at most"], shape), _none())
    return Part("attention", TEXT["memory title"], (shape,), TEXT["memory"], rows)
