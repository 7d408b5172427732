"""The KV cache of eight published models, in bytes per token: multi-head, grouped-query, multi-query (Shazeer
2019), and multi-head latent attention, which holds a latent vector for all heads (DeepSeek-V2, 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from studies.costs.presets import PRESETS
from studies.generation.kv_cache import Family, family


@dataclass(frozen=True)
class PublishedCache:
    """Sizes that decide a cache. `d_key` and `d_value` are numbers of a head; `latent` and `rotated`, of MLA,
    those of the vector that all keys and values are made of, and of the one key that carries the position.
    """

    title: str
    layers: int
    heads: int
    kv_heads: int
    d_key: int
    d_value: int
    source: str
    latent: int = 0
    rotated: int = 0

    @property
    def way(self) -> Family | Literal["MLA"]:
        return "MLA" if self.latent else family(self.kv_heads, self.heads)

    @property
    def numbers(self) -> int:
        """Numbers that one layer holds of one token."""
        return self.latent + self.rotated if self.latent else self.kv_heads * (self.d_key + self.d_value)

    def bytes_per_token(self, width: int = 2) -> int:
        """Returns the bytes of one token in all layers, at `width` bytes a number.

        >>> by_name = {each.title: each.bytes_per_token() for each in PUBLISHED_CACHES}
        >>> by_name["DeepSeek-V3"], by_name["LLaMA-3.1 405B"]
        (70272, 516096)
        """
        return self.layers * self.numbers * width

    def bytes_with(self, kv_heads: int, width: int = 2) -> int:
        """Returns the same with keys and values of `kv_heads` heads: `heads` for MHA, 1 for MQA."""
        return self.layers * kv_heads * (self.d_key + self.d_value) * width


def of_preset(name: str) -> PublishedCache:
    """Reads the sizes of a published preset."""
    preset = PRESETS[name]
    c, title = preset.model.resolved(), preset.title.removesuffix(" (published)")
    sizes = (c.n_layers, c.n_heads, c.n_kv_heads, c.d_head, c.d_head)
    return PublishedCache(title, *sizes, preset.source or "")


# Two of each way, by size.
PUBLISHED_CACHES = (
    of_preset("gpt3-175b"),
    of_preset("llama2-7b"),
    PublishedCache("LLaMA-3.1 405B", 126, 128, 8, 128, 128, "meta-llama/llama-models, sku_list.py"),
    of_preset("llama2-70b"),
    of_preset("gemma-2b"),
    PublishedCache("Falcon 7B", 32, 71, 1, 64, 64, "huggingface.co/tiiuae/falcon-7b-instruct, config.json"),
    PublishedCache("DeepSeek-V3", 61, 128, 128, 192, 128, "DeepSeek-AI 2024, config.json", 512, 64),
    PublishedCache("DeepSeek-V2", 60, 128, 128, 192, 128, "DeepSeek-AI 2024, config.json", 512, 64),
)
