"""How text is cut into tokens: BPE watched merge by merge, tokenizers compared, a vocabulary's cost."""

from pages.input.tokens import bpe, tokenizers, vocabulary_size
from ui.page_frame import Page, show

PAGE = Page("Tokens", "tokens_view", (bpe.VIEW, tokenizers.VIEW, vocabulary_size.VIEW))

if __name__ == "__main__":
    show(PAGE)
