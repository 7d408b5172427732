"""Cross-attention: how a text that is being written looks at another one."""

from engine.experiments.masks_swapped import learn
from engine.measure.families.cross_attention import hits, masks_of
from engine.measure.families.written_target import write_target
from engine.parts.attention import causal_mask, decoder_masks, padding_mask
from engine.parts.blocks import DecoderBlock, PreNormDecoderBlock
from pages.inside.crossattention import words
from pages.inside.crossattention.alignment import draw_alignment
from pages.inside.crossattention.masks import draw_masks
from ui.page_frame import Page, View, show

show(
    Page(
        "Cross-attention",
        "cross_view",
        (
            View(
                "alignment",
                "Alignment",
                draw_alignment,
                words.ALIGNMENT,
                (DecoderBlock.forward, PreNormDecoderBlock.connect, write_target, hits),
                False,
                question=words.ASK_ALIGNMENT,
            ),
            View(
                "masks",
                "Two masks",
                draw_masks,
                words.MASKS,
                (causal_mask, padding_mask, decoder_masks, masks_of, learn),
                False,
                question=words.ASK_MASKS,
            ),
        ),
    )
)
