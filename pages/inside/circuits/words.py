"""What the views of circuits say."""

from ui.look import Words

TEXT = "The capital of France is"

PATCHING = Words(
    see=(
        "Two prompts that differ in one place. A part of what the model computed for the first is put into"
        " its run on the second, at one block and one token; the colour says how much of the first answer"
        " comes back."
    ),
    why=(
        "A pattern shows where a head looks. Putting something else in its place shows what the answer hangs"
        " on."
    ),
    attempt="Change from the stream to attention: the blocks where the answer moves are those that carry it.",
)
