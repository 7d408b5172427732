"""Why a run is as it is, where nobody decided that: what the page says of it."""

from __future__ import annotations

UNWATCHED = "Paused because nobody was watching. It goes on by itself as soon as somebody looks."
FROZEN = "The process of the training did not answer any more, and was ended."
LATE = "The training did not stop in time, and its process was ended."
REPLACED = "At step {step:,} its process did not answer any more: another one went on from step {newest:,}."
MOVED = "At step {step:,} its machine was lost: it went on from step {newest:,} on another one."
NOT_SAVED = "It could not be saved in time, so it goes on from its last snapshot."
