"""Charts that several pages share."""

import numpy as np
import pytest

from ui.figures.charts import head_heatmap


@pytest.mark.parametrize("shape", [(4, 6), (30, 9)], ids=["blocks down", "blocks across"])
def test_what_is_said_of_a_cell_is_what_its_axes_say(shape: tuple[int, int]) -> None:
    figure = head_heatmap(np.arange(np.prod(shape), dtype=float).reshape(shape), "nats")
    (heat,), layout = figure.traces, figure.arrangement
    for letter in "xy":
        named = layout[f"{letter}axis"]["title"]["text"]
        assert f"{named} %{{{letter}}}" in heat["hovertemplate"]
        assert len(heat[letter]) == shape[named == "head"]
    z = np.asarray(heat["z"])
    assert z.shape == (len(heat["y"]), len(heat["x"]))
    block, head = (1, 2) if layout["yaxis"]["title"]["text"] == "block" else (2, 1)
    assert z[block, head] == np.arange(np.prod(shape)).reshape(shape)[1, 2]
