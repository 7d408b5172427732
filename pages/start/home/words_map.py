"""Texts about the parts on the map: name, numbers, one sentence. All computed from the configuration."""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import ResolvedConfig
from engine.ledger import shape_trace
from engine.ledger.shares import IN_BLOCKS, part_share
from engine.parts.registry import HEALTHY, Parts
from engine.probe import axes_of

Rows = tuple[tuple[str, str], ...]


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
    return f"{n:,} parameter{'' if n == 1 else 's'}" if n else "no parameters"


def _params(n: int) -> str:
    return f"{n:,} params" if n else "no params"


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
        inside = " in each block" if part in IN_BLOCKS and share.each else ""
        rows = [*self.shapes(*names), ("parameters", f"{share.each:,}{inside}")]
        if share.each != share.all:
            rows.append(("in all blocks", f"{share.all:,}"))
        if share.each:
            rows.append(("of the model", f"{share.share:.1%}"))
        return tuple(rows)


def _tokens(m: _Model) -> Part:
    c = m.c
    text = (
        f"The text, cut into tokens: {c.context:,} ids, whole numbers below {c.vocab_size:,}. T is the"
        " context length, all that the model sees at once."
    )
    rows = (*m.shapes("tokens"), ("parameters", "0"))
    return Part("embedding", "Tokens", (dims("T", (c.context,)) + " ids",), text, rows)


def _embedding(m: _Model) -> Part:
    c = m.c
    text = (
        f"A table with a row for each of the {c.vocab_size:,} tokens (V). A token's row is its vector of"
        f" {c.d_model:,} numbers (d), which enters the stream."
    )
    if c.embedding_scale:
        text += " It is multiplied by √d first."
    if c.token_types:
        text += f" One of {c.token_types:,} segment embeddings is added, to mark which text the token is in."
    lines = (dims("V, d", (c.vocab_size, c.d_model)), parameters(m.count("embedding")))
    return Part("embedding", "Embedding", lines, text, m.rows("embedding", "embed"))


def _position(m: _Model) -> Part | None:
    scheme = m.made_of.position(m.c)
    inside = "embed" not in scheme.enters
    if not scheme.present or (inside and not m.made_of.mixer(m.c).present):
        return None
    lines = () if inside else (scheme.card.short or scheme.card.title, _params(m.count("position")))
    names = ("q_rot", "k_rot") if "rotate" in scheme.enters else ("scores" if inside else "pos_embed",)
    rows = m.rows("position", *names)
    return Part("position", scheme.card.title, lines, scheme.card.sentence, rows, inside=inside)


def _sums(m: _Model) -> dict[str, Part]:
    position = "The position's vector is added to the token's, element by element."
    shapes = m.shapes("embed", "pos_embed", "resid_pre")
    sums = {"sum_position": Part("residual", "Sum: embed + pos_embed", (), position, shapes)}
    for name, title, what in (
        ("attention", "resid_mid = resid_pre + attn_out", "The output of attention"),
        ("feedforward", "resid_post = resid_mid + ffn_out", "The output of the feed-forward network"),
        ("both", "resid_post = resid_pre + attn_out + ffn_out", "The result of both sublayers"),
    ):
        text = f"{what} is added to the stream: an update, not a replacement. Everything written before is"
        shapes = m.shapes("resid_pre", "resid_mid", "resid_post")
        sums[f"sum_{name}"] = Part("residual", f"Sum: {title}", (), f"{text} still there.", shapes)
    return sums


def _block(m: _Model) -> Part:
    c = m.c
    share = part_share(c, "block", m.made_of)
    each = share.each
    rows = (
        *m.shapes("resid_pre", "resid_post"),
        ("parameters", f"{each:,} in each of {c.n_layers:,}"),
        ("of the model", f"{share.share:.1%}"),
    )
    lines = (f"{parameters(each)} each" if each else "no parameters",)
    normed = m.made_of.norm(c).card.present
    text = m.made_of.wiring(c).card.sentence.format(
        copy="a normalised copy" if normed else "a copy",
        normed=", and the sum is normalised" if normed else "",
    )
    return Part(
        "residual", f"2  Block × {c.n_layers:,}", lines, text, rows, dims("T, d", (c.context, c.d_model))
    )


