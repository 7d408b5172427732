"""Deliberate bugs, each declared beside the lines that make it (`@fault`): other parts, or other settings.

The model, the training and every page run on them unchanged. Their words, and their order, are in words.toml.
"""

from engine.parts.registry import PARTS
from studies.lab.faults import attention as attention  # each of these declares its faults when it is imported
from studies.lab.faults import blocks as blocks
from studies.lab.faults import fault
from studies.lab.faults import masks as masks
from studies.lab.faults import positions as positions
from studies.lab.faults import training as training
from studies.lab.faults import weights as weights
from studies.lab.faults.fault import LAB_MODEL, LAB_TRAIN, Diff, Fault

__all__ = ["FAULTS", "LAB_MODEL", "LAB_TRAIN", "PARTS", "Diff", "Fault"]

FAULTS = {name: fault.FAULTS[name] for name in fault.WORDS}
