"""Cards of the blocks (`engine.parts.blocks`, `crossing`): how they are wired."""

from __future__ import annotations

from typing import ClassVar

from studies.costs.cards import Formula


class BlockCard:
    """How a block is wired. {copy} and {normed} in `sentence` are filled in: they depend on the norm."""

    sentence: ClassVar[str]

    @classmethod
    def formulas(cls) -> dict[str, Formula]:
        return {"resid_mid": _added("attn_out"), "resid_post": _added("ffn_out")}


class PreNormBlockCard(BlockCard):
    sentence: ClassVar[str] = (
        "Each sublayer reads {copy} of the stream and adds its result to it. The stream itself runs through"
        " untouched, which is why deep stacks train."
    )


class PostNormBlockCard(BlockCard):
    sentence: ClassVar[str] = (
        "Each sublayer's result is added to the stream{normed}: the 2017 design. Gradients go through all"
        " norms, so deep stacks need a warm-up."
    )


class ParallelBlockCard(BlockCard):
    sentence: ClassVar[str] = (
        "Attention and feed-forward read the same stream at the same time, and both add to it: one step,"
        " not two (GPT-J, PaLM)."
    )

    @classmethod
    def formulas(cls) -> dict[str, Formula]:
        return {"resid_post": _added("attn_out", "ffn_out")}


class NoResidualBlockCard(BlockCard):
    sentence: ClassVar[str] = (
        "There is no stream here: what a sublayer makes replaces what it read. Take the shortcut away and see"
        " how badly it learns."
    )

    @classmethod
    def formulas(cls) -> dict[str, Formula]:
        return {"resid_mid": _replaced("attn_out"), "resid_post": _replaced("ffn_out")}


def _replaced(update: str) -> Formula:
    return rf"x \leftarrow \mathrm{{{update.replace('_', chr(92) + '_')}}}", update


def _added(*updates: str) -> Formula:
    latex = "".join(rf" + \mathrm{{{name.replace('_', chr(92) + '_')}}}" for name in updates)
    return rf"x \leftarrow x{latex}", " + ".join(("stream", *updates))


class DecoderBlockCard:
    """The formulas of a decoder's block."""

    @classmethod
    def formulas(cls) -> dict[str, Formula]:
        return {
            "resid_mid": _added("attn_out"),
            "cross_resid": _added("cross_out"),
            "resid_post": _added("ffn_out"),
        }
