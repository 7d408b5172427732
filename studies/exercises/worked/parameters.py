"""A parameter count by hand: tables, the matrices and vectors of a block, all blocks, the whole model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from engine.config import GATED, ModelConfig, ResolvedConfig
from studies.costs.hand_count import is_matrix, terms
from studies.costs.ledger import PER_BLOCK, Ledger, ledger
from studies.costs.ledger import Row as Tensor
from studies.costs.presets import PRESETS
from studies.exercises.exercise import Mistake, mistakes
from studies.exercises.forms import Numbers
from studies.exercises.sets.parameters import (
    GAIN_AND_BIAS,
    NO_OUTPUT_MATRIX,
    TIMES_HEADS,
    TWO_MATRICES,
    VOCABULARY_ROWS,
    Counts,
)
from studies.exercises.worked_example import Cell, Row, WorkedExample

TABLES = ("embedding", "position", "unembedding")
WIDTHS = (16, 24, 32, 64)  # of a head that is drawn
NORMS = ("norm1", "norm2", "norm_final")
PLAIN = {*TABLES, *NORMS, "attention", "feedforward"}
Wrong = Sequence[tuple[int, str]]  # what usual mistakes count, and their hints
Hints = tuple[str, str, str]


def count_of(model: Ledger, seed: int) -> WorkedExample:
    """Returns the count of a model like the one that is shown."""
    example, plain = count(like(model, seed)), _is_plain(model)
    kind = "The same kind of model in other sizes" if plain else "A small model like GPT-2"
    return replace(example, given=f"{kind}: {example.given}")


def like(model: Ledger, seed: int) -> Ledger:
    """Draws the sizes of a model like the one that is shown, with none of its totals: the answers then stand
    nowhere else. A model that is no stack of blocks with attention and a feed-forward network gives one like
    GPT-2.
    """
    rng, shown, plain = Random(f"count/{seed}"), _stated(model), _is_plain(model)
    while True:
        result = ledger(resized(rng, model.config), parts=model.parts) if plain else ledger(drawn(rng))
        if not shown & _stated(result):
            return result


def _stated(model: Ledger) -> set[int]:
    """The counts of the components, of all blocks and of the whole model."""
    return {*model.components.values(), model.in_blocks, model.total} - {0}


def count(model: Ledger) -> WorkedExample:
    """Returns the count of a model that is a stack of blocks with attention and a feed-forward network."""
    return _Count(model).example


def drawn(rng: Random) -> ModelConfig:
    """Draws a small model like GPT-2, with biases or without, tied or not."""
    bias = rng.random() < 0.5
    base = replace(
        PRESETS["gpt2"].model,
        position=rng.choice(["learned", "rope"]),
        attention_bias=bias,
        output_bias=bias,
        ffn_bias=bias,
        tie_embeddings=rng.random() < 0.5,
    )
    return resized(rng, base.resolved())


def resized(rng: Random, config: ResolvedConfig) -> ModelConfig:
    """Draws small sizes for an architecture. Heads that share keys, and heads that are not a share of the
    width, stay so.
    """
    heads = rng.choice([4, 8])
    shared = {config.n_heads: heads, 1: 1}.get(config.n_kv_heads, heads // 2)
    d = heads * (width := rng.choice(WIDTHS))
    return replace(
        config,
        vocab_size=rng.choice([96, 256, 5_000, 10_000, 32_000]),
        context=rng.choice([96, 160, 384, 768]),
        d_model=d,
        d_head=width if config.d_head * config.n_heads == config.d_model else 2 * width,
        d_ff=rng.choice([2, 3, 4]) * d,
        n_layers=rng.randint(3, 12),
        n_heads=heads,
        n_kv_heads=shared,
    )


def _is_plain(model: Ledger) -> bool:
    """True for a stack of blocks with attention and a feed-forward network that has every size drawn here."""
    rows = [row for row in model.rows if row.parameters]
    parts = {row.component for row in rows}
    if model.encoder is not None or not {"embedding", "attention", "feedforward"} <= parts <= PLAIN:
        return False
    names = {part: [row.name for row in rows if row.component == part] for part in parts}
    return (
        not model.config.n_experts
        and model.config.mixer == "attention"
        and all(model.config.rope_fraction * width % 2 == 0 for width in WIDTHS)
        and all(len(names.get(part, [])) <= 1 for part in TABLES)
        and all(is_matrix(row) for row in rows if row.component in TABLES)
        and all(set(names.get(part, [])) <= {"gain g", "bias b"} for part in NORMS)
        and {"W_Q", "W_K", "W_V"} <= set(names["attention"])
    )


class _Count:
    """The count of one model."""

    def __init__(self, model: Ledger) -> None:
        self.model, self.config = model, model.config

    def _rows(self, *components: str) -> list[Tensor]:
        return [row for row in self.model.rows if row.component in components and row.parameters]

    def _each(self, *components: str) -> int:
        """Counts the parameters of components, of a block where each has them."""
        return sum(row.each for row in self._rows(*components))

    def _matrices(self, component: str) -> list[Tensor]:
        return [row for row in self._rows(component) if is_matrix(row)]

    def _vectors(self, component: str) -> list[Tensor]:
        return [row for row in self._rows(component) if not is_matrix(row)]

    def _inside(self, begin: str) -> list[Tensor]:
        """The biases of the matrices of one block ("bias"), or the gains of its queries and keys ("gain")."""
        parts = ("attention", "feedforward")
        return [row for part in parts for row in self._vectors(part) if row.name.startswith(begin)]

    @property
    def biases(self) -> int:
        """The biases of the matrices of one block."""
        return sum(row.each for row in self._inside("bias"))

    @property
    def gains(self) -> int:
        """The gains of queries and keys of one block."""
        return sum(row.each for row in self._inside("gain"))

    @property
    def norm_vectors(self) -> tuple[str, ...]:
        """The vectors of each norm, in words."""
        rows = self._rows("norm1", "norm2") or self._rows("norm_final")
        return tuple(dict.fromkeys(f"a {row.name.split()[0]}" for row in rows))

    @property
    def example(self) -> WorkedExample:
        nudge = NUDGES["W_O" in self._named("attention")]
        rows = [
            Row("Tables", tuple(self._tables())),
            Row("Attention", tuple(self._part("attention", self._attention_mistakes(), nudge))),
            Row("Feed-forward", tuple(self._part("feedforward", self._network_mistakes(), NETWORK))),
        ]
        if norms := tuple(self._norms()):
            rows.append(Row("Norms", norms))
        rows.append(Row("Together", (self._blocks(), self._total())))
        return WorkedExample(self._given(), tuple(rows), f"1-{len(rows[1].cells) - 1}", 1)

    def _given(self) -> str:
        c = self.config
        sizes = {"V": c.vocab_size, "d": c.d_model, "d_{ff}": c.d_ff, "L": c.n_layers, "H": c.n_heads}
        if self._rows("position"):
            sizes["T"] = c.context
        if c.n_kv_heads != c.n_heads:
            sizes["H_{kv}"] = c.n_kv_heads
        if self.gains or c.n_kv_heads != c.n_heads or c.d_head * c.n_heads != c.d_model:
            sizes["d_{head}"] = c.d_head
        numbers = ", ".join(f"${letter}$ = {size:,}" for letter, size in sizes.items())
        facts = [
            self._biased(),
            "embedding and unembedding are one table"
            if c.tie_embeddings
            else "the unembedding is a table of its own",
        ]
        if self.gains:
            facts.append(
                "queries and keys are normalised in each head, each with a gain, the same in all heads"
            )
        if self._rows("position"):
            facts.append("positions are a learned table")
        if norms := self.norm_vectors:
            facts.append(f"a norm has {' and '.join(norms)}")
        if c.ffn in GATED:
            facts.append("the network is gated")
        listed = "; ".join(facts)
        return f"{numbers}. {listed[0].upper()}{listed[1:]}."

    def _biased(self) -> str:
        """Says which matrices of a block have biases."""
        parts = {part: self._with_bias(part) for part in ("attention", "feedforward")}
        if all(parts[part] == self._named(part) for part in parts):
            return "each matrix of a block has biases"
        listed = _listed([name for names in parts.values() for name in names])
        return f"of a block's matrices only {listed} have biases" if listed else "no matrix has a bias"

    def _named(self, component: str) -> list[str]:
        """The matrices of a component, by their letters."""
        return [row.name.split()[-1] for row in self._matrices(component)]

    def _with_bias(self, component: str) -> list[str]:
        names = {row.name for row in self._vectors(component)}
        return [name for name in self._named(component) if f"bias of {name}" in names]

    def _tables(self) -> list[Cell]:
        c = self.config
        names = {"embedding": "tokens", "position": "positions", "unembedding": "unembedding"}
        result = []
        for component, label in names.items():
            if not (rows := self._rows(component)):
                continue
            count = self._each(component)
            other = self._each("position" if component == "embedding" else "embedding")
            letters, numbers = rows[0].formula, rows[0].numbers
            length = c.context if component == "position" else c.vocab_size
            nudge, each = LOOKED_UP[component]
            result.append(
                _cell(
                    label,
                    count,
                    (
                        (2 * count, "That is two tables. Here is only one."),
                        *([(other, "That is another table.")] if other else []),
                        (c.d_model * c.d_model, each),
                        (length, f"That counts only one side of the table. {each}"),
                        (length + c.d_model, "You added the sides of the table: multiply them."),
                    ),
                    (nudge, f"${_latex(letters)}$.", f"{numbers} = {count:,}"),
                )
            )
        return result

    def _part(self, component: str, wrong: Wrong, nudge: str) -> list[Cell]:
        """Returns the cells of attention, or of the network: matrices, vectors, all blocks."""
        matrices, vectors = self._matrices(component), self._vectors(component)
        weights = sum(row.each for row in matrices)
        biases, gains = (
            sum(row.each for row in vectors if row.name.startswith(begin)) for begin in ("bias", "gain")
        )
        layers, each = self.config.n_layers, weights + biases + gains
        extra = " and ".join([*["biases"] * (biases > 0), *["gains"] * (gains > 0)])
        single = ledger(replace(self.config, n_layers=1), parts=self.model.parts)
        term = next(term for term in terms(single) if term.component == component)
        also = [(each, f"That is with the {extra}. Here are only the matrices.")] if extra else []
        if not biases:
            also.append((weights + self._absent(component), f"You counted biases, but {OF[component]} none."))
        cells = [
            _cell(
                "matrices",
                weights,
                (*wrong, *also),
                (nudge, f"{term.formula}.", f"{term.numbers} = {weights:,}"),
            )
        ]
        if biases:
            cells.append(self._biases(component, biases, weights))
        if gains:
            cells.append(self._gains([row for row in vectors if row.name.startswith("gain")], gains))
        cells.append(
            _cell(
                "in all blocks",
                layers * each,
                (
                    (each, f"That is one block. There are {layers}."),
                    (layers * weights, f"The {extra} are missing."),
                    (layers * (each + biases), "You counted the biases twice."),
                    (layers * weights + each - weights, f"Each block has {extra}, not only one."),
                    ((layers - 1) * each, f"That is one block too few. There are {layers}."),
                ),
                (
                    "Each block has tensors of its own.",
                    f"$L$ times what one block has: {layers} times.",
                    f"{layers} · {each:,} = {layers * each:,}",
                ),
            )
        )
        return cells

    def _biases(self, component: str, biases: int, weights: int) -> Cell:
        having, every = self._with_bias(component), self._named(component)
        vectors = [row for row in self._vectors(component) if row.name.startswith("bias")]
        all_of_them = having == every
        which = "Each matrix has a bias." if all_of_them else f"{_listed(having)} have one each."
        return _cell(
            "biases",
            biases,
            (
                (2 * biases, "You counted the biases twice."),
                *(
                    (biases - row.each, f"One is missing. {which}")
                    for row in vectors[::-1]
                    if len(vectors) > 1
                ),
                (biases + self._absent(component), f"Not every matrix has a bias. {which}"),
                (weights + biases, "That is with the matrices. Here are only the biases."),
            ),
            (
                "A bias is added to what a matrix gives. How many numbers does each give?",
                f"A number for each output of {'each matrix' if all_of_them else _listed(having)}.",
                _sum(vectors, biases),
            ),
        )

    def _gains(self, rows: Sequence[Tensor], gains: int) -> Cell:
        c = self.config
        return _cell(
            "gains",
            gains,
            (
                (gains // 2, "That is one gain. Queries have one, and keys another."),
                (c.n_heads * gains, "All heads share a gain, of $d_{head}$ numbers."),
                (2 * c.d_model, "A gain is as wide as one head, not as the stream."),
                ((c.n_heads + c.n_kv_heads) * gains // 2, "All heads share a gain, of $d_{head}$ numbers."),
            ),
            (
                "A gain multiplies each number of a vector. How many numbers does one head's query have?",
                "Two gains of $d_{head}$ numbers: for queries and for keys.",
                _sum(rows, gains),
            ),
        )

    def _absent(self, component: str) -> int:
        """Counts the biases that matrices without one would have: a number for each output."""
        d, having = self.config.d_model, self._with_bias(component)
        rows = [row for row in self._matrices(component) if row.name.split()[-1] not in having]
        return sum(d if row.formula.endswith("·d") else row.each // d for row in rows)

    def _attention_mistakes(self) -> Wrong:
        c, matrices = self.config, self._matrices("attention")
        total, square = sum(row.each for row in matrices), c.d_head * c.n_heads == c.d_model
        output = [(total - row.each, NO_OUTPUT_MATRIX) for row in matrices if row.name == "W_O"]
        result: list[tuple[int, str]] = [*output]
        if c.n_kv_heads != c.n_heads:
            queries = matrices[0].each
            result.append((len(matrices) * queries, "Fewer key-value heads make $W_K$ and $W_V$ narrower."))
            result.append(
                (total * c.n_heads, "You multiplied by the number of heads. Each matrix holds all heads.")
            )
        elif square:
            result.append((total * c.n_heads, TIMES_HEADS))
            result.append((total // c.n_heads, "That is one head. The matrices are as wide as all heads."))
        if square:
            result.append((c.d_model**2, f"That is one matrix. Attention has {len(matrices)}."))
        else:
            result.append(
                (len(matrices) * c.d_model**2, "All heads together are $H \\cdot d_{head}$ wide, not $d$.")
            )
        return (*result, (4 * c.d_model, "A matrix has rows *and* columns: multiply them."))

    def _network_mistakes(self) -> Wrong:
        c, matrices = self.config, self._matrices("feedforward")
        total = sum(row.each for row in matrices)
        hint = (
            TWO_MATRICES if len(matrices) == 2 else f"This network is gated: it has {len(matrices)} matrices."
        )
        return (
            (total - matrices[0].each, hint),
            (len(matrices) * c.d_model**2, "The network is $d_{ff}$ wide inside, not $d$."),
            (len(matrices) * c.d_ff**2, "A matrix leads from $d$ to $d_{ff}$, or back."),
            (total // len(matrices), f"That is one matrix. The network has {len(matrices)}."),
        )

    def _norms(self) -> list[Cell]:
        inside, last = self._each("norm1", "norm2"), self._each("norm_final")
        d, layers, vectors = self.config.d_model, self.config.n_layers, " and ".join(self.norm_vectors)
        both = len(self.norm_vectors) == 2
        lacking = [] if both else [(2 * inside, f"These norms have {vectors}, and nothing else.")]
        cells = []
        if inside:
            cells.append(
                _cell(
                    "in a block",
                    inside,
                    (
                        (inside // 2, f"{GAIN_AND_BIAS} And a block has two norms." if both else TWO_NORMS),
                        (layers * inside, "That is all blocks. Here is one."),
                        (d, "That is a single vector of $d$ numbers."),
                        *lacking,
                    ),
                    (
                        "How many norms does a block have, and how many vectors does each?",
                        f"Each norm has {_vectors(vectors)}.",
                        _sum(self._rows("norm1", "norm2"), inside),
                    ),
                )
            )
        if last:
            cells.append(
                _cell(
                    "after the last block",
                    last,
                    (
                        *([(last // 2, GAIN_AND_BIAS)] if both else []),
                        (2 * last, "There is one norm after the last block." if both else ONE_VECTOR),
                        (layers * last, "This norm stands once, after all blocks."),
                    ),
                    (
                        "The stream is normalised once more before the unembedding.",
                        f"One norm, with {_vectors(vectors)}.",
                        _sum(self._rows("norm_final"), last),
                    ),
                )
            )
        return cells

    def _blocks(self) -> Cell:
        layers, each, norms = self.config.n_layers, self._each(*PER_BLOCK), self._each("norm1", "norm2")
        wrong = [(each, f"That is one block. There are {layers}.")]
        if norms:
            wrong.append((layers * (each - norms), "The two norms of each block are missing."))
        if self.biases:
            wrong.append((layers * (each - self.biases), "The biases are missing."))
            wrong.append((layers * (each + self.biases), "You counted the biases twice."))
        if self.gains:
            wrong.append((layers * (each - self.gains), "The gains of queries and keys are missing."))
        parts = "attention, the network and its norms" if norms else "attention and the network"
        return _cell(
            "all blocks",
            layers * each,
            (*wrong, ((layers - 1) * each, f"That is one block too few. There are {layers}.")),
            (
                f"The parameters of a block are in {parts}.",
                f"Add up {'all three' if norms else 'both'} for one block, then multiply by $L$.",
                f"{layers} · {each:,} = {layers * each:,}",
            ),
        )

    def _total(self) -> Cell:
        layers, total = self.config.n_layers, self.model.total
        blocks, last = layers * self._each(*PER_BLOCK), self._each("norm_final")
        tables = [self._each(name) for name in TABLES]
        counts = Counts(
            total,
            tables[0],
            tables[1],
            last,
            layers * self.biases,
            layers * self._each("norm1", "norm2"),
            self.config.tie_embeddings,
            f"{self.biases:,}",
            " and ".join(self.norm_vectors),
        )
        terms = " + ".join(f"{part:,}" for part in (blocks, *tables, last) if part)
        table = "the tables" if sum(map(bool, tables)) > 1 else "the table"
        around = f"{table} and the last norm" if last else table
        lacking = "is" if around == "the table" else "are"
        extra = (
            (blocks, f"Those are the blocks. {around.capitalize()} {lacking} missing."),
            (total - tables[2], "The unembedding is missing: it is a table of its own."),
            (total + layers * self.biases, "You counted the biases twice."),
            (total - layers * self.gains, "The gains of queries and keys are missing."),
        )
        return _cell(
            "the whole model",
            total,
            extra,
            (
                "What is there before the first block, and after the last one?",
                f"The blocks{', ' if last else ' and '}{around}.",
                f"{terms} = {total:,}",
            ),
            counts.mistakes,
        )


LOOKED_UP = {
    "embedding": (
        "The table has a row for each token of the vocabulary. How long is a row?",
        VOCABULARY_ROWS,
    ),
    "position": (
        "The table has a row for each position. How long is a row?",
        "The position table has a row for each position: $T \\cdot d$.",
    ),
    "unembedding": (
        "The unembedding makes a logit for each token of the vocabulary. Of how many numbers?",
        "The unembedding has $d$ numbers for each entry of the vocabulary: $V \\cdot d$.",
    ),
}
TWO_NORMS = "A block has two norms."
ONE_VECTOR = "There is one norm after the last block, with a single vector."
NUDGES = {
    True: "Which matrices make queries, keys and values, and which one mixes the heads?",
    False: "Which matrices make queries, keys and values? There is no $W_O$.",
}
NETWORK = "A network leads from $d$ numbers to more, and back."
OF = {"attention": "attention's matrices have", "feedforward": "the network's matrices have"}


def _cell(label: str, count: int, wrong: Wrong, hints: Hints, first: Sequence[Mistake] = ()) -> Cell:
    return Cell.of(
        label, Numbers(), (count,), (*first, *mistakes(*(((value,), hint) for value, hint in wrong))), hints
    )


def _listed(names: Sequence[str]) -> str:
    """
    >>> _listed(["W_Q", "W_K", "W_V"])
    '$W_Q$, $W_K$ and $W_V$'
    """
    *first, last = (f"${name}$" for name in names) if names else ("",)
    return f"{', '.join(first)} and {last}" if first else last


def _vectors(names: str) -> str:
    return f"{names}, each of $d$ numbers" if " and " in names else f"{names} of $d$ numbers"


def _latex(formula: str) -> str:
    """
    >>> _latex("d·H_kv·d_head"), _latex("T·d")
    ('d \\\\cdot H_{kv} \\\\cdot d_{head}', 'T \\\\cdot d')
    """
    factors = (letter.partition("_") for letter in formula.split("·"))
    return " \\cdot ".join(f"{name}_{{{index}}}" if index else name for name, _, index in factors)


def _sum(rows: Sequence[Tensor], total: int) -> str:
    return f"{' + '.join(f'{row.each:,}' for row in rows)} = {total:,}" if len(rows) > 1 else f"{total:,}"
