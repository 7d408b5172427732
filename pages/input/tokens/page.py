"""How text is cut into tokens: BPE watched merge by merge, tokenizers compared, and what the size of a
vocabulary costs.
"""

from engine.measure.vocabulary import costs, cut_tokens, cut_words, prefix
from engine.tokenizers.bpe import BpeTokenizer, train
from engine.tokenizers.published import PublishedTokenizer
from pages.input.tokens import words
from pages.input.tokens.bpe import draw_bpe
from pages.input.tokens.compare import draw_compare
from pages.input.tokens.cost import draw_cost
from ui.look import Page, View, show

show(
    Page(
        "Tokens",
        "tokens_view",
        (
            View("bpe", "BPE, watched", draw_bpe, words.BPE, (train, BpeTokenizer.encode), needs_model=False),
            View(
                "compare",
                "Compare tokenizers",
                draw_compare,
                words.COMPARE,
                (PublishedTokenizer.encode, cut_tokens, cut_words),
                needs_model=False,
            ),
            View(
                "cost",
                "What vocabulary size costs",
                draw_cost,
                words.COST,
                (costs, prefix),
                needs_model=False,
            ),
        ),
    )
)
