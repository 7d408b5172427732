"""What each step of a forward pass computes, as a formula. Rows are tokens, so a weight W of PyTorch acts as
x Wᵀ.
"""

from __future__ import annotations

from engine.config import GATED, ResolvedConfig

Formula = tuple[str, str]  # LaTeX, and the same in plain signs


def formula(name: str, c: ResolvedConfig) -> Formula:
    """The formula of an activation (bare name) of a resolved configuration. Raises KeyError for a name
    without one.
    """
    special = {
        "q": _heads("q", c),
        "k": _heads("k", c),
        "v": _heads("v", c),
        "ffn_post": _activation(c),
        "scores": _scores(c),
        "position": _position(c),
    }
    if name in special:
        return special[name]
    if name in ("norm1", "norm2", "norm_final"):
        return _norm(c)
    if name in ("resid_pre", "resid_mid", "resid_post"):
        return _sum(name, c)
    return _FIXED.get(name) or _projections(name, c)


_FIXED: dict[str, Formula] = {
    "tokens": (r"t \in \{0, \dots, V-1\}^T", "the ids of the text"),
    "embed": (r"x = E[t]", "row t of the table E, for each token"),
    "mask": (r"M_{ij} = 0 \text{ if } j \le i, \text{ else } -\infty", "0 where key ≤ query, else −∞"),
    "masked_scores": (r"\mathrm{masked} = \mathrm{scores} + M", "scores + mask"),
    "pattern": (r"A_{ij} = \frac{e^{m_{ij}}}{\sum_{j'} e^{m_{ij'}}}", "softmax over key"),
    "z": (r"z = A\,v", "pattern · v, in each head"),
    "z_merged": (r"z = [z_1, \dots, z_H]", "heads laid side by side again"),
    "logits": (r"\mathrm{logits} = x\,W_U", "x · W_U"),
    "probabilities": (r"p_i = \frac{e^{\ell_i}}{\sum_j e^{\ell_j}}", "softmax over vocab"),
    "ffn_gate": (r"\mathrm{gate} = x\,W_G", "the first half of that product: the gate"),
}


def _projections(name: str, c: ResolvedConfig) -> Formula:
    bias, plus = (r" + b", " + b") if c.attention_bias else ("", "")
    last, then = (bias, plus) if c.output_bias else ("", "")
    ffn, wide = (r" + b", " + b") if c.ffn_bias else ("", "")
    table = {
        "pos_embed": (
            (r"p_t = P[t]", "row t of the position table P")
            if c.position == "learned"
            else (
                r"p_{t,2i} = \sin\frac{t}{10000^{2i/d}},\; p_{t,2i+1} = \cos\frac{t}{10000^{2i/d}}",
                "sines and cosines of the position",
            )
        ),
        "qkv_flat": (
            rf"[q, k, v] = x\,[W_Q, W_K, W_V]{bias}",
            f"x · [W_Q, W_K, W_V]{plus}, one product for all three",
        ),
        "qkv_heads": (r"(d) \to (H, d_{head})", "split into q, k, v, and each into heads"),
        "qk_flat": (rf"q = k = x\,W_{{QK}}{bias}", f"x · W_QK{plus}: queries and keys are the same"),
        "qk_heads": (r"(d) \to (H, d_{head})", "split into heads"),
        "v_flat": (rf"v = x\,W_V{bias}", f"x · W_V{plus}"),
        "v_heads": (r"(d) \to (H, d_{head})", "split into heads"),
        "x_heads": (r"(d) \to (H, d_{head})", "split into heads; there are no matrices"),
        "q_rot": _turned("q", c),
        "k_rot": _turned("k", c),
        "attn_out": (
            (rf"\mathrm{{out}} = z\,W_O{last}", f"z · W_O{then}")
            if c.output_projection and c.mixer in ("attention", "shared_qk")
            else (r"\mathrm{out} = [z_1, \dots, z_H]", "heads laid side by side again")
        ),
        "ffn_in": (
            rf"[\mathrm{{gate}}, u] = x\,[W_G, W_1]{ffn}",
            f"x · [W_G, W₁]{wide}, one product for both",
        ),
        "ffn_pre": (
            (r"u = x\,W_1", "the second half of that product")
            if c.ffn in GATED
            else (rf"u = x\,W_1{ffn}", f"x · W₁{wide}")
        ),
        "ffn_out": (rf"\mathrm{{out}} = h\,W_2{ffn}", f"h · W₂{wide}"),
    }
    return table[name]


