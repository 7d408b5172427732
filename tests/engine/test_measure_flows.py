"""What flows when, counted by a plain loop."""

from __future__ import annotations

from engine.measure.flows import flows
from tests.engine.cases import for_each


@for_each(("source", "target"), [(1, 1), (4, 3), (2, 7)])
def test_every_pair_is_looked_at_once(source, target):
    now: dict[tuple[str, str], int] = {}
    for step in range(1, target + 1):
        for family, made in flows(source, target, step).items():
            for flow in made:
                now[family, flow.name] = now.get((family, flow.name), 0) + flow.now
                assert now[family, flow.name] == flow.seen
    n = source + target - 1
    assert now == {
        ("encoder", "self"): source * source,
        ("decoder", "self"): n * (n + 1) // 2,
        ("both", "encoder"): source * source,
        ("both", "decoder"): target * (target + 1) // 2,
        ("both", "cross"): target * source,
    }
    assert all(
        flow.allowed == now[name, flow.name]
        for name, made in flows(source, target, 1).items()
        for flow in made
    )


def test_the_prompt_is_read_at_once_and_then_a_row_a_step():
    (decoder,) = flows(2, 3, 2)["decoder"]
    assert decoder.cells.tolist() == [[2, 0, 0, 0], [2, 2, 0, 0], [3, 3, 3, 0], [1, 1, 1, 1]]
    _, target, cross = flows(2, 3, 2)["both"]
    assert target.cells[1].tolist() == [3, 3, 0] and cross.cells.tolist() == [
        [2, 2],
        [3, 3],
        [1, 1],
    ]
