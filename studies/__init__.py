"""Studies of a model: what is measured, compared, counted and practised, by topic.

No screen: pure functions of a model, tokens and a seed, which return NumPy arrays and small frozen
dataclasses.
"""

from engine.additions import ADDING

ADDING |= {
    "engine.data.corpora": "studies.tasks.corpora",
    "engine.data.tokenizers.stored": "studies.pairs.tokenizer",
    "engine.parts.registry": "studies.lab.faults",
    "engine.sample.decoder": "studies.generation.single_row",
}