def _norm(m: _Model, name: str) -> Part | None:
    c = m.c
    norm = m.made_of.norm(c)
    there = {
        "norm_embed": c.embedding_norm,
        "norm1": m.made_of.mixer(c).present,
        "norm2": m.made_of.feedforward(c).present,
        "norm_final": not m.made_of.wiring(c).ends_normed,
    }[name]
    if not norm.card.present or not there:
        return None
    what = norm.card.sentence.removesuffix(".")
    learned = (
        ", then each component gets a learned gain" + (" and bias" if c.norm_bias else "")
        if c.norm_gain
        else ", with no learned parameters"
    )
    where = {
        "norm_embed": " It is applied once, before the first block.",
        "norm_final": " The last norm reads the sum of everything that the blocks added.",
    }.get(name, "")
    count = m.count(name)
    final = name == "norm_final"
    title = ("Final " if final else "") + norm.card.title
    lines = (parameters(count) if final else _params(count),)
    return Part("norm", title, lines, f"{what}{learned}.{where}", m.rows(name, name))


def _attention(m: _Model) -> Part | None:
    c = m.c
    mixer = m.made_of.mixer(c)
    if not mixer.present:
        return None
    heads = f"{c.n_heads} head{'s' if c.n_heads > 1 else ''} × {c.d_head}"
    heads += f" · {c.n_kv_heads} KV" if c.n_kv_heads != c.n_heads else ""
    mask = "causal mask" if c.causal else "no mask: all-to-all"
    sight = (
        " The mask hides all later tokens."
        if c.causal
        else " There is no mask: every token sees every other, before and after it."
    )
    lines = (heads, mask, parameters(m.count("attention")))
    rows = m.rows("attention", "q", "k", "v", "pattern", "attn_out")
    return Part("attention", mixer.card.title, lines, mixer.card.sentence + sight, rows)


def _feedforward(m: _Model) -> Part | None:
    c = m.c
    kind = m.made_of.feedforward(c)
    if not kind.present:
        return None
    lines = (
        f"{c.d_model:,} → {c.d_ff:,} → {c.d_model:,}",
        kind.card.title,
        parameters(m.count("feedforward")),
    )
    rows = m.rows("feedforward", "ffn_pre", "ffn_gate", "ffn_post", "ffn_out")
    return Part("feedforward", "Feed-forward", lines, kind.card.sentence, rows)


def _unembedding(m: _Model) -> Part:
    c = m.c
    if not m.made_of.output(c).present:
        return Part(
            "output",
            "Vectors",
            (dims("T, d", (c.context, c.d_model)),),
            "There is no output head: the model returns the vectors, for search or for a classifier.",
            (*m.shapes("norm_final"), ("parameters", "0")),
        )
    tied = c.tie_embeddings
    text = (
        f"Each token's vector is compared with all {c.vocab_size:,} rows of a table: one score (logit) for"
        f" every token {'that could come next' if c.causal else 'of the vocabulary'}."
    )
    if not m.made_of.output(c).linear:
        text = f"An extra layer transforms each vector once more. {text}"
    saved = c.vocab_size * c.d_model
    text += (
        f" It is the embedding table again, which saves {saved:,} parameters."
        if tied
        else " It is a separate table, not the embedding table."
    )
    lines = (
        dims("d, V", (c.d_model, c.vocab_size)),
        "= Embeddingᵀ, tied" if tied else parameters(m.count("unembedding")),
    )
    return Part("output", "Unembedding", lines, text, m.rows("unembedding", "logits"), tied=tied)


def _softmax(m: _Model) -> Part | None:
    c = m.c
    if not m.made_of.output(c).present:
        return None
    aim = "the next token" if c.causal else "the hidden token"
    text = (
        f"The {c.vocab_size:,} scores of each position become probabilities that sum to 1: the model's guess"
        f" at {aim}."
    )
    sizes = (c.context, c.vocab_size)
    return Part(
        "output",
        "Softmax",
        (dims("T, V", sizes),),
        text,
        (("probabilities", dims("query, vocab", sizes)), ("parameters", "0")),
    )
