"""What a training of BPE that is watched consists of."""

from __future__ import annotations

from dataclasses import dataclass

from engine.tokenizers.bpe_watch import Replay, Watched


@dataclass(frozen=True)
class Watching:
    """One training and one passage under it. `frames` is all that the browser needs to play it, as JSON;
    `key` names it.
    """

    seen: Watched
    shown: Replay
    frames: str
    key: str
