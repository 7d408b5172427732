"""How text is cut into tokens: BPE watched merge by merge, tokenizers compared, a vocabulary's cost."""

from engine.data.tokenizers.bpe import BpeTokenizer, train
from engine.measure.tokens.subwords import three_ways
from engine.measure.tokens.vocabulary import costs, prefix
from pages.input.tokens import compare, words
from pages.input.tokens.bpe import draw_bpe
from pages.input.tokens.cost import draw_cost
from ui.page_frame import Page, View, show
from ui.view_parts import view_of_parts

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
            view_of_parts("compare", "Tokenizers", "compare_part", compare.PARTS),
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
