"""Cards of the mixers (`engine.parts.attention`, `attention`, `raw_values`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from engine.config import ResolvedConfig
from studies.costs.cards import BatchShape, Formula, PartCard, Product, SavedForBackward, Weight, bias_of


class MixerCard(PartCard):
    """Card of a mixer."""

    scored: ClassVar[bool] = False  # it compares queries with keys
    learned: ClassVar[bool] = False  # it has matrices, W_O among them where the configuration says so
    # What q, k and v are called before they are cut into heads, or what a matrix makes on the way to them
    flat: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def cached_numbers(cls, config: ResolvedConfig) -> int:
        """Returns how many numbers a cache holds for each token read."""
        return 0


class HeadMixerCard(MixerCard):
    title: ClassVar[str] = "Mixer"
    sentence: ClassVar[str] = "Tokens gather from each other."
    scored: ClassVar[bool] = True

    @classmethod
    def read_by(cls, config: ResolvedConfig) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Returns the matrices that read the stream: name, and the sizes of their output."""
        return ()

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        rows: list[Weight] = []
        for name, width in cls.read_by(config):
            rows += [Weight(name, ("d_model", *width)), *bias_of(name, config.attention_bias, *width)]
        if config.qk_gain:
            rows += [Weight(f"gain of {name}", ("d_head",)) for name in "qk"]
        return (*rows, *(_output_tensors(config) if cls.learned else ()))

    @classmethod
    def products(cls, config: ResolvedConfig) -> tuple[Product, ...]:
        rows = [Product(name, ("d_model", *width)) for name, width in cls.read_by(config)]
        if cls.scored:
            rows.append(Product("scores q·k", ("T", *QUERIES)))
        rows.append(Product("weighted sum of v", ("T", *QUERIES)))
        if cls.learned and config.output_projection:
            rows.append(Product("W_O", (*QUERIES, "d_model")))
        return tuple(rows)

    @classmethod
    def saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        width = config.n_heads * config.d_head
        written = width if cls.learned and config.output_projection else 0  # the input of W_O
        pattern = config.n_heads * run.tokens
        read = config.d_model if cls.learned else 0
        if not cls.scored:  # the gradient of v needs the pattern alone, which depends on nothing
            return SavedForBackward(read, pattern + written)
        return SavedForBackward(read, pattern + written) + cls.vectors_saved(config, run)

    @classmethod
    def vectors_saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        """Returns what backward needs of queries, keys and values. The products read copies of them, with the
        heads side by side; or, where these lie so already, the tensor that q, k and v were cut from, whole.
        """
        raise NotImplementedError

    @classmethod
    def cached_numbers(cls, config: ResolvedConfig) -> int:
        """Returns the numbers in a cache for each token: a key and a value for each key-value head."""
        return 2 * config.n_kv_heads * config.d_head

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        bias = _bias(config) if config.output_bias else ""
        side_by_side = (r"\mathrm{out} = [z_1, \dots, z_H]", "heads concatenated")
        projected = (rf"\mathrm{{out}} = z\,W_O{bias}", f"z · W_O{bias}")
        return {
            **{name: _in_front(name) for name in ("q", "k", "v")},
            **{f"{name}_rot": _normed(name, config) for name in ("q", "k")},
            "scores": cls.score(config),
            "pattern": (
                r"A_{ij} = \frac{e^{m_{ij}}}{\sum_{j'} e^{m_{ij'}}}",
                "softmax over key",
            ),
            "z": (r"z = A\,v", "pattern · v, in each head"),
            "z_merged": (r"z = [z_1, \dots, z_H]", "heads concatenated"),
            "attn_out": projected if cls.learned and config.output_projection else side_by_side,
        }

    @classmethod
    def score(cls, config: ResolvedConfig) -> Formula:
        """Returns the formula of `scores`, before the bias of positions."""
        if not config.score_scale:
            return r"\mathrm{scores} = q\,k^\top", "q · kᵀ" + _shared(config)
        return r"\mathrm{scores} = \frac{q\,k^\top}{\sqrt{d_{head}}}", "q · kᵀ / √d_head" + _shared(config)


