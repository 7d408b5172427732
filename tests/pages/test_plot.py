"""What a figure sends to the browser."""

import base64
import json

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from ui.figures import theme
from ui.figures.specs import Figure, Heatmap, Scatter
from ui.players import plot as module


def sent(figure, data=None):
    return json.loads(
        module.payload(figure, key="k", alt="words", height=300, data=data, name="loss"),
        parse_constant=pytest.fail,
    )


def test_arrays_travel_packed_and_nan_is_null():
    y = np.array([1.5, np.nan, 3.25], dtype=np.float32)
    message = sent(
        go.Figure([go.Scatter(x=np.arange(3), y=y), go.Scatter(x=[0, 1], y=[float("nan"), float("inf")])])
    )
    packed, plain = message["figure"]["data"]
    assert packed["y"]["dtype"] == "f4" and np.array_equal(
        np.frombuffer(base64.b64decode(packed["y"]["bdata"]), np.float32), y, equal_nan=True
    )
    assert plain["y"] == [None, None]


def test_plotlys_own_template_is_not_sent_and_the_figure_is_not_changed():
    figure = go.Figure(
        go.Heatmap(z=np.zeros((64, 64), np.float32), colorscale=theme.SEQUENTIAL), theme.base_layout()
    )
    before = figure.to_dict()
    assert "template" not in sent(figure)["figure"]["layout"] and figure.to_dict().keys() == before.keys()
    assert (
        len(module.payload(figure, key="k", alt="", height=1, data=None, name="n")) < 26_000
    )  # 16 KiB of numbers in base64


def test_the_table_keeps_every_kind_of_value():
    data = pd.DataFrame(
        {
            "step": [1, 2],
            "loss": np.array([1.5, np.nan], np.float32),
            "token": ['a,"b', None],
            "ok": [True, False],
        }
    )
    table = sent(go.Figure(), data)["table"]
    step, loss, token, ok = table["columns"]
    assert table["names"] == ["step", "loss", "token", "ok"] and table["rows"] == 2 and not table["cut"]
    assert (
        np.frombuffer(base64.b64decode(step["bdata"]), np.float64).tolist() == [1, 2]
        and loss["dtype"] == "f4"
    )
    assert token == ['a,"b', None] and ok == ["True", "False"]


def test_columns_in_a_dict_are_the_same_table():
    columns = {
        "step": range(1, 3),
        "loss": np.array([1.5, np.nan], np.float32),
        "token": ['a,"b', None],
        "ok": np.array([True, False]),
    }
    frame = pd.DataFrame(
        {name: list(values) if isinstance(values, range) else values for name, values in columns.items()}
    )
    assert sent(go.Figure(), columns)["table"] == sent(go.Figure(), frame)["table"]
    assert sent(go.Figure(), {})["table"] == {"names": [], "columns": [], "rows": 0, "cut": False}


def test_a_huge_table_is_cut_and_says_so():
    table = sent(
        go.Figure(), pd.DataFrame({"a": np.zeros(module.MAX_CELLS), "b": np.zeros(module.MAX_CELLS)})
    )["table"]
    assert table["cut"] and table["rows"] == module.MAX_CELLS // 2


def test_plain_data_is_sent_as_plotlys_own_figure_would_be():
    z = np.array([[1, 2], [3, 2**40]])
    spec = Figure(
        [
            Heatmap(
                z=z,
                text=np.array([["a", "b"], ["c", None]], dtype=object),
                opacity=np.float64(0.5),
                zmin=float("nan"),
            )
        ],
        {"showlegend": False},
    )
    message = sent(spec)["figure"]
    trace = message["data"][0]
    assert (
        trace["type"] == "heatmap"
        and trace["opacity"] == 0.5
        and trace["zmin"] is None
        and trace["text"] == [["a", "b"], ["c", None]]
    )
    assert trace["z"]["shape"] == "2, 2" and np.frombuffer(
        base64.b64decode(trace["z"]["bdata"]), np.float64
    ).tolist() == [1, 2, 3, 2**40]
    small = module.packed(np.array([-3, 70_000]))
    assert (
        small["dtype"] == "i4"
        and module.packed(np.float16([1]))["dtype"] == "f4"
        and module.packed(np.array([True, False])) == [True, False]
    )
    with pytest.raises(TypeError, match="object cannot be sent"):
        module.packed(object())


def test_a_property_that_plotly_does_not_know_is_found_by_its_checks():
    assert Figure([Scatter(x=[1], y=[2])]).data[0].x == (1,)
    with pytest.raises(ValueError, match="colour"):
        _ = Figure([Scatter(x=[1], y=[2], line={"colour": "red"})]).data


def test_a_changed_figure_leaves_the_first_as_it_was():
    first = Figure(
        {
            "data": [Scatter(x=[1], y=[2], name="a")],
            "layout": {"xaxis": {"title": {"text": "x"}, "showgrid": False}},
        }
    )
    second = first.changed({"xaxis": {"showgrid": True}, "height": 3}, name="b")
    assert (
        first.arrangement == {"xaxis": {"title": {"text": "x"}, "showgrid": False}}
        and first.traces[0]["name"] == "a"
    )
    assert (
        second.arrangement == {"xaxis": {"title": {"text": "x"}, "showgrid": True}, "height": 3}
        and second.traces[0]["name"] == "b"
    )
