"""Texts about the parts on the map: name, numbers, one sentence. All computed from the configuration."""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import ResolvedConfig
from engine.ledger import shape_trace
from engine.ledger.shares import IN_BLOCKS, part_share
from engine.parts.registry import HEALTHY, Parts
from engine.probe import axes_of


@dataclass(frozen=True)
class Part:
    """One part of the map. `lines` stand in its box; `text` and `rows` (name, value) in the panel beside
    it.
    """

    colour: str
    title: str
    lines: tuple[str, ...] = ()
    text: str = ""
    rows: tuple[tuple[str, str], ...] = ()
    shape: str = ""
    tied: bool = False
    inside: bool = False  # drawn inside attention


def describe(c: ResolvedConfig, made_of: Parts = HEALTHY) -> dict[str, Part]:
    """Returns the parts of a configuration, by their id on the map, in the words of those that it is made of.
    A part that the model lacks is not there.
    """
    parts = {
        "tokens": _tokens(c, made_of),
        "embedding": _embedding(c, made_of),
        "position": _position(c, made_of),
        **_sums(c, made_of),
        "norm_embed": _norm(c, made_of, "norm_embed"),
        "block": _block(c, made_of),
    }
    parts |= {
        "norm1": _norm(c, made_of, "norm1"),
        "attention": _attention(c, made_of),
        "norm2": _norm(c, made_of, "norm2"),
        "feedforward": _feedforward(c, made_of),
    }
    parts |= {
        "norm_final": _norm(c, made_of, "norm_final"),
        "unembedding": _unembedding(c, made_of),
        "softmax": _softmax(c, made_of),
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


def _shapes(c: ResolvedConfig, made_of: Parts, *names: str) -> tuple[tuple[str, str], ...]:
    """Rows for those of the named activations that this model has; one sequence, so without the batch
    axis.
    """
    trace = shape_trace(c, made_of)
    rows = []
    for name in names:
        if name in trace:
            pairs = [(a, n) for a, n in zip(axes_of(name), trace[name], strict=True) if a != "batch"]
            rows.append(
                (name, f"({', '.join(a for a, _ in pairs)}) = ({', '.join(f'{n:,}' for _, n in pairs)})")
            )
    return tuple(rows)


def _count(c: ResolvedConfig, made_of: Parts, name: str) -> int:
    """Parameters of one instance of a part: a block's parts are counted for one block."""
    return part_share(c, name, made_of).each


def _counted(c: ResolvedConfig, made_of: Parts, name: str) -> tuple[tuple[str, str], ...]:
    found = part_share(c, name, made_of)
    rows = [
        (
            "parameters",
            f"{found.each:,}" + (" in each block" if name in IN_BLOCKS and found.each else ""),
        )
    ]
    if found.each != found.all:
        rows.append(("in all blocks", f"{found.all:,}"))
    if found.each:
        rows.append(("of the model", f"{found.share:.1%}"))
    return tuple(rows)


def _tokens(c: ResolvedConfig, made_of: Parts) -> Part:
    text = (
        f"The text, cut into tokens: {c.context:,} ids, whole numbers below {c.vocab_size:,}. T is the"
        " context length, all that the model sees at once."
    )
    return Part(
        "embedding",
        "Tokens",
        (dims("T", (c.context,)) + " ids",),
        text,
        (*_shapes(c, made_of, "tokens"), ("parameters", "0")),
    )


def _embedding(c: ResolvedConfig, made_of: Parts) -> Part:
    text = (
        f"A table with a row for each of the {c.vocab_size:,} tokens (V). A token's row is its vector of"
        f" {c.d_model:,} numbers (d), which enters the stream."
    )
    if c.embedding_scale:
        text += " It is multiplied by √d first."
    if c.token_types:
        text += f" One of {c.token_types:,} segment embeddings is added, to mark which text the token is in."
    lines = (dims("V, d", (c.vocab_size, c.d_model)), parameters(_count(c, made_of, "embedding")))
    return Part(
        "embedding",
        "Embedding",
        lines,
        text,
        (*_shapes(c, made_of, "embed"), *_counted(c, made_of, "embedding")),
    )


def _position(c: ResolvedConfig, made_of: Parts) -> Part | None:
    scheme = made_of.position(c)
    inside = "embed" not in scheme.enters
    if not scheme.present or (inside and not made_of.mixer(c).present):
        return None
    line = scheme.card.short or scheme.card.title
    lines = (
        ()
        if inside
        else (
            line,
            f"{_count(c, made_of, 'position'):,} params" if _count(c, made_of, "position") else "no params",
        )
    )
    rows = (
        _shapes(c, made_of, "q_rot", "k_rot")
        if "rotate" in scheme.enters
        else _shapes(c, made_of, "scores")
        if inside
        else _shapes(c, made_of, "pos_embed")
    )
    return Part(
        "position",
        scheme.card.title,
        lines,
        scheme.card.sentence,
        (*rows, *_counted(c, made_of, "position")),
        inside=inside,
    )


def _sums(c: ResolvedConfig, made_of: Parts) -> dict[str, Part]:
    shape = _shapes(c, made_of, "resid_pre", "resid_mid", "resid_post")
    position = "The position's vector is added to the token's, element by element."
    update = (
        "{} is added to the stream: an update, not a replacement. Everything written before is still there."
    )
    return {
        "sum_position": Part(
            "residual",
            "Sum: embed + pos_embed",
            (),
            position,
            _shapes(c, made_of, "embed", "pos_embed", "resid_pre"),
        ),
        "sum_attention": Part(
            "residual",
            "Sum: resid_mid = resid_pre + attn_out",
            (),
            update.format("The output of attention"),
            shape,
        ),
        "sum_feedforward": Part(
            "residual",
            "Sum: resid_post = resid_mid + ffn_out",
            (),
            update.format("The output of the feed-forward network"),
            shape,
        ),
        "sum_both": Part(
            "residual",
            "Sum: resid_post = resid_pre + attn_out + ffn_out",
            (),
            update.format("The result of both sublayers"),
            shape,
        ),
    }


def _block(c: ResolvedConfig, made_of: Parts) -> Part:
    found = part_share(c, "block", made_of)
    each = found.each
    rows = (
        *_shapes(c, made_of, "resid_pre", "resid_post"),
        ("parameters", f"{each:,} in each of {c.n_layers:,}"),
        ("of the model", f"{found.share:.1%}"),
    )
    lines = (f"{parameters(each)} each" if each else "no parameters",)
    normed = made_of.norm(c).card.present
    text = made_of.wiring(c).card.sentence.format(
        copy="a normalised copy" if normed else "a copy",
        normed=", and the sum is normalised" if normed else "",
    )
    return Part(
        "residual", f"2  Block × {c.n_layers:,}", lines, text, rows, dims("T, d", (c.context, c.d_model))
    )


def _norm(c: ResolvedConfig, made_of: Parts, name: str) -> Part | None:
    norm = made_of.norm(c)
    there = {
        "norm_embed": c.embedding_norm,
        "norm1": made_of.mixer(c).present,
        "norm2": made_of.feedforward(c).present,
        "norm_final": not made_of.wiring(c).ends_normed,
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
    count = _count(c, made_of, name)
    title = ("Final " if name == "norm_final" else "") + norm.card.title
    lines = (parameters(count),) if name == "norm_final" else (f"{count:,} params" if count else "no params",)
    return Part(
        "norm",
        title,
        lines,
        f"{what}{learned}.{where}",
        (*_shapes(c, made_of, name), *_counted(c, made_of, name)),
    )


def _attention(c: ResolvedConfig, made_of: Parts) -> Part | None:
    mixer = made_of.mixer(c)
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
    lines = (heads, mask, parameters(_count(c, made_of, "attention")))
    rows = (*_shapes(c, made_of, "q", "k", "v", "pattern", "attn_out"), *_counted(c, made_of, "attention"))
    return Part("attention", mixer.card.title, lines, mixer.card.sentence + sight, rows)


def _feedforward(c: ResolvedConfig, made_of: Parts) -> Part | None:
    kind = made_of.feedforward(c)
    if not kind.present:
        return None
    lines = (
        f"{c.d_model:,} → {c.d_ff:,} → {c.d_model:,}",
        kind.card.title,
        parameters(_count(c, made_of, "feedforward")),
    )
    return Part(
        "feedforward",
        "Feed-forward",
        lines,
        kind.card.sentence,
        (
            *_shapes(c, made_of, "ffn_pre", "ffn_gate", "ffn_post", "ffn_out"),
            *_counted(c, made_of, "feedforward"),
        ),
    )


def _unembedding(c: ResolvedConfig, made_of: Parts) -> Part:
    if not made_of.output(c).present:
        return Part(
            "output",
            "Vectors",
            (dims("T, d", (c.context, c.d_model)),),
            "There is no output head: the model returns the vectors, for search or for a classifier.",
            (*_shapes(c, made_of, "norm_final"), ("parameters", "0")),
        )
    tied = c.tie_embeddings
    text = (
        f"Each token's vector is compared with all {c.vocab_size:,} rows of a table: one score (logit) for"
        " every token that could come next."
    )
    if not c.causal:
        text = (
            f"Each token's vector is compared with all {c.vocab_size:,} rows of a table: one score (logit)"
            " for every token of the vocabulary."
        )
    if not made_of.output(c).linear:
        text = f"An extra layer transforms each vector once more. {text}"
    saved = c.vocab_size * c.d_model
    text += (
        f" It is the embedding table again, which saves {saved:,} parameters."
        if tied
        else " It is a separate table, not the embedding table."
    )
    lines = (
        dims("d, V", (c.d_model, c.vocab_size)),
        "= Embeddingᵀ, tied" if tied else parameters(_count(c, made_of, "unembedding")),
    )
    return Part(
        "output",
        "Unembedding",
        lines,
        text,
        (*_shapes(c, made_of, "logits"), *_counted(c, made_of, "unembedding")),
        tied=tied,
    )


def _softmax(c: ResolvedConfig, made_of: Parts) -> Part | None:
    if not made_of.output(c).present:
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
