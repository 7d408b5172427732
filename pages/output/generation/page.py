"""Generation: token by token, with a KV cache, with drafts, and by beam search."""

from pages.output.generation import beam_search, drafts, kv_cache, token_by_token
from ui.page_frame import Page, show

PAGE = Page(
    "Generation",
    "generation_view",
    (token_by_token.VIEW, kv_cache.VIEW, drafts.VIEW, beam_search.VIEW),
    text="KING RICHARD II:\n",
)

if __name__ == "__main__":
    show(PAGE)
