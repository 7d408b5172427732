"""Models that are small enough to be trained live, with the reason beside an odd choice."""

from __future__ import annotations

from engine.config import ModelConfig, TrainConfig
from engine.presets.preset import Preset, derived

_CLASSIC = Preset(
    "Classic (GPT-2 style)",
    "Learned positions, LayerNorm before each sublayer, GELU, tied embeddings, trained with AdamW.",
    ModelConfig(
        context=64,
        position="learned",
        norm="layernorm",
        ffn="gelu",
        attention_bias=True,
        ffn_bias=True,
        norm_bias=True,
    ),
    TrainConfig(
        steps=1000,
        batch_size=12,
        learning_rate=2e-3,
        schedule="linear",
        min_lr_fraction=0.0,
        eval_every=50,
        eval_tokens=8192,
        sample_every=50,
        look_early=True,
        snapshot_every=50,
        snapshot_early=True,
    ),
    why={
        "learning_rate": "small models take a higher rate than GPT-2's: 0.002 instead of 0.0006",
        "schedule": "in a short run, linear decay to zero ends lower than cosine",
    },
    source="Radford et al. 2019, scaled down",
)

SMALL: dict[str, Preset] = {
    "fast": derived(
        _CLASSIC,
        "Fast",
        "From noise to Shakespeare in 220 steps: narrower than classic, with everything that makes short runs"
        " learn faster.",
        model={
            "d_model": 96,
            "n_heads": 2,
            "d_ff": 288,
            "position": "rope",
            "rope_theta": 200.0,
            "ffn": "relu2",
            "norm_bias": False,
            "qk_norm": True,
            "qk_gain": True,
            "attention_bias": False,
            "ffn_bias": False,
        },
        train={
            "steps": 220,
            "batch_size": 18,
            "optimizer": "muon",
            "muon_momentum": 0.85,
            "learning_rate": 6e-3,
            "weight_decay": 0.0,
            "warmup_steps": 5,
            "eval_every": 20,
            "eval_tokens": 4096,
            "sample_every": 20,
            "snapshot_every": 10,
        },
        # Losses on the whole validation split, by `python -m benchmarks.recipes`, which trains each of these
        # again. Those "at classic's sizes" (200 steps, without gains, seed 0: the command's "before") and of
        # twice the width come from an earlier search.
        why={
            "d_model": (
                "fewer operations: 847·10⁹ in all, where classic's sizes took 1,693·10⁹ for 200 steps, with"
                " about the same loss on held-out text, 1.862 instead of 1.859 (means of three seeds, `python"
                " -m benchmarks.recipes`)"
            ),
            "n_heads": ("tried at classic's sizes: two heads gave 1.844, four 1.853, eight 1.891"),
            "d_ff": (
                "three times the width instead of four; tried with 200 steps: twice the width gave 1.886 to"
                " 1.891, three times 1.874 to 1.882"
            ),
            "qk_norm": "bounds the attention scores, so that the high learning rate is safe",
            "qk_gain": (
                "so that scores can still get sharp; tried at classic's sizes: 1.844, without it 1.853"
            ),
            "position": "RoPE needs no table to be learned first",
            "rope_theta": "a low base, as it sees only 64 characters",
            "ffn": "squared ReLU is as cheap as ReLU, and learns faster",
            "steps": (
                "with 200 the three seeds ended at 1.874, 1.874 and 1.882; these twenty more bring all of"
                " them below 1.87"
            ),
            "batch_size": (
                "windows of 64; tried at classic's sizes: 12 windows in 240 steps gave 1.894, 24 in 150"
                " 1.887, 18 in 200 1.855"
            ),
            "optimizer": (
                "Muon gives every direction of a weight matrix an update of the same size: far more progress"
                " per step than with AdamW"
            ),
            "muon_momentum": "tried with 200 steps: 0.9 gave 1.882, 0.85 1.877 (means of three seeds)",
            "muon_learning_rate": "tried at classic's sizes: 0.03 gave 1.862, 0.02 1.853",
            "learning_rate": "for the embedding alone (AdamW)",
            "schedule": (
                "linear decay to zero over the whole budget, so that the last steps settle instead of jumping"
                " about"
            ),
            "tie_embeddings": "tried at classic's sizes: untied gave 1.870, tied 1.853",
        },
        source=(
            "Jordan et al. 2024 (Muon); So et al. 2021 (squared ReLU); Henry et al. 2020 (QK-norm); Su et al."
            " 2021 (RoPE)"
        ),
    ),
    "classic": _CLASSIC,
    "modern": derived(
        _CLASSIC,
        "Modern (LLaMA style)",
        "Rotary positions, RMSNorm, SwiGLU, no biases: the standard parts of most models since 2023.",
        model={
            "position": "rope",
            "norm": "rmsnorm",
            "ffn": "swiglu",
            "tie_embeddings": False,
            "attention_bias": False,
            "ffn_bias": False,
            "norm_bias": False,
        },
        why={
            "d_ff": "8/3 of d_model instead of 4: SwiGLU has three matrices, so the parameters stay the same",
            "position": "queries and keys are rotated by position, so the score depends only on the distance",
        },
        source="Touvron et al. 2023, scaled down",
    ),
    "mini": derived(
        _CLASSIC,
        "The lab's model",
        "4 layers, 4 heads, width 128, context 128, ReLU, dropout 0.1 and no biases in the matrices: the"
        " model that a coding lab builds, 813,440 parameters.",
        model={
            "context": 128,
            "d_ff": 512,
            "ffn": "relu",
            "dropout": 0.1,
            "attention_bias": False,
            "ffn_bias": False,
        },
        train={
            "steps": 2000,
            "batch_size": 32,
            "eval_every": 100,
            "sample_every": 100,
            "snapshot_every": 100,
        },
        source="the lab that this app goes with (2026); no paper",
    ),
    "nanogpt": derived(
        _CLASSIC,
        "The lecture's nanoGPT",
        "6 layers, 6 heads, width 192, context 256, GELU, untied embeddings: 2,743,680 parameters, a"
        " lecture's model in 80 lines. The largest here, and slow on a CPU.",
        model={"context": 256, "d_model": 192, "n_layers": 6, "n_heads": 6, "tie_embeddings": False},
        train={
            "learning_rate": 1e-3,
            "beta2": 0.95,
            "warmup_steps": 100,
            "eval_every": 100,
            "sample_every": 100,
            "snapshot_every": 100,
        },
        why={
            "learning_rate": "a wider model takes smaller steps: 0.001 instead of 0.002",
            "beta2": "as the lecture advises",
        },
        source="github.com/karpathy/nanoGPT (2022)",
    ),
    "induction": derived(
        _CLASSIC,
        "Induction (watch heads form)",
        "Two layers; a third of the text's windows repeat themselves. First a previous-token head forms;"
        " then an induction head forms abruptly, and the loss on repeated text falls.",
        model={
            "d_model": 96,
            "n_layers": 2,
            "d_ff": 256,
            "ffn": "relu2",
            "norm_gain": False,
            "norm_bias": False,
            "attention_bias": False,
            "ffn_bias": False,
        },
        train={
            "steps": 600,
            "repeat": 0.35,
            "batch_size": 36,
            "optimizer": "muon",
            "muon_momentum": 0.9,
            "learning_rate": 6e-3,
            "weight_decay": 0.0,
            "warmup_steps": 5,
            "eval_every": 20,
            "eval_tokens": 4096,
            "sample_every": 100,
            "snapshot_every": 20,
        },
        why={
            "repeat": (
                "in ordinary text little recurs within 64 characters: tried without repeats, after 600 steps"
                " a head read the previous character (0.60 of its weight), and none copied (0.03). With 0.3"
                " heads that copy formed after 480 to 520 steps, with 0.35 after 360 to 400, with 0.4 after"
                " 300 to 320 (three seeds each), in all nine runs after the previous-token head"
            ),
            "n_layers": (
                "an induction head needs a previous-token head in an earlier layer, so at least two layers"
            ),
            "steps": "about half a minute, and some 200 steps after the induction head has formed",
            "context": "tried: with 24 windows of 96, as many characters per step, no head copied",
            "d_model": "tried: 64 wide, heads of 16 numbers: neither formed in 600 steps (0.43 and 0.28)",
            "position": (
                "with learned positions a head can look one position back whatever the token is, so it forms"
                " before it is needed. Tried for 600 steps: RoPE 0.21 and no copying, sinusoids 0.48, none;"
                " with ALiBi copying at step 380 from a smear of the last few characters (0.24). Where half"
                " of the windows repeat, RoPE formed both, the copying first (steps 500 and 560)"
            ),
            "qk_norm": (
                "scores of normalised queries and keys sharpen slowly in heads this narrow: with it the"
                " two formed after 320 and 540 steps"
            ),
            "optimizer": "tried: with AdamW alone, at 0.002, neither formed in 600 steps (0.17 and 0.03)",
            "batch_size": "as many characters per step as 24 windows of 96",
        },
        source="Olsson et al. 2022 (induction heads); Jordan et al. 2024 (Muon)",
    ),
    "task": derived(
        _CLASSIC,
        "Task (small and sharp)",
        "Two layers, 64 wide: enough to copy, reverse, sort and add. Choose a task under Data.",
        model={
            "context": 25,
            "d_model": 64,
            "n_layers": 2,
            "position": "rope",
            "rope_theta": 1000.0,
            "ffn": "relu2",
            "norm_gain": False,
            "norm_bias": False,
            "attention_bias": False,
            "ffn_bias": False,
        },
        train={
            "steps": 400,
            "batch_size": 48,
            "optimizer": "muon",
            "muon_momentum": 0.9,
            "learning_rate": 6e-3,
            "weight_decay": 0.0,
            "warmup_steps": 5,
            "eval_every": 25,
            "eval_tokens": 4096,
            "sample_every": 100,
            "sample_length": 110,
            "snapshot_every": 50,
        },
        why={
            "context": "as long as the longest problem; *Settings that solve it* sets it for the task",
            "n_layers": "copying the next character needs a previous-token head in the layer below",
            "steps": (
                "tried, seed 0: Reverse had 99% of the held-out problems right after 100 of 400 steps,"
                " addition with the last digit first 95% after 200 of 800, with the first digit first 90%"
                " after 350"
            ),
        },
        source="Jordan et al. 2024 (Muon); Su et al. 2021 (RoPE)",
    ),
    "experts": derived(
        _CLASSIC,
        "Experts (mixture, balanced by a bias)",
        "Eight small feed-forward networks in the place of one, and one that every character meets: more"
        " parameters for the same work.",
        model={
            "d_model": 96,
            "d_ff": 96,
            "position": "rope",
            "ffn": "relu2",
            "norm_bias": False,
            "norm_gain": False,
            "attention_bias": False,
            "ffn_bias": False,
            "n_experts": 8,
            "active_experts": 2,
            "shared_experts": 1,
            "balance": "bias",
        },
        train={
            "steps": 240,
            "batch_size": 32,
            "learning_rate": 3e-3,
            "weight_decay": 0.0,
            "warmup_steps": 20,
            "eval_every": 40,
            "eval_tokens": 4096,
            "sample_every": 80,
            "snapshot_every": 40,
        },
        why={
            "d_ff": "a character meets three of them: as much work as a single network of 288",
            "steps": "as many as *Experts* shows: about 40 s of processor time",
        },
        source="Shazeer et al. 2017; Wang et al. 2024 (bias); Dai et al. 2024 (shared expert)",
    ),
    "grokking": derived(
        _CLASSIC,
        "Grokking (memorises, then generalises)",
        "One layer and strong weight decay: on Modular addition it memorises its training sums long before it"
        " finds the rule.",
        model={
            "context": 6,
            "d_model": 64,
            "n_layers": 1,
            "ffn": "relu",
            "tie_embeddings": False,
            "attention_bias": False,
            "ffn_bias": False,
        },
        train={
            "steps": 1500,
            "batch_size": 256,
            "optimizer": "muon",
            "learning_rate": 5e-3,
            "weight_decay": 0.5,
            "beta2": 0.98,
            "warmup_steps": 10,
            "eval_every": 50,
            "eval_tokens": 0,
            "sample_every": 500,
            "sample_length": 60,
            "snapshot_every": 250,
        },
        why={
            "weight_decay": (
                "the rule needs smaller weights than the lookup table; tried with Muon at a constant rate,"
                " 40% held out: 0.1 gave 54% of the new sums after 500 steps, 0.5 gave 76%, 1.5 gave 70%"
            ),
            "optimizer": (
                "tried with AdamW at 0.002, half of the sums held out, weight decay 1: it solved all its"
                " training sums after 200 steps, but only 22% to 26% of the others up to step 1,800; with"
                " Muon and 0.3 it solved 59% of the others after 300"
            ),
            "tie_embeddings": ("a number that is read and a number that is written have separate vectors"),
        },
        source="Power et al. 2022",
    ),
}
