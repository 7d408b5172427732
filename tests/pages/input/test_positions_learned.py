"""The view "Learned"."""

from __future__ import annotations

import re

import numpy as np
import pytest

from engine.config import ModelConfig, TrainConfig
from engine.measure.position_table import alike
from engine.service.state import RunSpec
from tests.pages.helpers import unescaped
from tests.pages.input.positions import CLASSIC, metrics, plain, positions, shipped
from tests.pages.stage import StageManager, view_of
from ui import course, models, state, subject

SMALL = {"d_model": 16, "n_layers": 1, "n_heads": 2, "context": 32}


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> StageManager:
    stage = StageManager()
    monkeypatch.setattr(state, "manager", lambda: stage)
    subject.st.cache_resource.clear()
    return stage


def cosines(table: np.ndarray) -> np.ndarray:
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    return unit @ unit.T


def by_distance(values: np.ndarray) -> list[float]:
    return [float(np.diagonal(values, k).mean()) for k in range(len(values))]


def nearness(values: np.ndarray) -> float:
    i, j = np.triu_indices(len(values), 1)
    return float(np.corrcoef(values[i, j], -(j - i))[0, 1])


def test_the_shipped_table_beside_the_sinusoidal_one(manager, drawn):
    page = positions("Learned")
    learned = shipped(CLASSIC).model.positions.weight.detach().double().numpy()
    angles = np.arange(128)[:, None] * 10_000.0 ** (-2 * (np.arange(128) // 2) / 128)
    waves = np.where(np.arange(128) % 2, np.cos(angles), np.sin(angles))
    tables = {"learned": learned, "sinusoidal": waves}
    likeness = {name: cosines(table) for name, table in tables.items()}
    alike_said = unescaped(page)
    for picture in ("path", "table"):
        page.get_by_key("learned_picture").set_value(picture).run()
        alike_said += unescaped(page)
    for name, table in tables.items():
        assert drawn[f"learned_table_{name}"].traces[0]["z"] == pytest.approx(table, abs=1e-4)
        assert drawn[f"learned_alike_{name}"].traces[0]["z"] == pytest.approx(likeness[name], abs=1e-4)
        path = np.stack([drawn[f"learned_path_{name}"].traces[0][axis] for axis in "xy"], axis=1)
        centred = table - table.mean(0)
        sizes = np.linalg.svd(centred, compute_uv=False)
        assert np.linalg.norm(path, axis=0) == pytest.approx(sizes[:2], rel=1e-3)
        kept = sizes**2 / (sizes**2).sum()
        assert f"({kept[1]:.1%})" in drawn[f"learned_path_{name}"].layout["yaxis"]["title"]["text"]
    assert [float(m) for m in metrics(page)] == pytest.approx(
        [nearness(v) for v in likeness.values()], abs=6e-4
    )
    curves = drawn["learned_distance"].table
    assert curves["learned_mean"] == pytest.approx(by_distance(likeness["learned"])[1:], abs=1e-4)
    assert curves["sinusoidal_mean"] == pytest.approx(by_distance(likeness["sinusoidal"])[1:], abs=1e-4)
    sd = [float(np.diagonal(likeness["learned"], k).std()) for k in range(1, 128)]
    assert curves["learned_sd"] == pytest.approx(sd, abs=1e-4)
    lengths = np.linalg.norm(learned, axis=1)
    assert drawn["learned_norms"].table["learned"] == pytest.approx(lengths, abs=1e-4)
    said = alike_said
    assert "128 × 128 = **16,384** learned numbers" in said
    assert "have found each other" in said
    assert "$\\sqrt{d/2} = 8.00$" in said
    near = by_distance(likeness["learned"])
    assert f"a cosine of **{near[1]:.2f}** on average, places 64 apart −{-near[64]:.2f}" in said
    assert f"Position 0 is {lengths[0] / np.median(lengths):.1f} times" in said
    both = [
        (np.linalg.svd(t - t.mean(0), compute_uv=False)[:2] ** 2).sum() / ((t - t.mean(0)) ** 2).sum()
        for t in tables.values()
    ]
    assert f"keep **{both[0]:.0%}** of what differs between the learned places, and {both[1]:.0%}" in said


def test_an_untrained_table_has_not_learned_what_near_is(manager):
    page = positions("learned", model="untrained-classic")
    assert abs(float(metrics(page)[0])) < 0.1
    table = models._untrained("classic").model.positions.weight.detach().double().numpy()
    near = by_distance(cosines(table))
    half = len(table) // 2
    found = re.search(
        rf"hardly more alike .* cosine of \*\*(\S+)\*\* on average, places {half} apart (\S+)\. This",
        unescaped(page),
    )
    assert found is not None
    assert [plain(x) for x in found.groups()] == pytest.approx([near[1], near[half]], abs=6e-3)


def test_the_course_over_a_run(manager, monkeypatch, drawn):
    monkeypatch.setattr(course, "SLICE_SECONDS", 0.0)
    spec = RunSpec(
        ModelConfig(**SMALL, vocab_size=30, position="learned"),
        TrainConfig(steps=40),
        corpus="python",
        name="mine",
    )
    manager.views["r"] = view_of(spec, "r", "done", snapshots=(0, 20, 40))
    page = positions("learned", model="run-r", step="20", learned_picture="table")
    assert "2 more snapshots are still to be measured" in unescaped(page) and "32 × 16" in unescaped(page)
    for _ in range(3):
        page.run()
        assert not page.exception
    assert "still to be measured" not in unescaped(page)
    found = drawn["learned_course"]
    tables = [manager.model("r", step).model.positions.weight.numpy() for step in (0, 20, 40)]
    assert found.table["step"] == [0, 20, 40]
    assert found.table["correlation"] == pytest.approx([nearness(cosines(t)) for t in tables], abs=1e-4)
    level, shown = found.layout["shapes"]
    assert level["y0"] == pytest.approx(float(metrics(page)[1]), abs=6e-4) and shown["x0"] == 20
    assert float(metrics(page)[0]) == pytest.approx(alike(tables[1]).correlation, abs=6e-4)
