"""The KV cache: its bytes, and the work that it saves."""

from __future__ import annotations

from random import Random

from studies.exercises.exercise import Exercise, mistakes, see
from studies.exercises.forms import Numbers

MIB = 2**20


def size(rng: Random) -> Exercise:
    layers, kv, wide = rng.choice([12, 16, 24, 32]), rng.choice([2, 4, 8]), rng.choice([64, 128])
    heads, length, width = kv * rng.choice([2, 4]), rng.choice([1024, 2048, 4096]), rng.choice([2, 4])
    numbers = 2 * layers * kv * wide * length
    result = numbers * width / MIB
    return Exercise(
        f"{layers} layers, {heads} query heads that share {kv} KV heads of {wide} numbers. How many MB"
        f" ($2^{{20}}$ bytes) does the KV cache of one text of {length:,} tokens take, at {width} bytes per"
        " number?",
        Numbers(1, 1, "MB"),
        (result,),
        (
            f"Keys *and* values: $2 \\cdot L \\cdot H_{{kv}} \\cdot d_{{head}}$ = 2 · {layers} · {kv} ·"
            f" {wide} = {2 * layers * kv * wide:,} numbers per token.",
            f"Times {length:,} tokens times {width} bytes = {numbers * width:,} bytes.",
            f"Divided by 1,048,576: **{result:,.1f} MB**.",
        ),
        mistakes(
            ((result / 2,), "You forgot the factor 2: both keys and values are cached."),
            ((result * heads / kv,), "You counted query heads. Only the KV heads are cached."),
            ((result / width,), f"That is the count of numbers. Each takes {width} bytes."),
            ((result / layers,), "That is only one layer. Every layer has its own cache."),
            ((numbers * width / 1e6,), "You divided by a million. Here 1 MB is $2^{20}$ bytes."),
            ((result / kv,), "That is only one KV head. All of them are cached."),
        ),
        see("generation", generation_view="cache"),
        {"layers": layers, "kv": kv, "wide": wide, "heads": heads, "length": length, "width": width},
    )


def rows(rng: Random) -> Exercise:
    prompt, new = rng.randint(5, 60), rng.randint(5, 60)
    naive = sum(prompt + step for step in range(new))
    kept = prompt + new - 1
    return Exercise(
        f"After a prompt of {prompt} tokens, {new} new tokens are written one by one, **without** a KV cache."
        " How many rows of keys does one layer compute in all? (The last new token is never read.)",
        Numbers(),
        (naive,),
        (
            f"For the first new token it reads {prompt} tokens, for the next {prompt + 1}, for the last"
            f" {prompt + new - 1}.",
            f"Their sum: {new} · ({prompt} + {prompt + new - 1}) / 2 = **{naive:,}**. With a cache: {kept}.",
        ),
        mistakes(
            ((kept,), "That is *with* a cache: each token's key is computed once."),
            ((new * (prompt + new),), "The text is not that long from the start: it grows token by token."),
            ((naive + new,), "Off by one: the first new token needs only the prompt."),
            ((naive - new * prompt,), "The prompt is read again at every step too."),
            ((new * prompt,), "The new tokens are read too: the text grows."),
        ),
        see("generation", generation_view="cache"),
        {"prompt": prompt, "new": new},
    )


def latent(rng: Random) -> Exercise:
    layers, heads, wide = rng.choice([24, 36, 48, 60]), rng.choice([16, 32, 64, 128]), rng.choice([64, 128])
    rank, turned = rng.choice([256, 384, 512]), rng.choice([32, 64])
    result = layers * (rank + turned) * 2
    return Exercise(
        f"{layers} layers with multi-head latent attention (MLA), {heads} heads of {wide} numbers. Each layer"
        f" caches a latent vector of {rank} numbers, and a key of {turned} that RoPE rotates. How many bytes"
        " does a token add to the cache, at 2 bytes per number?",
        Numbers(1, 1, "bytes"),
        (result,),
        (
            f"A layer holds {rank} + {turned} = {rank + turned} numbers, however many heads there are.",
            f"Times {layers} layers times 2 bytes = **{result:,} bytes**. Keys and values of {heads} heads"
            f" would be 2 · {heads} · {wide} = {2 * heads * wide:,} numbers a layer.",
        ),
        mistakes(
            ((2 * result,), "Keys and values are made of one latent vector: there is no factor 2."),
            ((layers * rank * 2,), "You forgot the rotated key, which is cached beside the latent vector."),
            ((result / 2,), "That is the count of numbers. Each takes 2 bytes."),
            ((result / layers,), "That is only one layer. Every layer has a latent vector of its own."),
            ((layers * 2 * heads * wide * 2,), "That is multi-head attention, which caches every head."),
            ((result * heads,), "All heads share the latent vector: it is cached once."),
        ),
        see("attention", attention_view="shared-keys", attention_sharing="published"),
        {"layers": layers, "heads": heads, "wide": wide, "rank": rank, "turned": turned},
    )


def few_bits(rng: Random) -> Exercise:
    layers, kv, wide = rng.choice([12, 16, 24, 30]), rng.choice([2, 3, 4, 8]), rng.choice([64, 128])
    bits = rng.choice([2, 4, 8])
    each, whole = wide * bits // 8 + 4, 2 * wide
    result = 2 * layers * kv * each
    return Exercise(
        f"A model of {layers} layers and {kv} KV heads of {wide} numbers caches keys and values rounded to"
        f" **{bits} bits** a number. Each vector also keeps its scale and its minimum, 2 bytes each. How many"
        " bytes does a token take?",
        Numbers(),
        (result,),
        (
            f"A vector: {wide} · {bits} / 8 = {wide * bits // 8} bytes, and 4 for scale and minimum: {each}.",
            f"A key and a value for each head and layer: 2 · {layers} · {kv} · {each} = **{result:,}**; with"
            f" 16 bits it would be {2 * layers * kv * whole:,}.",
        ),
        mistakes(
            (
                (2 * layers * kv * (each - 4),),
                "You left out scales and minima: without them no number comes back.",
            ),
            ((result / 2,), "You forgot the factor 2: both keys and values are cached."),
            ((2 * layers * kv * (wide * bits + 4),), "A byte has eight bits."),
            ((2 * layers * kv * whole,), "That is the cache with 16 bits a number."),
            ((2 * kv * each,), "That is only one layer. Every layer has its own cache."),
        ),
        see("generation", generation_view="cache", kv_part="smaller"),
        {"layers": layers, "kv": kv, "wide": wide, "bits": bits},
    )


TASKS = (
    ("size", "The cache's bytes", size),
    ("rows", "Without a cache", rows),
    ("few-bits", "A cache in few bits", few_bits),
    ("latent", "A latent cache", latent),
)
