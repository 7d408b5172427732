"""Which arithmetic is chosen; one row times a matrix in each, against float64 products with weights rounded here."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.config import SampleConfig, TrainConfig
from engine.data.progress import Progress, finish
from engine.errors import ConfigError, ShapeError
from engine.model import Transformer, build
from engine.sample import Decoder, generate, steps
from engine.training import numerics
from engine.training.numerics import choose, gains_by_bfloat16, has_bfloat16
from engine.training.optim import Optimiser
from studies.generation import row_products
from studies.generation.branches import Tree, grow
from studies.generation.rounding import rounding
from studies.generation.row_products import ARITHMETICS, Arithmetic, product
from studies.generation.single_row import ready
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

IDS = (3, 1, 4, 1, 5, 9, 2, 6)
CLOSE: dict[Arithmetic, float] = {"float32": 1e-6, "bfloat16": 0.01, "int8": 2e-4}  # of the largest entry


@pytest.fixture(autouse=True)
def every_matrix_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_products, "COPY_LIMIT", 0)


@pytest.fixture(params=ARITHMETICS)
def arithmetic(request: pytest.FixtureRequest) -> Arithmetic:
    found: Arithmetic = request.param
    try:
        row_products.check_arithmetic(found, torch.device("cpu"))
    except ConfigError as error:
        pytest.skip(str(error))
    return found


def rounded(weight: np.ndarray, arithmetic: Arithmetic) -> np.ndarray:
    """A matrix as each arithmetic holds it, float64."""
    if arithmetic == "int8":
        scale = np.abs(weight).max(1, keepdims=True).astype(np.float64) / 127
        return np.round(weight / scale) * scale
    if arithmetic == "bfloat16":
        return torch.from_numpy(weight).bfloat16().double().numpy()
    return weight.astype(np.float64)


@pytest.mark.parametrize("with_bias", [False, True])
def test_a_product_is_that_of_the_rounded_matrix(arithmetic: Arithmetic, with_bias: bool) -> None:
    generator = np.random.default_rng(0)
    weight = (generator.standard_normal((70, 48)) * generator.uniform(0.1, 10, (70, 1))).astype(np.float32)
    bias = generator.standard_normal(70).astype(np.float32) if with_bias else None
    x = generator.standard_normal(48).astype(np.float32)
    x[5] = 90.0  # the outlier that a real model has
    multiply = product(torch.from_numpy(weight), None if bias is None else torch.from_numpy(bias), arithmetic)
    out = torch.empty(70)
    assert multiply(torch.from_numpy(x), out=out) is out
    kept = rounded(weight, arithmetic)
    wanted = x.astype(np.float64) @ kept.T + (0 if bias is None else bias)
    close = CLOSE[arithmetic] * np.abs(wanted).max()
    if arithmetic == "int8":
        # x is read to half a finer step, and steps are coarser on a processor without products of int8
        steps = 127 if torch.cpu._is_vnni_supported() else 63
        close = 90 / (4 * steps**2) * np.abs(kept).sum(1) + 1e-6 * np.abs(wanted).max()
    assert (np.abs(out.numpy() - wanted) < close).all()
    assert not multiply(torch.zeros(48), out=out).sub(0 if bias is None else torch.from_numpy(bias)).any()
    assert multiply(torch.full((48,), np.nan), out=out).isnan().all()


def test_a_large_matrix_is_not_copied_and_a_small_one_is_laid_out_and_never_rounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weight, x, out = torch.randn(16, 8), torch.randn(8), torch.empty(16)
    in_place = product(weight, None)
    monkeypatch.setattr(row_products, "COPY_LIMIT", 128)
    small = [product(weight, None, arithmetic) for arithmetic in ARITHMETICS]
    exact = torch.mv(weight.t().contiguous().t(), x)
    weight.zero_()
    assert not in_place(x, out=out).any() and all(torch.equal(each(x, out=out), exact) for each in small)
    wide = torch.randn(17, 8)
    rounded = product(wide, None, "bfloat16")(x, out=torch.empty(17))
    assert not torch.allclose(rounded, x @ wide.T, rtol=1e-6, atol=1e-6)


MODELS = {
    "modern": {"norm": "rmsnorm", "ffn": "swiglu", "position": "rope", "n_kv_heads": 2, "d_model": 16},
    "classic": {"ffn": "gelu", "position": "learned", "ffn_bias": True, "attention_bias": True},
    "shared": {"mixer": "shared_qk", "position": "alibi", "wiring": "parallel", "attention_bias": True},
}


def model_of(name: str) -> Transformer:
    fields = {"n_heads": 4, "tie_embeddings": False, **MODELS[name]}
    return loud(tiny(**fields), seed=1, factor=6.0)


def with_rounded_matrices(model: Transformer, arithmetic: Arithmetic) -> Transformer:
    """Its copy with every matrix but the table of the embedding rounded here."""
    other = build(model.config, device="meta").eval()
    state = model.state_dict()
    for name, x in state.items():
        if x.dim() == 2 and name != "embedding" and "positions" not in name:
            state[name] = torch.from_numpy(rounded(x.numpy(), arithmetic).astype(np.float32))
    other.load_state_dict(state, assign=True)
    return other


@pytest.mark.parametrize("name", MODELS)
@torch.inference_mode()
def test_reading_token_by_token_is_the_forward_of_the_rounded_model(
    name: str, arithmetic: Arithmetic
) -> None:
    model = model_of(name)
    decoder = Decoder(model, products=ready(model, arithmetic))
    ours = torch.stack([decoder.read([token]) for token in IDS])
    wanted = with_rounded_matrices(model, arithmetic)(torch.tensor([IDS]))[0]
    away = float((ours - wanted).abs().max())
    close = {"float32": 1e-5, "bfloat16": 0.05, "int8": 1e-3}[arithmetic]
    assert away < close * float(wanted.abs().max())
    if arithmetic == "int8":  # the model's own is farther away
        assert float((ours - model(torch.tensor([IDS]))[0]).abs().max()) > 4 * away


def test_products_are_made_once_and_shared(arithmetic: Arithmetic) -> None:
    model = model_of("modern")
    products = ready(model, arithmetic)
    held = dict(products._prepared)
    with torch.inference_mode():
        one, other = (Decoder(model, products=products) for _ in range(2))
        first = [one.read([3]), other.read([7]), one.read([1]), other.read([8])]
        alone = [Decoder(model, products=products) for _ in range(2)]
        again = [alone[0].read([3]), alone[0].read([1]), alone[1].read([7]), alone[1].read([8])]
    assert products._prepared == held
    for a, b in zip((first[0], first[2], first[1], first[3]), again, strict=True):
        assert torch.equal(a, b)


def test_generation_goes_through_the_products(arithmetic: Arithmetic) -> None:
    model, sampling = model_of("modern"), SampleConfig(temperature=0.0)
    products = ready(model, arithmetic)
    records = list(steps(model, IDS[:3], 5, sampling, products=products))
    with torch.inference_mode():
        decoder = Decoder(model, products=products)
        logits = [decoder.read(IDS[:3]), *(decoder.read([record.token]) for record in records[:-1])]
    for record, wanted in zip(records, logits, strict=True):
        assert torch.equal(record.logits, wanted)
    assert list(generate(model, IDS[:3], 5, sampling, products=products)) == [r.token for r in records]
    tree, _ = grow(Tree(IDS[:3]), model, sampling, None, 5, products)
    assert [node.token for node in tree.nodes] == [record.token for record in records]


def test_what_it_costs_is_the_difference_of_logits_and_of_the_loss(arithmetic: Arithmetic) -> None:
    model = model_of("modern")
    work = rounding(model, IDS, ready(model, arithmetic))
    assert [next(work) for _ in IDS] == [Progress(done, 8) for done in range(1, 9)]
    found = finish(work)
    with torch.inference_mode():
        decoder = Decoder(model, products=ready(model, arithmetic))
        ours = torch.stack([decoder.read([token]) for token in IDS]).double().numpy()
        exact = model(torch.tensor([IDS]))[0].double().numpy()
    assert (found.arithmetic, found.tokens) == (arithmetic, 8)
    assert found.largest == pytest.approx(np.abs(ours - exact).max(), rel=1e-4, abs=1e-6)
    assert found.mean == pytest.approx(np.abs(ours - exact).mean(), rel=1e-4, abs=1e-6)
    assert found.spread == pytest.approx(exact.std(1, ddof=1).mean(), rel=1e-4)
    told = torch.tensor(IDS[1:])
    losses = [float(F.cross_entropy(torch.from_numpy(some[:-1]), told)) for some in (exact, ours)]
    assert found.exact == pytest.approx(losses[0], abs=1e-5)
    assert found.loss == pytest.approx(losses[1], abs=1e-5)
    assert found.change == pytest.approx(losses[1] - losses[0], abs=2e-5)
    assert found.alike == (ours.argmax(1) == exact.argmax(1)).mean()
    if arithmetic != "float32":
        assert found.largest > 1e-4
    with pytest.raises(ShapeError, match="two tokens"):
        finish(rounding(model, IDS[:1], ready(model, "float32")))


def test_an_arithmetic_that_the_machine_lacks_is_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = model_of("modern")
    with pytest.raises(ConfigError, match="float32, bfloat16, int8"):
        ready(model, "float16")  # type: ignore[arg-type]
    monkeypatch.setattr(row_products, "has_bfloat16", lambda device: False)
    with pytest.raises(ConfigError, match="does not multiply bfloat16"):
        ready(model, "bfloat16")
    monkeypatch.setattr(row_products, "_has_int8", lambda: False)
    with pytest.raises(ConfigError, match="no products of int8"):
        ready(model, "int8")


CPU = torch.device("cpu")


PROCESSORS = {  # maker, what torch uses it as, bfloat16 instructions, AMX: native, and faster than float32
    ("Intel Xeon", "AVX512", True, True): (True, True),
    ("Intel Xeon", "AVX512", True, False): (True, False),  # half of float32's rate
    ("Intel Xeon", "AVX512", False, False): (False, False),
    ("Intel Xeon", "AVX2", True, True): (False, False),
    ("AMD EPYC", "AVX512", True, False): (True, True),
    ("AMD EPYC", "AVX512", False, False): (False, False),
    ("AMD EPYC", "DEFAULT", True, False): (False, False),
    ("", "AVX512", True, False): (True, True),
    ("", "AVX512", True, True): (True, True),
}


@for_each("processor", PROCESSORS)
def test_auto_takes_what_is_faster_on_each_processor(
    monkeypatch: pytest.MonkeyPatch, processor: tuple[str, str, bool, bool]
) -> None:
    maker, used_as, bfloat16, amx = processor
    native, faster = PROCESSORS[processor]
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: bfloat16)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: used_as)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"cpu_name": maker})
    monkeypatch.setattr(numerics, "onednn_is_exact", lambda: not amx)
    assert has_bfloat16(CPU) is native and gains_by_bfloat16(CPU) is faster
    assert choose("auto", CPU).dtype == (torch.bfloat16 if faster else torch.float32)
    assert choose("bfloat16", CPU).dtype == torch.bfloat16, "asked for is asked for"
    assert ("float32 would be faster" in choose("bfloat16", CPU).sentence) is not faster
    by_onednn = "Intel" not in maker and not amx
    assert choose("float32", CPU).matmul == ("medium" if by_onednn else "highest")
    optimiser = Optimiser(model_of("modern"), TrainConfig(), choose("float32", CPU))
    assert optimiser.muon_dtype == (torch.bfloat16 if faster else torch.float32)
