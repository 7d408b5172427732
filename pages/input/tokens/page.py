"""How text is cut into tokens: BPE watched merge by merge, tokenizers compared, ids there and back, and what
the size of a vocabulary costs.
"""

from engine.data.tokenizers.bpe import BpeTokenizer, train
from engine.data.tokenizers.char import CharTokenizer
from engine.data.tokenizers.published import PublishedTokenizer
from engine.measure.tokens.subwords import three_ways
from engine.measure.tokens.vocabulary import (
    costs,
    cut_tokens,
    cut_words,
    of_characters,
    of_tokens,
    prefix,
)
from pages.input.tokens import words
from pages.input.tokens.bpe import draw_bpe
from pages.input.tokens.compare import draw_compare
from pages.input.tokens.cost import draw_cost
from pages.input.tokens.roundtrip import draw_roundtrip
from ui.page_frame import Page, View, show

KEY = "tokens_view"
show(
    Page(
        "Tokens",
        KEY,
        (
            View(
                "bpe",
                "BPE",
                draw_bpe,
                words.BPE,
                (train, BpeTokenizer.encode, three_ways),
                needs_model=False,
                question=words.BPE_ASKED,
            ),
            View(
                "compare",
                "Tokenizers",
                draw_compare,
                words.COMPARE,
                (PublishedTokenizer.encode, cut_tokens, cut_words),
                needs_model=False,
                question=words.COMPARE_ASKED,
            ),
            View(
                "roundtrip",
                "Round trip",
                draw_roundtrip,
                words.ROUNDTRIP,
                (CharTokenizer, of_characters, of_tokens),
                needs_model=False,
                question=words.ROUNDTRIP_ASKED,
            ),
            View(
                "cost",
                "Vocabulary size",
                draw_cost,
                words.COST,
                (costs, prefix),
                needs_model=False,
                question=words.COST_ASKED,
            ),
        ),
    )
)
