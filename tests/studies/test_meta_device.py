"""Passes on the meta device without PyTorch's compiler: the compiler's answers, and its modules afterwards."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PASSES = """
import json, sys, threading
import torch
from torch.nn import functional as F
from studies.costs.meta_device import SYMBOLS, plain_sizes

def shapes():
    x = torch.ones(2, 1, 6, device="meta")
    ids = torch.zeros(3, dtype=torch.int64, device="meta")
    made = [
        x + torch.ones(5, 1, device="meta"), torch.arange(0, 9, 2, device="meta") * 0.5, x.softmax(-1), x.expand(2, 4, 6).reshape(8, 6),
        F.layer_norm(x, (6,)), F.embedding(ids, x[0]), torch.cat([x, x], 1), x.unsqueeze(0).transpose(1, 3), x.topk(3).values, x.sum((0, 2)),
    ]
    return [[list(each.shape), str(each.dtype), list(each.stride())] for each in made]

def there():
    return [name for name in ("sympy", "torch._dynamo", SYMBOLS) if name in sys.modules]

said = {}
with plain_sizes():
    with plain_sizes():
        said["without"] = shapes()
    again = shapes()
    try:
        with plain_sizes():
            torch.ones(2, 3, device="meta") + torch.ones(2, 4, device="meta")
    except RuntimeError as error:
        said["refused"] = str(error)
said["again"] = again == said["without"]
said["left"] = there()
# another thread wants the compiler itself, meanwhile
with plain_sizes():
    def compiler():
        import sympy
        import torch._dynamo
        said["compiler"] = [str(sympy.sqrt(8)), callable(torch._dynamo.optimize), issubclass(sympy.Symbol, sympy.Basic)]
    thread = threading.Thread(target=compiler)
    thread.start()
    thread.join()
    said["beside"] = shapes() == said["without"]
said["with"] = shapes()
with plain_sizes():
    said["after"] = shapes() == said["with"]
held = torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
said["compiles"] = held.tolist()
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said() -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", PASSES], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_shapes_are_those_that_the_compiler_gives(said: dict[str, object]) -> None:
    assert said["without"] == said["with"]
    assert said["again"] and said["after"] and said["left"] == []
    assert "must match" in str(said["refused"]) or "broadcast" in str(said["refused"])


def test_who_wants_the_compiler_itself_gets_it(said: dict[str, object]) -> None:
    assert said["compiler"] == ["2*sqrt(2)", True, True]
    assert said["beside"] and said["compiles"] == [2.0, 2.0]
