"""The view "Breakdown": where the parameters of a model are, of one of its blocks, and of two models."""

from __future__ import annotations

from pages.models.parameters import beside_another, single_block, whole_model
from ui import content
from ui.view_parts import view_of_parts

TEXT = content.beside(__file__)
PARTS = {
    "whole": whole_model.PART,
    "block": single_block.PART,
    "two": beside_another.PART,
}

VIEW = view_of_parts("where", TEXT.title, "parameters_scope", PARTS)
