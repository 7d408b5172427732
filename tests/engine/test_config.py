"""Configs refuse what cannot be built, naming field, value and what is allowed."""

from __future__ import annotations

import json
import math
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import ModelConfig, TrainConfig, bpe_size
from engine.errors import CheckpointError, ConfigError, GlassformerError
from tests.engine.cases import for_each

BOTH = (ModelConfig, TrainConfig)
ANYTHING = st.from_type(None | bool | int | float) | st.text(max_size=8) | st.binary(max_size=4)


HINTS: dict[type, dict[str, Any]] = {kind: get_type_hints(kind) for kind in BOTH}
FIELDS = [(kind, name, hint) for kind in BOTH for name, hint in HINTS[kind].items()]


def _refused(config: ModelConfig | TrainConfig, field: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        config.validate()
    error = caught.value
    assert error.field == field
    assert str(error) == f"{field} = {error.value!r}: {error.allowed}"
    assert isinstance(error, GlassformerError)
    return error


@for_each(("kind", "name", "hint"), FIELDS, ids=lambda value: value if isinstance(value, str) else "")
def test_every_field_refuses_a_wrong_type(kind: type, name: str, hint: Any) -> None:
    wrong: list[Any] = [[], b"x", {}, 3 + 0j]
    kinds = get_args(hint) or (hint,)
    if get_origin(hint) is Literal:
        wrong += ["no such thing", "", 0, True, [kinds[0]]]
    else:
        more = {
            bool: [0, 1, "True"], int: [True, 4.0, "4", math.nan, 2**60], float: [True, "0.1"], str: [1, True],
        }  # fmt: skip
        wrong += more[kinds[0]]
    for value in wrong + ([] if type(None) in kinds else [None]):
        error = _refused(kind(**{name: value}), name)
        assert error.value is value


def test_numbers_and_sizes_have_a_least() -> None:
    for kind, name, hint in FIELDS:
        for value in (math.nan, math.inf, -math.inf, -1.0) if hint is float else ():
            _refused(kind(**{name: value}), name)
    for name in ("vocab_size", "context", "d_model", "n_layers", "n_heads", "n_kv_heads", "d_head", "d_ff"):
        for value in (0, -1):
            assert "at least 1" in _refused(ModelConfig(**{name: value}), name).allowed


@for_each("fields, field, says", [
    ({"d_model": 128, "n_heads": 5}, "n_heads", "must divide d_model (128)"),
    ({"n_kv_heads": 3}, "n_kv_heads", "must divide n_heads (4)"),
    ({"n_kv_heads": 8}, "n_kv_heads", "must divide n_heads (4)"),
    ({"n_kv_heads": 2, "mixer": "shared_qk"}, "n_kv_heads", "must equal n_heads (4) for mixer 'shared_qk'"),
    ({"d_head": 16, "mixer": "mean"}, "d_head", "32 for mixer 'mean'"),
    ({"d_head": 16, "output_projection": False}, "d_head", "32 without an output projection"),
    ({"position": "rope", "d_model": 36, "n_heads": 4}, "d_head", "must be even for RoPE"),
    ({"position": "rope", "rope_fraction": 0.1}, "rope_fraction", "rotate 3 of a head's 32 dimensions"),
    ({"position": "rope", "rope_fraction": 0.0}, "rope_fraction", "at least 2"),
    ({"position": "sinusoidal", "d_model": 9, "n_heads": 3}, "d_model", "must be even for sinusoidal"),
    ({"norm": "none", "norm_bias": True}, "norm_bias", "must be False"),
    ({"norm": "rmsnorm", "norm_bias": True}, "norm_bias", "no bias"),
    ({"dropout": 1.0}, "dropout", "between 0 and 0.95"),
    ({"norm": "batchnorm"}, "norm", "must be one of layernorm, rmsnorm,"),
])  # fmt: skip
def test_combinations_that_make_no_sense(fields: dict[str, Any], field: str, says: str) -> None:
    assert says in _refused(ModelConfig(**fields), field).allowed


@for_each("field, value", [
    ("steps", 0), ("batch_size", 0), ("warmup_steps", -1), ("seed", 2**31), ("seed", -1), ("beta2", 1.0),
    ("mask_rate", 0.0), ("min_lr_fraction", 1.1), ("precision", "float16"),
])  # fmt: skip
def test_trainings_that_cannot_be_run(field: str, value: Any) -> None:
    _refused(TrainConfig(**{field: value}), field)


BAD_TOKENIZERS = [
    *("", "bpe", "bpe:", "bpe:256", "bpe:65537", "bpe:-512", "bpe: 512", "bpe:512 ", "bpe:0512", "bpe:1e3"),
    *("bpe:512\n", "bpe:٥١٢", "bpe:" + "9" * 400, "Char", "words"),
]


def test_tokenizers_and_fields_that_there_are_and_are_not() -> None:
    for tokenizer in ("char", "byte", "bpe:257", "bpe:512", "bpe:65536"):
        assert TrainConfig(tokenizer=tokenizer).validate().tokenizer == tokenizer
        assert bpe_size(tokenizer) == (int(tokenizer[4:]) if ":" in tokenizer else None)
    for kind in BOTH:
        with pytest.raises(ConfigError, match="d_modle = 3: is not a field of"):
            kind.from_dict({"d_modle": 3})
    old = {name: value for name, value in TrainConfig().to_dict().items() if name != "tokenizer"}
    assert TrainConfig.from_dict(old).tokenizer == "char"
    for tokenizer in BAD_TOKENIZERS:
        assert "char, byte or bpe:V" in _refused(TrainConfig(tokenizer=tokenizer), "tokenizer").allowed


def test_derived_fields() -> None:
    resolved = ModelConfig(d_model=128, n_heads=4).resolved()
    assert (resolved.n_kv_heads, resolved.d_head, resolved.d_ff) == (4, 32, 512)
    # 8/3 of 128 is 341.3, up to a multiple of 8
    assert ModelConfig(d_model=128, ffn="swiglu").resolved().d_ff == 344
    given = {"n_kv_heads": 2, "d_head": 5, "d_ff": 7}
    assert ModelConfig(**given).resolved().to_dict().items() >= given.items()
    assert resolved.resolved() == resolved and resolved.validate() is resolved


def value(hint: Any) -> st.SearchStrategy[Any]:
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    simple = {
        bool: st.booleans(), int: st.integers(-(2**53), 2**53), float: st.floats(allow_nan=False),
        str: st.text(max_size=10), type(None): st.none(),
    }  # fmt: skip
    return st.one_of([simple[k] for k in get_args(hint) or (hint,)])


CONFIGS = {
    kind: st.fixed_dictionaries({}, optional={name: value(hint) for name, hint in HINTS[kind].items()})
    for kind in BOTH
}


@for_each("kind", BOTH)
@given(data=st.data())
def test_to_dict_and_back_through_json(kind: Any, data: st.DataObject) -> None:
    """Any field at any value of its type survives, legal or not."""
    config = kind(**data.draw(CONFIGS[kind]))
    assert kind.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@for_each("kind", BOTH)
@given(data=st.data())
def test_what_a_stranger_sends_is_accepted_or_refused_with_a_sentence(kind: Any, data: st.DataObject) -> None:
    names = st.sampled_from(list(HINTS[kind]))
    values = data.draw(st.dictionaries(names | st.text(max_size=5), ANYTHING, max_size=4))
    try:
        config = kind.from_dict(values).validate()
    except ConfigError as error:
        assert error.field in values or error.field in HINTS[kind]
    else:
        assert kind.from_dict(config.to_dict()) == config
        if kind is ModelConfig:
            config.resolved().validate()


def test_a_message_is_short_whatever_a_file_calls_itself() -> None:
    message = str(CheckpointError(f"{'x' * 10**6} is damaged"))
    assert len(message) < 1_100 and message.endswith("is damaged")
