"""How text is cut into tokens: BPE watched merge by merge, tokenizers compared, and what the size of a
vocabulary costs.
"""

import streamlit as st

from engine.measure.vocabulary import costs, cut_tokens, cut_words, prefix
from engine.tokenizers.bpe import BpeTokenizer, train
from engine.tokenizers.published import PublishedTokenizer
from pages.input.tokens import bpe as bpe_player
from pages.input.tokens import compare as tokens_compare
from pages.input.tokens import cost as tokens_cost
from ui import explain

# A view for each name: what draws it, the functions whose code is shown, and the words below it.
VIEWS = {
    "BPE, watched": bpe_player.draw_bpe,
    "Compare tokenizers": tokens_compare.draw_compare,
    "What vocabulary size costs": tokens_cost.draw_cost,
}
CODE = {
    "BPE, watched": (train, BpeTokenizer.encode),
    "Compare tokenizers": (PublishedTokenizer.encode, cut_tokens, cut_words),
    "What vocabulary size costs": (costs, prefix),
}
WORDS = {
    "BPE, watched": {
        "see": (
            "Byte-pair encoding (Sennrich et al. 2016): count every pair of neighbours, glue the most"
            " frequent one together, count again. Grey is a starting symbol, a colour is a token that was"
            " learned; equal tokens have equal colours."
        ),
        "why": (
            "A model reads ids, not letters. Frequent words become one token each, so the text gets short;"
            " rare ones are spelled in pieces, so nothing is unknown. Attention costs $T^2$: half the tokens,"
            " a quarter of the work."
        ),
        "attempt": (
            "Choose “Languages” and watch letters that are not English being put together from bytes first."
            " Then switch the pre-splitting off: tokens begin to run across the borders of words."
        ),
    },
    "Compare tokenizers": {
        "see": (
            "One text, cut by each tokenizer. Neighbours have different colours so that the cuts show; the"
            " colours mean nothing else. Bytes such as `E2 82` stand where a token ends inside a character."
        ),
        "why": (
            "The model never sees the letters, only the ids. What a language, a sum or a name costs, and what"
            " is hard about it, is settled here, before the first matrix: few tokens mean a longer memory and"
            " less work."
        ),
        "attempt": (
            "Go through the examples: each says what to notice. Then type your own name, your own language, a"
            " line of code. Let our BPE learn from your text and see it find your words."
        ),
    },
    "What vocabulary size costs": {
        "see": (
            "Byte-pair encoding learned from the text once; stopped earlier, it has a smaller vocabulary V."
            " For each V: the tokens T of the passage, the numbers in the embedding, $V \\cdot d$, and the"
            " scores of one attention head, $T^2$. Diamonds are other tokenizers."
        ),
        "why": (
            "Each entry is one more row to store and to learn, and a rare one is seldom seen. Each token"
            " saved makes the sequence shorter, and attention pays for length squared. GPT-2 settled at"
            " 50,257; later models went further, since their blocks are so much larger than their tables."
        ),
        "attempt": (
            "Widen the model and add layers: the embedding's share falls. Take all of the text: most of the"
            " gain comes with the first few thousand entries. On the text that it learned from, our BPE needs"
            " fewer entries than gpt2; on any other it would not."
        ),
    },
}

st.title("Tokens")
st.markdown(
    "A model reads numbers. Text is cut into pieces from a fixed list, and each piece is replaced by its"
    " place in that list."
)


@st.fragment
def look() -> None:
    view = explain.choose_view(VIEWS, "tokens_view")
    VIEWS[view]()
    explain.reading(**WORDS[view])
    explain.show_code(*CODE[view])


look()
