"""Generation: token by token, with a KV cache, and by beam search."""

from engine.measure.generation.kv_cache import (
    cache_size,
    compare,
    flops,
    unchanged,
)
from engine.parts.cache import KVCache
from engine.sample.beam import beam_search
from engine.sample.branches import ended_by, likelihood, pick
from engine.sample.decoder import Decoder
from engine.sample.generate import steps, window
from engine.sample.single_row import AttentionStep
from pages.output.generation import words
from pages.output.generation.beam import draw_beam
from pages.output.generation.cache import draw_cache
from pages.output.generation.write import draw_tokens
from ui.model_needs import CAUSAL, KEEPS, SAYS
from ui.page_frame import Page, View, show

show(
    Page(
        "Generation",
        "generation_view",
        (
            View(
                "tokens",
                "Token by token",
                draw_tokens,
                words.tokens,
                (steps, window, pick, likelihood, ended_by),
                question=words.TOKENS_QUESTION,
                takes=(SAYS, CAUSAL),
            ),
            View(
                "cache",
                "KV cache",
                draw_cache,
                words.cache,
                (KVCache, Decoder, AttentionStep, compare, flops, cache_size, unchanged),
                question=words.CACHE_QUESTION,
                takes=(SAYS, KEEPS),
            ),
            View(
                "beam",
                "Beam search",
                draw_beam,
                words.BEAM,
                (beam_search,),
                question=words.BEAM_QUESTION,
                takes=(SAYS, CAUSAL),
            ),
        ),
        text="KING RICHARD II:\n",
    )
)
