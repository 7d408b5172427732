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
    told = module.payload(figure, key="k", alt="words", height=300, data=data, name="loss")
    return json.loads(told, parse_constant=pytest.fail)


def numbers(packed, kind=np.float64):
    return np.frombuffer(base64.b64decode(packed["bdata"]), kind)


def test_arrays_travel_packed_and_nan_is_null():
    y = np.array([1.5, np.nan, 3.25], dtype=np.float32)
    unending = go.Scatter(x=[0, 1], y=[float("nan"), float("inf")])
    message = sent(go.Figure([go.Scatter(x=np.arange(3), y=y), unending]))
    packed, plain = message["figure"]["data"]
    assert packed["y"]["dtype"] == "f4" and plain["y"] == [None, None]
    np.testing.assert_array_equal(numbers(packed["y"], np.float32), y)


def test_plotlys_own_template_is_not_sent_and_the_figure_is_not_changed():
    figure = go.Figure(
        go.Heatmap(z=np.zeros((64, 64), np.float32), colorscale=theme.SEQUENTIAL), theme.base_layout()
    )
    before = figure.to_dict()
    assert "template" not in sent(figure)["figure"]["layout"] and figure.to_dict().keys() == before.keys()
    assert len(json.dumps(sent(figure))) < 26_000  # 16 KiB of numbers in base64


def test_the_table_keeps_every_kind_of_value():
    columns = {
        "step": [1, 2],
        "loss": np.array([1.5, np.nan], np.float32),
        "token": ['a,"b', None],
        "ok": [True, False],
    }
    data = pd.DataFrame(columns)
    table = sent(go.Figure(), data)["table"]
    step, loss, token, ok = table["columns"]
    assert table["names"] == ["step", "loss", "token", "ok"] and table["rows"] == 2 and not table["cut"]
    assert numbers(step).tolist() == [1, 2] and loss["dtype"] == "f4"
    assert token == ['a,"b', None] and ok == ["True", "False"]

    as_given = columns | {"step": range(1, 3), "ok": np.array([True, False])}
    assert sent(go.Figure(), as_given)["table"] == table
    assert sent(go.Figure(), {})["table"] == {"names": [], "columns": [], "rows": 0, "cut": False}


def test_a_huge_table_is_cut_and_says_so():
    zeros = np.zeros(module.MAX_CELLS)
    table = sent(go.Figure(), pd.DataFrame({"a": zeros, "b": zeros}))["table"]
    assert table["cut"] and table["rows"] == module.MAX_CELLS // 2


def test_plain_data_is_sent_as_plotlys_own_figure_would_be():
    z = np.array([[1, 2], [3, 2**40]])
    text = np.array([["a", "b"], ["c", None]], dtype=object)
    spec = Figure(
        [Heatmap(z=z, text=text, opacity=np.float64(0.5), zmin=float("nan"))], {"showlegend": False}
    )
    trace = sent(spec)["figure"]["data"][0]
    assert (trace["type"], trace["opacity"], trace["zmin"]) == ("heatmap", 0.5, None)
    assert trace["text"] == [["a", "b"], ["c", None]]
    assert trace["z"]["shape"] == "2, 2" and numbers(trace["z"]).tolist() == [1, 2, 3, 2**40]
    assert module.packed(np.array([-3, 70_000]))["dtype"] == "i4"
    assert module.packed(np.float16([1]))["dtype"] == "f4"
    assert module.packed(np.array([True, False])) == [True, False]
    with pytest.raises(TypeError, match="object cannot be sent"):
        module.packed(object())


def test_a_changed_figure_leaves_the_first_as_it_was():
    axis = {"title": {"text": "x"}, "showgrid": False}
    first = Figure({"data": [Scatter(x=[1], y=[2], name="a")], "layout": {"xaxis": axis}})
    second = first.changed({"xaxis": {"showgrid": True}, "height": 3}, name="b")
    assert first.arrangement == {"xaxis": {"title": {"text": "x"}, "showgrid": False}}
    assert second.arrangement == {"xaxis": {"title": {"text": "x"}, "showgrid": True}, "height": 3}
    assert (first.traces[0]["name"], second.traces[0]["name"]) == ("a", "b")