QUERIES, KEYS = ("n_heads", "d_head"), ("n_kv_heads", "d_head")


def lies_in_order(config: ResolvedConfig, run: BatchShape) -> bool:
    """Returns True if keys and values lie as the products want them, so that nothing is copied: with one
    text, or one key head, (batch, kv_head) is one axis already.
    """
    return run.batch == 1 or config.n_kv_heads == 1


def norm_saved(config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
    """Returns what is saved of queries and keys that are normed, beside what they are normed from: results,
    what the gains multiply, a spread for each head. In fewer bits than float32, a copy of each is normed.
    """
    heads = config.n_heads + config.n_kv_heads
    width = heads * config.d_head
    measured = heads + (width if config.qk_gain else 0)
    if run.narrow:
        return SavedForBackward(internal=width, full=width + measured)
    return SavedForBackward(internal=width + measured)


def alike_saved(config: ResolvedConfig, run: BatchShape) -> tuple[SavedForBackward, bool]:
    """Returns what is saved of queries and keys that are one tensor, and whether the tensor itself is."""
    if config.qk_norm:
        return norm_saved(config, run), not run.narrow
    if lies_in_order(config, run) and not run.turned:
        return SavedForBackward(), True
    return SavedForBackward(internal=2 * config.n_heads * config.d_head), False


def _shared(config: ResolvedConfig) -> str:
    groups = config.n_heads // config.n_kv_heads
    return f"; {groups} query heads share a key-value head" if groups > 1 else ""


def _output_tensors(config: ResolvedConfig) -> tuple[Weight, ...]:
    """Returns W_O and its bias, where there are any."""
    if not config.output_projection:
        return ()
    given = config.attention_bias and config.output_bias
    return (Weight("W_O", (*QUERIES, "d_model")), *bias_of("W_O", given, "d_model"))


CUT = r"(d) \to (H, d_{head})"
STREAM_AS_VALUES: dict[str, Formula] = {"x_heads": (CUT, "v is the stream, split into heads")}


def _bias(config: ResolvedConfig) -> str:
    """Returns what a formula adds for the biases of attention, in LaTeX and in plain signs alike."""
    return " + b" if config.attention_bias else ""


def _shared_flat(config: ResolvedConfig) -> dict[str, Formula]:
    """Returns the formulas of queries and keys that are the same, until they are cut into heads."""
    bias = _bias(config)
    same = (rf"q = k = x\,W_{{QK}}{bias}", f"x · W_QK{bias}: queries and keys are the same")
    return {"qk_flat": same, "qk_heads": (CUT, "split into heads")}


def _in_front(name: str) -> Formula:
    latex = rf"{name}: (T, H, d_{{head}}) \to (H, T, d_{{head}})"
    return latex, f"{name}, transposed: each head works separately"


def _normed(name: str, config: ResolvedConfig) -> Formula:
    if not config.qk_norm:
        return name, name
    gain, by = (r"g \odot ", ", then times its gain g") if config.qk_gain else ("", "")
    return rf"{gain}\frac{{{name}}}{{\mathrm{{rms}}({name})}}", f"{name} scaled to length √d_head{by}"


class AttentionCard(HeadMixerCard):
    title: ClassVar[str] = "Attention"
    sentence: ClassVar[str] = (
        "Tokens exchange information. A query is compared with the keys; the softmax of the scores says how"
        " much of each value is taken."
    )
    learned: ClassVar[bool] = True
    flat: ClassVar[Mapping[str, str]] = {"q": "qkv", "k": "qkv", "v": "qkv"}

    @classmethod
    def read_by(cls, config: ResolvedConfig) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("W_Q", QUERIES), ("W_K", KEYS), ("W_V", KEYS)

    @classmethod
    def vectors_saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        q, kv = config.n_heads * config.d_head, config.n_kv_heads * config.d_head
        lies = lies_in_order(config, run)
        whole = q + 2 * kv  # W_QKV gives all three as one tensor: a view of one holds it all
        values = whole if lies else kv
        if config.qk_norm:
            read = whole + (0 if lies else kv)  # what is normed, and the values
            return norm_saved(config, run) + SavedForBackward(internal=values if run.narrow else read)
        if run.turned:
            return SavedForBackward(internal=q + kv + values)
        copied = 0 if lies and config.n_kv_heads == config.n_heads else q  # a group's queries are stacked
        return SavedForBackward(internal=copied + (whole if lies else 2 * kv))

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        bias = _bias(config)
        return super().formulas(config) | {
            "qkv_flat": (
                rf"[q, k, v] = x\,[W_Q, W_K, W_V]{bias}",
                f"x · [W_Q, W_K, W_V]{bias}, one product for all three",
            ),
            "qkv_heads": (CUT, "split into q, k, v, and each into heads"),
        }


class SinksCard(AttentionCard):
    title: ClassVar[str] = "Attention with sinks"
    sentence: ClassVar[str] = (
        "Attention in which each head has one more score, learned and of no token: what weight it takes is"
        " given to nothing."
    )

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        return (*super().tensors(config), Weight("sinks s", ("n_heads",)))

    @classmethod
    def saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        """The pattern has a column for the sink."""
        return super().saved(config, run) + SavedForBackward(internal=config.n_heads)

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        latex = r"A_{ij} = \frac{e^{m_{ij}}}{e^{s_h} + \sum_{j'} e^{m_{ij'}}}"
        return super().formulas(config) | {"pattern": (latex, "softmax over key and the head's sink s")}


class GatedAttentionCard(AttentionCard):
    title: ClassVar[str] = "Gated attention"
    sentence: ClassVar[str] = (
        "Attention whose heads each pass through a gate: a sigmoid of the token itself says how much of every"
        " number is given on."
    )
    flat: ClassVar[Mapping[str, str]] = {**AttentionCard.flat, "w_gate": "gate"}

    @classmethod
    def read_by(cls, config: ResolvedConfig) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return (*super().read_by(config), ("W_G", QUERIES))

    @classmethod
    def saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        """Also the gate, and what it is multiplied with."""
        return super().saved(config, run) + SavedForBackward(internal=2 * config.n_heads * config.d_head)

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        bias = _bias(config)
        return super().formulas(config) | {
            "gate_flat": (rf"x\,W_G{bias}", f"x · W_G{bias}"),
            "gate_heads": (rf"\sigma(x\,W_G{bias})", "sigmoid, split into heads"),
            "z_gate": (rf"g = \sigma(x\,W_G{bias})", "the gate, transposed: each head works separately"),
            "z": (r"z = g \odot A\,v", "gate · (pattern · v), in each head"),
        }


class LatentCard(HeadMixerCard):
    title: ClassVar[str] = "Latent attention"
    sentence: ClassVar[str] = (
        "Multi-head latent attention (MLA): the keys and values of all heads are made of one short vector per"
        " token, which is all that a cache holds, with one key that positions turn."
    )
    learned: ClassVar[bool] = True
    flat: ClassVar[Mapping[str, str]] = {"w_dq": "q_latent", "w_q": "q", "w_dkv": "latent", "w_ukv": "kv"}

    @classmethod
    def matrices(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        """Returns the matrices in front of the scores, those of queries first."""
        source = "d_query" if config.d_query else "d_model"
        down = (Weight("W_DQ", ("d_model", "d_query")),) if config.d_query else ()
        return (
            *down,
            Weight("W_UQ" if config.d_query else "W_Q", (source, "n_heads", "d_head")),
            Weight("W_QR", (source, "n_heads", "d_rotated")),
            Weight("W_DKV", ("d_model", "d_latent")),
            Weight("W_KR", ("d_model", "d_rotated")),
            Weight("W_UK", ("d_latent", *QUERIES)),
            Weight("W_UV", ("d_latent", *QUERIES)),
        )

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        rows: list[Weight] = []
        for matrix in cls.matrices(config):
            down = matrix.shape[0] == "d_model" and len(matrix.shape) == 2
            rows += [matrix, *bias_of(matrix.name, down and config.attention_bias, *matrix.shape[1:])]
        rows += [
            Weight(f"gain of {name}", (name,)) for name in ("d_query", "d_latent") if getattr(config, name)
        ]
        return (*rows, *_output_tensors(config))

    @classmethod
    def products(cls, config: ResolvedConfig) -> tuple[Product, ...]:
        rows = [Product(each.name, tuple(map(str, each.shape))) for each in cls.matrices(config)]
        rows += [
            Product("scores q·k", ("T", *QUERIES)),
            Product("scores of turned q·k", ("T", "n_heads", "d_rotated")),
            Product("weighted sum of v", ("T", *QUERIES)),
        ]
        if config.output_projection:
            rows.append(Product("W_O", (*QUERIES, "d_model")))
        return tuple(rows)

    @classmethod
    def vectors_saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        """Queries and keys, values (where they lie in order the tensor that they were cut from), and of each
        compressed vector its normed form, what its gain multiplies, and what was normed.
        """
        wide = config.n_heads * (config.d_head + config.d_rotated)
        values = (1 + lies_in_order(config, run)) * config.n_heads * config.d_head
        saved = SavedForBackward(internal=2 * wide + values)
        for width, cut in ((config.d_latent, config.d_rotated), (config.d_query, 0)):
            if width and run.narrow:
                saved += SavedForBackward(internal=width, full=2 * width + 1)
            elif width:
                saved += SavedForBackward(internal=3 * width + cut + 1)
        return saved

    @classmethod
    def cached_numbers(cls, config: ResolvedConfig) -> int:
        """Returns the latent and the turned key, whatever the number of heads."""
        return config.d_latent + config.d_rotated

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        read = ("c'", "c', the compressed x") if config.d_query else ("x", "x")
        return super().formulas(config) | {
            "q": (
                rf"q = [W_{{QR}}\,{read[0]},\; W_{{UQ}}\,{read[0]}]",
                f"turned part, then the rest, of {read[1]}",
            ),
            "k": (
                r"k = [W_{KR}\,x,\; W_{UK}\,c]",
                "the turned part, the same for all heads, then W_UK · latent c",
            ),
            "v": (r"v = W_{UV}\,c,\; c = \mathrm{norm}(W_{DKV}\,x)", "W_UV · latent c"),
            "q_latent_flat": (r"W_{DQ}\,x", "W_DQ · x, one short vector per token for all queries"),
            "q_latent": (r"c' = \mathrm{norm}(W_{DQ}\,x)", "its RMS norm, the compressed x"),
            "q_flat": (rf"W_Q\,{read[0]}", f"W_Q · {read[1]}"),
            "q_heads": (CUT, "split into heads"),
            "latent_flat": (
                r"[W_{DKV}\,x,\; W_{KR}\,x]",
                "one short vector per token, and the key that positions turn",
            ),
            "latent_split": (r"(d_{latent} + d_R) \to d_{latent},\; d_R", "cut into the two"),
            "latent": (r"c = \mathrm{norm}(W_{DKV}\,x)", "the latent c, by its RMS norm: what a cache holds"),
            "kv_flat": (r"[W_{UK}\,c,\; W_{UV}\,c]", "W_UK and W_UV · latent c, for all heads"),
            "kv_heads": (CUT, "split into heads, and each into k and v"),
        }

    @classmethod
    def score(cls, config: ResolvedConfig) -> Formula:
        if not config.score_scale:
            return super().score(config)
        return (
            r"\mathrm{scores} = \frac{q\,k^\top}{\sqrt{d_{head} + d_R}}",
            "q · kᵀ / √(d_head + d_R)",
        )


class SharedQKCard(HeadMixerCard):
    title: ClassVar[str] = "Attention, Q = K"
    sentence: ClassVar[str] = (
        "One matrix makes both queries and keys, so a token scores highest with tokens like itself."
    )
    learned: ClassVar[bool] = True
    flat: ClassVar[Mapping[str, str]] = {"q": "qk", "k": "v", "v": "v"}

    @classmethod
    def read_by(cls, config: ResolvedConfig) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("W_QK", QUERIES), ("W_V", QUERIES)

    @classmethod
    def vectors_saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        alike, itself = alike_saved(config, run)
        return alike + SavedForBackward(
            internal=(1 + itself) * config.n_heads * config.d_head
        )  # v, and what q and k are

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        bias = _bias(config)
        return super().formulas(config) | {
            **_shared_flat(config),
            "v_flat": (rf"v = x\,W_V{bias}", f"x · W_V{bias}"),
            "v_heads": (CUT, "split into heads"),
        }


class SimilarityCard(HeadMixerCard):
    title: ClassVar[str] = "Similarity"
    sentence: ClassVar[str] = (
        "Tokens are weighted by how similar their vectors are. With no matrices in between, each mostly"
        " finds itself."
    )

    @classmethod
    def vectors_saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        alike, itself = alike_saved(config, run)
        lies = lies_in_order(config, run)  # then v is x as it is
        return alike + SavedForBackward(
            read=config.d_model * (itself or lies), internal=config.d_model * (not lies)
        )

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        return super().formulas(config) | {"x_heads": (CUT, "split into heads; there are no matrices")}


class MeanCard(SimilarityCard):
    title: ClassVar[str] = "Average"
    sentence: ClassVar[str] = (
        "Every token takes the plain average of all it may see: no token counts more than any other."
    )
    scored: ClassVar[bool] = False

    @classmethod
    def score(cls, config: ResolvedConfig) -> Formula:
        return r"\mathrm{scores} = 0", "all equal"


class NoMixerCard(MixerCard):
    title: ClassVar[str] = "No mixer"
    sentence: ClassVar[str] = "Tokens never exchange information."
    flat: ClassVar[Mapping[str, str]] = {}


class SharedQKRawValuesCard(HeadMixerCard):
    title: ClassVar[str] = "Attention, Q = K, no W_V"
    sentence: ClassVar[str] = (
        "One matrix transforms the vectors that are compared; the values are the vectors themselves."
    )
    learned: ClassVar[bool] = True
    flat: ClassVar[Mapping[str, str]] = {"q": "qk", "k": "qk"}

    @classmethod
    def read_by(cls, config: ResolvedConfig) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return (("W_QK", QUERIES),)

    @classmethod
    def vectors_saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        alike, itself = alike_saved(config, run)
        return alike + SavedForBackward(internal=itself * config.d_model) + _values(config, run)

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        return super().formulas(config) | _shared_flat(config) | STREAM_AS_VALUES


class QueriesAndKeysCard(HeadMixerCard):
    title: ClassVar[str] = "Attention, no W_V"
    sentence: ClassVar[str] = "Queries and keys have a matrix each; the values are the vectors themselves."
    learned: ClassVar[bool] = True
    flat: ClassVar[Mapping[str, str]] = {"q": "qk", "k": "qk"}

    @classmethod
    def read_by(cls, config: ResolvedConfig) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("W_Q", QUERIES), ("W_K", QUERIES)

    @classmethod
    def vectors_saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        both = SavedForBackward(internal=2 * config.n_heads * config.d_head) + _values(config, run)
        if not config.qk_norm:
            return both
        return norm_saved(config, run) + (_values(config, run) if run.narrow else both)

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        bias = _bias(config)
        return super().formulas(config) | {
            "qk_flat": (rf"[q, k] = x\,[W_Q, W_K]{bias}", f"x · [W_Q, W_K]{bias}, one product for both"),
            "qk_heads": (CUT, "split into q, k, and each into heads"),
            **STREAM_AS_VALUES,
        }


def _values(config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
    """Returns what is saved of values that are the stream: a copy with the heads side by side, if it does not
    lie so already.
    """
    return SavedForBackward(internal=config.d_model * (not lies_in_order(config, run)))