def _heads(name: str, c: ResolvedConfig) -> Formula:
    return (
        rf"{name}: (T, H, d_{{head}}) \to (H, T, d_{{head}})",
        f"{name}, with its heads in front: each works alone",
    )


def _turned(name: str, c: ResolvedConfig) -> Formula:
    inner, words = (
        (rf"\frac{{{name}}}{{\mathrm{{rms}}({name})}}", f"{name} scaled to length √d_head")
        if c.qk_norm
        else (name, name)
    )
    if c.position != "rope":
        return inner, words
    part, width = (
        (f", the first {c.d_rotary} of {c.d_head} dimensions", f"{c.d_rotary}")
        if c.rope_fraction < 1
        else ("", "d_{head}")
    )
    return (
        rf"R(t\,\theta)\,{inner},\quad \theta_i = {c.rope_theta:g}^{{-2i/{width}}}",
        f"{words}, its pairs turned by position × frequency{part}",
    )


def _scores(c: ResolvedConfig) -> Formula:
    latex, words = (
        (r"\mathrm{scores} = 0", "all alike")
        if c.mixer == "mean"
        else (r"\mathrm{scores} = \frac{q\,k^\top}{\sqrt{d_{head}}}", "q · kᵀ / √d_head")
    )
    if c.n_kv_heads < c.n_heads:
        words += f"; {c.n_heads // c.n_kv_heads} query heads share a key head"
    if c.position == "alibi":
        return latex + r" - m_h\,|i - j|", words + " − slope · distance"
    return (
        (latex + r" + b_h(i - j)", words + " + bias for the distance")
        if c.position == "t5"
        else (latex, words)
    )


def _position(c: ResolvedConfig) -> Formula:
    return {
        "rope": (r"\cos(t\,\theta_i),\ \sin(t\,\theta_i)", "cosines and sines, for turning q and k"),
        "alibi": (r"-m_h\,|i - j|", "− slope · distance, for each head"),
        "t5": (r"b_h(\mathrm{bucket}(i - j))", "a learned number for each distance"),
    }.get(c.position, ("", ""))


def _norm(c: ResolvedConfig) -> Formula:
    gain, by = (r"g \odot ", "g · ") if c.norm_gain else ("", "")
    bias, plus = (" + b", " + b") if c.norm_bias else ("", "")
    if c.norm == "rmsnorm":
        return rf"{gain}\frac{{x}}{{\sqrt{{\overline{{x^2}} + \epsilon}}}}", f"{by}x / rms(x)"
    return rf"{gain}\frac{{x - \mu}}{{\sqrt{{\sigma^2 + \epsilon}}}}{bias}", f"{by}(x − mean) / spread{plus}"


def _sum(name: str, c: ResolvedConfig) -> Formula:
    if name == "resid_pre":
        return r"x = \mathrm{embed} + \mathrm{pos\_embed}", "embed + pos_embed"
    if name == "resid_post" and c.wiring == "parallel":
        return r"x \leftarrow x + \mathrm{attn\_out} + \mathrm{ffn\_out}", "stream + attn_out + ffn_out"
    update = "attn_out" if name == "resid_mid" else "ffn_out"
    return rf"x \leftarrow x + \mathrm{{{update.replace('_', chr(92) + '_')}}}", f"stream + {update}"


def _activation(c: ResolvedConfig) -> Formula:
    named = {
        "relu": (r"h = \max(0, u)", "max(0, u)"),
        "relu2": (r"h = \max(0, u)^2", "max(0, u)²"),
        "gelu": (r"h = u\,\Phi(u)", "u · Φ(u)"),
        "gelu_tanh": (r"h = u\,\Phi(u) \text{ (tanh form)}", "u · Φ(u), by tanh"),
        "swiglu": (r"h = \mathrm{SiLU}(\mathrm{gate}) \odot u", "SiLU(gate) · u"),
        "geglu": (r"h = \mathrm{GELU}(\mathrm{gate}) \odot u", "GELU(gate) · u"),
    }
    return named.get(c.ffn, ("", ""))
