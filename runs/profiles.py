"""Limits on one person and on all of them together, enforced whatever a widget allowed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from engine.config import ModelConfig, TrainConfig, bpe_size
from engine.data.corpora import training_part
from engine.errors import ConfigError, RunError, TokenizerError
from engine.parts.registry import HEALTHY, Parts, parts_of
from engine.training.batches import MAX_LOGITS
from runs.cpu_quota import cores, memory
from runs.kinds import NAMES
from studies.costs.ledger import BatchShape, activations, parameter_formula
from studies.tokens import bpe_work

if TYPE_CHECKING:
    from runs.state import RunSpec

VARIABLE = "GLASSFORMER_PROFILE"
MB, GB = 2**20, 2**30
LIBRARIES = 350 * MB  # of memory, in each process
MAX_PROMPT, MAX_SAMPLE, MAX_NAME = 2_000, 2_000, 80  # characters


@dataclass(frozen=True)
class Profile:
    """Limits on one training, on one owner, and on the whole server. Times are seconds, sizes bytes unless
    they say otherwise.
    """

    name: str
    max_parameters: int
    max_steps: int
    max_text: int  # characters of pasted or uploaded text
    max_context: int
    max_batch_tokens: int  # batch_size x context
    max_layers: int = 64
    max_heads: int = 128  # of one layer
    max_watched: int = 1_000_000  # characters of a text whose merges are watched (Tokens)
    max_vocabulary: int = 8_192  # of a bpe tokenizer
    max_merging: int = 12_000_000  # work of learning one (data.tokenizers.bpe_work): a second for 800,000
    max_runs: int = 1  # training at once; the others wait in a queue
    max_beside: int = 1  # of a pair, trained beside its other half where all places are taken
    max_queued: int = 20
    max_queued_each: int = 20  # of one owner, so that nobody fills the whole queue
    max_queued_address: int = 0  # from one network address, of however many owners; 0: no limit
    max_starts_address: int = 0  # likewise, within a minute
    max_runs_address: int = 0  # kept of one address, whatever their state; 0: no limit
    max_rooms_address: int = 0  # rooms of the stage that are open, from one address; 0: no limit
    max_answers_address: int = 0  # to one question in a room, likewise: a lecture hall often has one address
    max_tabs_address: int = 0  # open at once, likewise
    race_workers: int = 1  # processes of one race, where there are places for them
    max_race: int = 8  # runs in one race
    max_race_seconds: float = 3600.0  # of all its runs, where their budget is time
    max_paused: int = 4  # paused processes kept alive; older ones are saved and ended, and go on from there
    spares: int = 1  # warm processes beside those; with none, the next is warmed when the last has ended
    measure_workers: int = 1  # processes that measure for pages, beside those; 0: threads of the server do
    max_runs_each: int = 20  # of one owner, whatever their state
    threads_per_run: int = 1
    lease_seconds: float = 600.0  # unwatched for longer: paused
    forget_seconds: float = 24 * 3600.0  # paused or ended, and unwatched for longer: removed
    snapshot_bytes: int = 512 * MB  # on disk, of one run
    snapshot_bytes_total: int = 4 * GB  # of all runs, with their own texts
    text_bytes_total: int = GB  # own texts of all runs: on disk, and as much again in the server's memory
    max_runs_total: int = 2_000  # of all owners, whatever their state; of the ended, the oldest go first
    max_worker_bytes: int = 0  # memory of one training process; 0: no limit
    max_pretrained: int = 0  # parameters of a published model; its weights take four bytes each, for all
    max_download: int = 0  # bytes of a published model that may be fetched when a button is pressed
    may_open_files: bool = False  # of this machine, by their path
    measured_bytes: int = 512 * MB  # results that are kept for all, of quick and of slow measurements each
    loaded_bytes: int = 2 * GB  # models and texts of the server that are kept for all, those of others aside
    apart_bytes: int = 340 * MB  # the same, of each process that measures
    max_export: int = 4 * GB  # bytes of weights that are packed for a download
    public: bool = False  # strangers look at it, and are not told what its files and its code say

    @property
    def max_upload_mb(self) -> int:
        """MB (2**20 bytes) of one file: the largest model, four bytes a parameter, or the longest text."""
        return ceil(max(4 * self.max_parameters, 4 * self.max_text) / MB) + 4

    @property
    def max_message_mb(self) -> int:
        """MB (10**6 bytes) of a browser's message: the longest text, whatever its letters, or one."""
        return ceil(4 * self.max_text / 1_000_000) + 1

    @property
    def max_workers(self) -> int:
        """Processes alive at a time, whatever they do: those that train, those that wait, and the spare."""
        return self.max_runs + self.max_beside + self.max_paused + self.spares

    def threads(self, compared: bool) -> int:
        """Returns the threads of a run; two that are compared share those of one."""
        return max(1, self.threads_per_run // 2) if compared else self.threads_per_run


def _threads(cores: int) -> int:
    """A second thread makes a training 1.6 times as fast, later ones add little at these sizes. On two cores
    the page needs one: with two threads it ran at 8.4 steps a second, with one at 9.8 (benchmarks.live).
    """
    return 1 if cores <= 2 else max(2, min(4, cores // 2))


# The hosted server keeps its other core for the people who look at pages.
PROFILES: dict[str, Profile] = {
    "local": Profile(
        "local",
        max_parameters=20_000_000,
        max_steps=100_000,
        max_text=5_000_000,
        max_context=512,
        max_batch_tokens=65_536,
        max_runs=max(1, cores() - 1),
        max_runs_each=100,
        race_workers=max(1, cores() // 2),
        threads_per_run=_threads(cores()),
        max_worker_bytes=memory() * 3 // 4,
        max_pretrained=max(200_000_000, memory() // 3 // 4),
        max_download=4 * GB,
        may_open_files=True,
    ),
    "hosted": Profile(
        "hosted",
        max_parameters=4_000_000,
        max_steps=5_000,
        max_text=500_000,
        max_watched=200_000,
        max_context=256,
        max_batch_tokens=8_192,
        max_vocabulary=2_048,
        max_merging=1_600_000,
        max_runs=max(1, cores() - 1),
        max_queued_each=3,
        max_queued_address=12,
        max_starts_address=30,
        max_runs_address=180,
        max_rooms_address=8,
        max_answers_address=400,
        max_tabs_address=600,
        max_race_seconds=120.0,
        max_runs_each=12,
        lease_seconds=15.0,
        forget_seconds=1800.0,
        snapshot_bytes=128 * MB,
        snapshot_bytes_total=2 * GB,
        text_bytes_total=64 * MB,
        max_runs_total=240,
        max_worker_bytes=3 * GB // 2,
        max_pretrained=200_000_000,
        measured_bytes=192 * MB,
        loaded_bytes=192 * MB,
        apart_bytes=64 * MB,
        max_export=128 * MB,
        public=True,
    ),
    # One gigabyte for all: the server and one process, which trains, or waits for the next training.
    "small": Profile(
        "small",
        max_parameters=1_000_000,
        max_steps=5_000,
        max_text=200_000,
        max_watched=100_000,
        max_context=256,
        max_batch_tokens=2_304,
        max_vocabulary=1_024,
        max_merging=600_000,
        max_beside=0,
        max_queued=10,
        max_queued_each=2,
        max_queued_address=6,
        max_starts_address=20,
        max_runs_address=45,
        max_rooms_address=4,
        max_answers_address=200,
        max_tabs_address=100,
        max_race=4,
        max_race_seconds=60.0,
        max_paused=0,
        spares=0,
        measure_workers=0,
        max_runs_each=6,
        lease_seconds=15.0,
        forget_seconds=900.0,
        snapshot_bytes=48 * MB,
        snapshot_bytes_total=256 * MB,
        text_bytes_total=4 * MB,
        max_runs_total=60,
        max_worker_bytes=460 * MB,
        measured_bytes=24 * MB,
        loaded_bytes=48 * MB,
        max_export=16 * MB,
        public=True,
    ),
}


def current() -> Profile:
    """Returns the profile that $GLASSFORMER_PROFILE names, else `local`. Raises ConfigError for another."""
    name = os.environ.get(VARIABLE) or "local"
    if name not in PROFILES:
        raise ConfigError(VARIABLE, name, f"must be one of {', '.join(PROFILES)}")
    return PROFILES[name]


def check(profile: Profile, spec: RunSpec) -> None:
    """Raises ConfigError for a field that is wrong or too large here, RunError for a text that is."""
    model, train = spec.model.validate(), spec.train.validate()
    _check_sizes(profile, model)
    _at_most("steps", train.steps, profile.max_steps)
    _at_most("sample_length", train.sample_length, MAX_SAMPLE)
    if len(train.sample_prompt) > MAX_PROMPT:
        raise ConfigError(
            "sample_prompt", train.sample_prompt[:20] + "…", f"may have at most {MAX_PROMPT:,} characters"
        )
    check_tokenizer(profile, train.tokenizer)
    _check_text(profile, spec)
    spec.kind.check(model, train, spec.corpus)
    tokens = spec.kind.tokens(model, train, spec.corpus)
    if tokens > profile.max_batch_tokens:
        fits = max(1, profile.max_batch_tokens * train.batch_size // tokens)
        allowed = f"at most {profile.max_batch_tokens:,} are allowed here, so {fits:,} at this context"
        raise ConfigError("batch_size", train.batch_size, f"makes {tokens:,} tokens per step; {allowed}")
    _check_parameters(profile, model, spec.parameters)
    need = _need(spec)
    _check_memory(profile, need, "batch_size", train.batch_size, "would need", "batch, context or model")


def _need(spec: RunSpec) -> int:
    """Bytes of memory that a training may need, all its towers together."""
    decoder, encoder = spec.kind.stacks(spec.model, spec.corpus)
    parts = parts_of(spec.parts)
    more = 0 if encoder is None else estimate_bytes(encoder, spec.train, parts) - LIBRARIES
    return estimate_bytes(decoder, spec.train, parts) + more


def check_race(profile: Profile, specs: Sequence[RunSpec]) -> None:
    """Raises RunError for a race with more steps or memory in all than one run; as `check` for each."""
    if not 2 <= len(specs) <= profile.max_race:
        raise RunError(f"a race has 2 to {profile.max_race} runs here, not {len(specs)}")
    for spec in specs:
        check(profile, spec)
    steps = sum(spec.train.steps for spec in specs if not spec.train.seconds)
    seconds = sum(spec.train.seconds for spec in specs)
    if seconds > profile.max_race_seconds:
        raise RunError(
            f"this race takes {seconds:g} s of compute in all; at most {profile.max_race_seconds:g} are"
            " allowed here: choose fewer runs, or less time each"
        )
    if steps > profile.max_steps:
        raise RunError(
            f"this race has {steps:,} steps in all; at most {profile.max_steps:,} are allowed here: choose"
            " fewer runs, or fewer steps each"
        )
    need = LIBRARIES + sum(_need(spec) - LIBRARIES for spec in specs)
    if 0 < profile.max_worker_bytes < need:
        raise RunError(
            f"this race would need about {need / GB:,.1f} GB of memory; {profile.max_worker_bytes / GB:.1f}"
            " GB are available: choose fewer runs, or smaller ones"
        )


def check_model(profile: Profile, model: ModelConfig, parts: Parts = HEALTHY) -> None:
    """Raises ConfigError for a model that is too large to be used here, whoever trained it; one that can be
    trained can be used. Caches and patterns grow with context and heads, which have no parameters.
    """
    model = model.validate()
    _check_sizes(profile, model)
    _check_parameters(profile, model, parameter_formula(model, parts))
    need = estimate_bytes(model, TrainConfig(batch_size=1), parts)
    _check_memory(profile, need, "d_model", model.d_model, "may need", "context or model")


def _check_sizes(profile: Profile, model: ModelConfig) -> None:
    _at_most("n_layers", model.n_layers, profile.max_layers)
    _at_most("n_heads", model.n_heads, profile.max_heads)
    _at_most("context", model.context, profile.max_context)


def _check_parameters(profile: Profile, model: ModelConfig, parameters: int) -> None:
    if parameters > profile.max_parameters:
        allowed = f"at most {profile.max_parameters:,} are allowed here: make it narrower or shallower"
        raise ConfigError("d_model", model.d_model, f"makes a model of {parameters:,} parameters; {allowed}")


def _check_memory(profile: Profile, need: int, field: str, value: int, needs: str, smaller: str) -> None:
    if 0 < profile.max_worker_bytes < need:
        what = f"{needs} about {need / GB:,.1f} GB of memory with this model"
        allowed = f"{profile.max_worker_bytes / GB:.1f} GB are available: choose a smaller {smaller}"
        raise ConfigError(field, value, f"{what}; {allowed}")


def check_tokenizer(profile: Profile, tokenizer: str) -> None:
    """Raises ConfigError for a TrainConfig.tokenizer that is none, or whose vocabulary is too large here."""
    if (size := bpe_size(tokenizer) or 0) > profile.max_vocabulary:
        allowed = f"at most {profile.max_vocabulary:,} are allowed here"
        raise ConfigError("tokenizer", tokenizer, f"asks for a vocabulary of {size:,} tokens; {allowed}")


def estimate_bytes(model: ModelConfig, train: TrainConfig, parts: Parts = HEALTHY) -> int:
    """Returns a rough upper estimate of a training's bytes, all in float32: libraries, 20 a parameter
    (weights, gradients, two moments, a copy), twice what the ledger says that backward keeps (dropout's masks
    are not in it), 4 times the logits.
    """
    c = model.resolved()
    tokens = train.batch_size * c.context
    run = BatchShape(train.batch_size, c.context)
    kept = tokens * sum(each.size(4) for each in activations(c, run, parts, head=False).values())
    row = c.context * c.vocab_size
    logits = max(tokens * c.vocab_size, min(64 * row, max(MAX_LOGITS, row)))
    return LIBRARIES + 20 * parameter_formula(c, parts) + ceil(2 * kept) + 16 * logits


def _check_text(profile: Profile, spec: RunSpec) -> None:
    if spec.corpus != "text":
        if spec.corpus not in NAMES:
            raise RunError(
                f"there is no corpus {spec.corpus!r}; choose one of {', '.join(NAMES)}, or your own text"
            )
        return
    if not spec.text:
        raise RunError("there is no text to train on: paste or upload one")
    if len(spec.text) > profile.max_text:
        raise RunError(
            f"the text has {len(spec.text):,} characters; at most {profile.max_text:,} are allowed here"
        )
    if size := bpe_size(spec.train.tokenizer):
        try:
            bpe_work.check(training_part(spec.text), size, profile.max_merging)
        except TokenizerError as error:
            raise RunError(f"this text: {error}") from error


def _at_most(field: str, value: int, limit: int) -> None:
    if value > limit:
        raise ConfigError(field, value, f"must be at most {limit:,} here")
