"""A parameter count by hand: tables, the matrices and vectors of a block, all blocks, the whole model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from engine.config import GATED, ModelConfig
from studies.costs.hand_count import is_matrix, terms
from studies.costs.ledger import PER_BLOCK, Ledger, ledger
from studies.costs.ledger import Row as Tensor
from studies.costs.presets import PRESETS
from studies.exercises.exercise import Mistake, mistakes
from studies.exercises.forms import Numbers
from studies.exercises.sets.parameters import (
    GAIN_AND_BIAS,
    NO_BIASES,
    NO_OUTPUT_MATRIX,
    TIMES_HEADS,
    TWO_MATRICES,
    VOCABULARY_ROWS,
    Counts,
)
from studies.exercises.worked_example import Cell, Row, WorkedExample

PLAIN = {"embedding", "position", "norm1", "attention", "norm2", "feedforward", "norm_final", "unembedding"}
Wrong = Sequence[tuple[int, str]]  # what usual mistakes count, and their hints
Hints = tuple[str, str, str]


def count_of(model: Ledger, seed: int) -> WorkedExample:
    """Returns the count of a model; for a seed above 0, and for a model that is no stack of blocks with
    attention and a feed-forward network, that of a model with drawn sizes.
    """
    return _Count(model if seed == 0 and _is_plain(model) else ledger(drawn(Random(f"count/{seed}")))).example


def drawn(rng: Random) -> ModelConfig:
    """Draws the sizes of a small model, with biases or without, tied or not."""
    heads, bias = rng.choice([2, 4, 8]), rng.random() < 0.5
    return replace(
        PRESETS["gpt2"].model,
        vocab_size=rng.choice([65, 256, 5_000, 10_000, 32_000]),
        context=rng.choice([64, 128, 256, 512]),
        d_model=(d := heads * rng.choice([16, 24, 32, 64])),
        d_ff=rng.choice([2, 3, 4]) * d,
        n_layers=rng.randint(2, 12),
        n_heads=heads,
        position=rng.choice(["learned", "rope"]),
        attention_bias=bias,
        output_bias=bias,
        ffn_bias=bias,
        tie_embeddings=rng.random() < 0.5,
    )


def _is_plain(model: Ledger) -> bool:
    parts = {row.component for row in model.rows if row.parameters}
    return model.encoder is None and parts <= PLAIN and {"embedding", "attention", "feedforward"} <= parts


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

    @property
    def biases(self) -> int:
        """The biases and gains of the matrices of one block."""
        return sum(row.each for part in ("attention", "feedforward") for row in self._vectors(part))

    @property
    def biased_norms(self) -> bool:
        return any("bias" in row.name for row in self._rows("norm1", "norm2", "norm_final"))

    @property
    def example(self) -> WorkedExample:
        rows = [
            Row("Tables", tuple(self._tables())),
            Row("Attention", tuple(self._part("attention", self._attention_mistakes(), ATTENTION))),
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
        if c.d_head * c.n_heads != c.d_model:
            sizes["d_{head}"] = c.d_head
        numbers = ", ".join(f"${letter}$ = {size:,}" for letter, size in sizes.items())
        facts = [
            "the matrices of a block have biases" if self.biases else "no matrix has a bias",
            "embedding and unembedding are one table"
            if c.tie_embeddings
            else "the unembedding is a table of its own",
        ]
        if self._rows("position"):
            facts.append("positions are a learned table")
        if self._rows("norm1", "norm2"):
            facts.append("a norm has a gain and a bias" if self.biased_norms else "a norm has a gain")
        if c.ffn in GATED:
            facts.append("the network is gated")
        listed = "; ".join(facts)
        return f"{numbers}. {listed[0].upper()}{listed[1:]}."

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
            result.append(
                _cell(
                    label,
                    count,
                    (
                        (2 * count, "That is two tables. Here is only one."),
                        *([(other, "That is another table.")] if other else []),
                        (c.d_model * c.d_model, VOCABULARY_ROWS),
                        *([(c.vocab_size, ROWS)] if component != "position" else []),
                        *([(c.context, ROWS)] if component == "position" else []),
                        (c.vocab_size + c.d_model, "Rows *times* columns."),
                    ),
                    (
                        "A table has a row for each thing that is looked up. How long is a row?",
                        f"${_latex(letters)}$.",
                        f"{numbers} = {count:,}",
                    ),
                )
            )
        return result

    def _part(self, component: str, wrong: Wrong, nudge: str) -> list[Cell]:
        """Returns the cells of attention, or of the network: matrices, vectors, all blocks."""
        matrices, vectors = self._matrices(component), self._vectors(component)
        weights, biases = (sum(row.each for row in rows) for rows in (matrices, vectors))
        layers, each = self.config.n_layers, weights + biases
        single = ledger(replace(self.config, n_layers=1), parts=self.model.parts)
        term = next(term for term in terms(single) if term.component == component)
        cells = [
            _cell(
                "matrices",
                weights,
                (*wrong, (each if biases else weights + self._absent(matrices), _biases_hint(biases))),
                (nudge, f"{term.formula}.", f"{term.numbers} = {weights:,}"),
            )
        ]
        if biases:
            cells.append(
                _cell(
                    "biases",
                    biases,
                    (
                        (2 * biases, "You counted the biases twice."),
                        *(
                            (biases - row.each, f"The {row.name} is missing: each matrix has one.")
                            for row in vectors[::-1]
                        ),
                        (each, "That is with the matrices. Here are only the biases."),
                    ),
                    (
                        "A bias is added to what a matrix gives. How many numbers does each give?",
                        "A number for each output of each matrix.",
                        _sum(vectors, biases),
                    ),
                )
            )
        cells.append(
            _cell(
                "in all blocks",
                layers * each,
                (
                    (each, f"That is one block. There are {layers}."),
                    (layers * weights, "The biases are missing."),
                    (layers * (weights + 2 * biases), "You counted the biases twice."),
                    (layers * weights + biases, "Biases are in each block, too."),
                    ((layers - 1) * each, f"That is {layers - 1} blocks. There are {layers}."),
                ),
                (
                    "Each block has tensors of its own.",
                    f"$L$ times what one block has: {layers} times.",
                    f"{layers} · {each:,} = {layers * each:,}",
                ),
            )
        )
        return cells

    def _absent(self, matrices: Sequence[Tensor]) -> int:
        """Counts the biases that matrices would have: a number for each output."""
        d = self.config.d_model
        return sum(d if row.formula.endswith("·d") else row.each // d for row in matrices)

    def _attention_mistakes(self) -> Wrong:
        c, matrices = self.config, self._matrices("attention")
        total = sum(row.each for row in matrices)
        output = [(total - row.each, NO_OUTPUT_MATRIX) for row in matrices if row.name == "W_O"]
        return (
            *(output if len(matrices) == 4 else []),
            (total * c.n_heads, TIMES_HEADS),
            (len(matrices) * c.d_model**2, "Fewer key-value heads make $W_K$ and $W_V$ narrower."),
            (c.d_model**2, f"That is one matrix. Attention has {len(matrices)}."),
            (total // c.n_heads, "That is one head. The matrices are as wide as all heads."),
            (4 * c.d_model, "A matrix has $d$ rows *and* $d$ columns."),
        )

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
        inside, last, layers = self._each("norm1", "norm2"), self._each("norm_final"), self.config.n_layers
        vectors = "a gain *and* a bias" if self.biased_norms else "a gain"
        half = (
            f"{GAIN_AND_BIAS} And a block has two norms." if self.biased_norms else "A block has two norms."
        )
        cells = []
        if inside:
            rows = self._rows("norm1", "norm2")
            cells.append(
                _cell(
                    "in a block",
                    inside,
                    (
                        (inside // 2, half),
                        (layers * inside, "That is all blocks. Here is one."),
                        (inside // 4, "That is a single vector of $d$ numbers."),
                        *(
                            []
                            if self.biased_norms
                            else [(2 * inside, "These norms have a gain and no bias.")]
                        ),
                    ),
                    (
                        "How many norms does a block have, and how many vectors does each?",
                        f"Each norm has {vectors}, of $d$ numbers.",
                        _sum(rows, inside),
                    ),
                )
            )
        if last:
            cells.append(
                _cell(
                    "after the last block",
                    last,
                    (
                        (last // 2, GAIN_AND_BIAS if self.biased_norms else "A vector has $d$ numbers."),
                        (2 * last, "There is one norm after the last block."),
                        (layers * last, "This norm stands once, after all blocks."),
                    ),
                    (
                        "The stream is normalised once more before the unembedding.",
                        f"One norm, with {vectors}.",
                        _sum(self._rows("norm_final"), last),
                    ),
                )
            )
        return cells

    def _blocks(self) -> Cell:
        layers, each, norms = self.config.n_layers, self._each(*PER_BLOCK), self._each("norm1", "norm2")
        return _cell(
            "all blocks",
            layers * each,
            (
                (each, f"That is one block. There are {layers}."),
                *([(layers * (each - norms), "The two norms of each block are missing.")] if norms else []),
                *([(layers * (each - self.biases), "The biases are missing.")] if self.biases else []),
                *([(layers * (each + self.biases), "You counted the biases twice.")] if self.biases else []),
                ((layers - 1) * each, f"That is {layers - 1} blocks. There are {layers}."),
            ),
            (
                "A block is attention, the network and its norms.",
                "Add up all three for one block, then multiply by $L$.",
                f"{layers} · {each:,} = {layers * each:,}",
            ),
        )

    def _total(self) -> Cell:
        layers, total = self.config.n_layers, self.model.total
        blocks, last = layers * self._each(*PER_BLOCK), self._each("norm_final")
        tables = [self._each(name) for name in ("embedding", "position", "unembedding")]
        counts = Counts(
            total,
            tables[0],
            tables[1],
            last,
            layers * self.biases,
            layers * self._each("norm1", "norm2"),
            self.config.tie_embeddings,
            f"{self.biases:,}",
            "a gain and a bias" if self.biased_norms else "a gain",
        )
        terms = " + ".join(f"{part:,}" for part in (blocks, *tables, last) if part)
        extra = (
            (blocks, "Those are the blocks. The tables and the last norm are missing."),
            (total - tables[2], "The unembedding is missing: it is a table of its own."),
            (total + layers * self.biases, "You counted the biases twice."),
        )
        return _cell(
            "the whole model",
            total,
            extra,
            (
                "What is there before the first block, and after the last one?",
                "Blocks, tables and the last norm.",
                f"{terms} = {total:,}",
            ),
            counts.mistakes,
        )


ROWS = "That is the number of rows. Each row has $d$ numbers."
ATTENTION = "Which matrices make queries, keys and values, and which one mixes the heads?"
NETWORK = "A network leads from $d$ numbers to more, and back."


def _cell(label: str, count: int, wrong: Wrong, hints: Hints, first: Sequence[Mistake] = ()) -> Cell:
    return Cell.of(
        label, Numbers(), (count,), (*first, *mistakes(*(((value,), hint) for value, hint in wrong))), hints
    )


def _biases_hint(biases: int) -> str:
    return "That is with the biases. Here are only the matrices." if biases else NO_BIASES


def _latex(formula: str) -> str:
    """
    >>> _latex("d·H_kv·d_head"), _latex("T·d")
    ('d \\\\cdot H_{kv} \\\\cdot d_{head}', 'T \\\\cdot d')
    """
    factors = (letter.partition("_") for letter in formula.split("·"))
    return " \\cdot ".join(f"{name}_{{{index}}}" if index else name for name, _, index in factors)


def _sum(rows: Sequence[Tensor], total: int) -> str:
    return f"{' + '.join(f'{row.each:,}' for row in rows)} = {total:,}" if len(rows) > 1 else f"{total:,}"
