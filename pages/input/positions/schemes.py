"""The position schemes by their titles, and the small model that was trained with each."""

from __future__ import annotations

from engine import checkpoints
from engine.checkpoints import Checkpoint
from engine.config import Position
from engine.errors import GlassformerError
from studies.positions.schemes import SCHEMES
from ui import memo
from ui.site import ROOT

COLOURS: dict[Position, str] = dict(
    none="quiet", sinusoidal="run2", learned="run3", rope="training", alibi="run0", t5="validation"
)
TITLES: dict[Position, str] = {name: scheme.title for name, scheme in SCHEMES.items()}


def example(scheme: str) -> Checkpoint | None:
    """Returns the small model that was trained with a scheme, `checkpoints/positions/<scheme>`; None where it
    is not there or not whole.
    """
    folder = ROOT / "checkpoints" / "positions" / scheme
    try:
        return _example(scheme, (folder / checkpoints.CONFIG).stat().st_mtime)
    except (OSError, GlassformerError):
        return None


@memo.loaded()
def _example(scheme: str, stamp: float) -> Checkpoint:
    return checkpoints.load(ROOT / "checkpoints" / "positions" / scheme)
