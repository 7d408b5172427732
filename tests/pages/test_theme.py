"""Colours that everybody can tell apart, on both pages."""

import re
import tomllib
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tests.engine.cases import for_each
from ui.figures import theme

CONFIG = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())

# Machado, Oliveira & Fernandes 2009, severity 1, on linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def linear(colour):
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    xyz = (
        np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
        @ np.clip(rgb, 0, 1)
        / np.array([0.9505, 1, 1.089])
    )
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(a, b):
    low, high = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (a, b))
    return (high + 0.05) / (low + 0.05)


@for_each("sight", SIGHT)
@for_each("page", [0, 1])
def test_parts_are_told_apart(sight, page):
    seen = {part: lab(SIGHT[sight] @ linear(pair[page])) for part, pair in theme.PART_COLOURS.items()}
    for a, b in combinations(seen, 2):
        assert np.linalg.norm(seen[a] - seen[b]) > 18, (a, b)


STYLES = Path(__file__).parents[2] / "ui" / "assets" / "app.css"
READ_ON = ("backgroundColor", "secondaryBackgroundColor")


@pytest.mark.parametrize("page", ["light", "dark"])
def test_parts_and_words_stand_out_from_the_page(page):
    colours = CONFIG["theme"][page]
    for part, pair in theme.PART_COLOURS.items():
        assert contrast(pair[page == "dark"], colours["backgroundColor"]) >= 3, part
    assert contrast(colours["textColor"], colours["backgroundColor"]) >= 7
    assert contrast("#FFFFFF", colours["primaryColor"]) >= 4.5  # the primary button's label

    rules = re.findall(r"color: light-dark\((#\w{6}), (#\w{6})\)", STYLES.read_text("utf-8"))
    assert len(rules) >= 2
    words = [pair[page == "dark"] for pair in rules] + [colours["linkColor"], colours["codeTextColor"]]
    for word in words:
        for ground in READ_ON:
            assert contrast(word, colours[ground]) >= 4.5, (word, ground)
            assert contrast(word, colours["sidebar"][ground]) >= 4.5, (word, "sidebar", ground)


@pytest.mark.parametrize("page", [0, 1])
def test_scales_go_one_way(page):
    pairs = theme.palette()
    sequence = [lab(linear(pairs[f"seq{i}"][page]))[0] for i in range(len(theme.SEQUENTIAL))]
    assert all(np.diff(sequence) < 0) if page == 0 else all(np.diff(sequence) > 0)
    distance = [
        abs(lab(linear(pairs[f"div{i}"][page]))[0] - lab(linear(pairs["div3"][page]))[0]) for i in range(7)
    ]
    assert distance[0] > distance[1] > distance[2] > distance[3] < distance[4] < distance[5] < distance[6]
