"""The measured lines of why decoders won, held against counts by hand."""

from __future__ import annotations

import json

import pytest

from engine.ledger.morph import Size, three
from engine.training.reasons import at_work, interface, lessons, pair_writing, writing


def test_a_decoder_learns_at_every_place():
    found = lessons(64, 0.15)
    assert (found.decoder, found.both) == (64, 32)
    assert found.encoder == pytest.approx(9.6, abs=0.2) and found.times == pytest.approx(64 / found.encoder)
    assert lessons(33, 0.5).both == 17 and lessons(33, 0.5).encoder == pytest.approx(16.5, abs=0.3)


def test_work_of_writing_by_hand():
    """One layer, 8 wide: 24 d² a token in products, 4 n d for scores and sums, 2 V d at the end."""
    made = three(Size(1, 8, 2), vocab=10, context=16)["decoder"]

    def token(n):
        return 24 * 64 + 4 * n * 8 + 2 * 10 * 8

    found = writing(made, 3, 2)
    assert found.kept == 3 * token(3) + token(4) and found.again == 3 * token(3) + 4 * token(4)
    assert found.times == found.again / found.kept > 1


def test_work_of_both_by_hand():
    """One layer each, 8 wide: 16 d² for the encoder's network, 8 d² for four matrices of an attention."""
    made = three(Size(1, 8, 2), vocab=10, context=16)["both"]
    source, d = 3, 8
    reading = source * (24 * d * d + 4 * source * d)
    keys_and_values = source * 4 * d * d
    written = sum(
        24 * d * d + 4 * n * d + (4 * d * d + 4 * source * d) + 2 * 10 * d for n in range(1, source + 1)
    )
    assert pair_writing(made, source) == reading + keys_and_values + written


def test_half_of_the_third_waits():
    made = three(Size(2, 16, 2), vocab=50, context=8)["both"]
    encoder = 2 * (12 * 256 + 2 * 16) + 8 * 16 + 16
    assert at_work(made) == 1 - encoder / made.total
    assert at_work(three(Size(2, 16, 2))["decoder"]) == 1


def test_the_shipped_tasks_and_a_folder_of_ours(tmp_path):
    for name, share in (("a", 0.75), ("b", 0.5)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.json").write_text(
            json.dumps({"solved": {"train": 1, "validation": share}})
        )
    assert (interface(tmp_path).tasks, interface(tmp_path).least) == (2, 0.5)
    assert interface().tasks == 9 and interface().least == 0.991
