"""Code that several views of Positions need: the choice of a mask, a written number, the small models that
were trained with one scheme each.
"""

from __future__ import annotations

from engine.errors import GlassformerError
from engine.weights import checkpoints
from engine.weights.checkpoints import Checkpoint
from ui import memo, widgets
from ui.site import ROOT
from ui.text.numbers import minus

MASKS = ("causal", "both ways")


def signed(value: float, digits: int = 3) -> str:
    """Returns a number with a true minus sign.

    >>> signed(-1.5), signed(2.0, 1)
    ('−1.500', '2.0')
    """
    return minus(f"{value:.{digits}f}")


def thousands(value: float) -> str:
    """Returns a number as sliders write it.

    >>> thousands(10_000), thousands(0.25)
    ('10,000', '0.25')
    """
    return f"{value:,}"


def choose_mask(causal: bool, key: str) -> bool:
    """True for a causal mask; the model's own choice stands first."""
    return widgets.select("Mask", MASKS if causal else MASKS[::-1], key) == MASKS[0]


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
