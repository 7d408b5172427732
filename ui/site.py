"""The pages there are, in one list: the router builds the navigation from it, the map finds its links in
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Entry:
    """A page. `explains` are the parts of the home page's map (ids of `pages.start.home.map_parts`) that lead
    to it; `also` are others that it shows without being about them.
    """

    section: str
    file: str  # below pages/
    title: str
    icon: str
    url: str
    help: str
    explains: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[str, ...]:
        """The parts of the map that are seen on this page."""
        return self.explains + self.also

    @property
    def path(self) -> str:
        """The path as `st.Page` and `st.switch_page` want it: relative to app.py."""
        return f"pages/{self.file}"


HOME = "pages/start/home/page.py"
EVERY_PART = ("tokens", "embedding", "position", "attention", "feedforward", "unembedding", "softmax")

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "Start",
        "start/home/page.py",
        "Home",
        ":material/home:",
        "",
        "A running Transformer: your text, its residual stream, its next token.",
    ),
    Entry(
        "Start",
        "start/courses/page.py",
        "Courses",
        ":material/route:",
        "courses",
        "Guided courses: one scene after another, on the pages themselves.",
    ),
    Entry(
        "Start",
        "start/train/page.py",
        "Train",
        ":material/play_circle:",
        "train",
        "Train a small Transformer and watch it learn to write.",
        also=EVERY_PART,
    ),
    Entry(
        "Text to vectors",
        "input/tokens/page.py",
        "Tokens",
        ":material/text_fields:",
        "tokens",
        "How text is split into tokens: BPE merge by merge, and tokenizers compared.",
        ("tokens",),
    ),
    Entry(
        "Text to vectors",
        "input/embeddings/page.py",
        "Embeddings",
        ":material/scatter_plot:",
        "embeddings",
        "A vector for each token: the lookup, the map, the neighbours.",
        ("embedding",),
    ),
    Entry(
        "Text to vectors",
        "input/positions/page.py",
        "Positions",
        ":material/schedule:",
        "positions",
        "How a Transformer knows the order of its tokens: six ways, compared.",
        ("position",),
    ),
    Entry(
        "Inside",
        "inside/shapes/page.py",
        "Shapes",
        ":material/view_in_ar:",
        "shapes",
        "The forward pass, step by step, with every shape.",
        (
            "tokens",
            "embedding",
            "position",
            "unembedding",
            "softmax",
            "norm1",
            "norm2",
            "norm_cross",
            "norm_final",
        ),
        ("attention", "feedforward"),
    ),
    Entry(
        "Inside",
        "inside/attention/page.py",
        "Attention",
        ":material/hub:",
        "attention",
        "Every head of every block: which token attends to which, and why.",
        ("attention",),
    ),
    Entry(
        "Inside",
        "inside/crossattention/page.py",
        "Cross-attention",
        ":material/compare_arrows:",
        "crossattention",
        "Two texts: how the decoder attends to the encoder's output, and which mask belongs where.",
        ("cross_attention", "memory"),
        ("attention",),
    ),
    Entry(
        "Inside",
        "inside/residual/page.py",
        "Residual stream",
        ":material/stacked_line_chart:",
        "residual",
        "What each block writes, and which one settles the prediction.",
        ("sum_position", "sum_attention", "sum_cross_attention", "sum_feedforward", "sum_both"),
    ),
    Entry(
        "Inside",
        "inside/feedforward/page.py",
        "Feed-forward",
        ":material/memory:",
        "feedforward",
        "The neurons: what activates them and what they promote.",
        ("feedforward",),
    ),
    Entry(
        "Inside",
        "inside/circuits/page.py",
        "Circuits",
        ":material/account_tree:",
        "circuits",
        "Famous experiments on a real model: what happens when its activations are changed.",
        also=("attention", "feedforward", "sum_attention"),
    ),
    Entry(
        "Vectors to text",
        "output/sampling/page.py",
        "Sampling",
        ":material/casino:",
        "sampling",
        "From logits to one token: temperature, top-k, top-p and the draw.",
        ("softmax",),
    ),
    Entry(
        "Vectors to text",
        "output/generation/page.py",
        "Generation",
        ":material/edit_note:",
        "generation",
        "Token by token, with branches, the KV cache and beam search.",
        also=("tokens", "softmax"),
    ),
    Entry(
        "Lab",
        "lab/ladder/page.py",
        "Ladder",
        ":material/stairs:",
        "ladder",
        "From a bigram model to a Transformer, one idea per rung, and what each contributes.",
        also=EVERY_PART,
    ),
    Entry(
        "Lab",
        "lab/faults/page.py",
        "Bug lab",
        ":material/bug_report:",
        "bugs",
        "What each bug costs, what it looks like, and which checks catch it.",
        also=EVERY_PART,
    ),
    Entry(
        "Lab",
        "lab/tasks/page.py",
        "Tasks",
        ":material/task_alt:",
        "tasks",
        "Copy, sort, add: tasks whose answers can be checked and whose lowest possible loss is known.",
        also=("attention", "softmax"),
    ),
    Entry(
        "Lab",
        "lab/after/page.py",
        "After pre-training",
        ":material/school:",
        "after",
        "What a trained model learns next: a fact, a task from its prompt, writing out its steps.",
        also=EVERY_PART,
    ),
    Entry(
        "Models",
        "models/parameters/page.py",
        "Parameters",
        ":material/table_chart:",
        "parameters",
        "Where a model's parameters, FLOPs and memory are.",
        also=EVERY_PART,
    ),
    Entry(
        "Models",
        "models/families/page.py",
        "Families",
        ":material/family_history:",
        "families",
        "Encoder, decoder, or both, and the few choices that turn one model into another.",
        also=EVERY_PART,
    ),
    Entry(
        "Models",
        "models/reference/page.py",
        "Reference",
        ":material/difference:",
        "reference",
        "What each part computes, two programs with the same weights, and export of any model.",
        also=EVERY_PART,
    ),
    Entry(
        "Learn",
        "learn/exercises/page.py",
        "Exercises",
        ":material/edit_square:",
        "exercises",
        "Pen and paper: numbers, shapes and proofs, with hints that name the mistake, and a worksheet to"
        " print.",
        also=EVERY_PART,
    ),
)


def entry_of(url: str) -> Entry | None:
    """Returns the page at this address."""
    return next((entry for entry in ENTRIES if entry.url == url), None)


def built() -> list[Entry]:
    """Returns the entries whose file is there. A page that is not built yet is simply absent."""
    return [entry for entry in ENTRIES if (ROOT / entry.path).is_file()]


def explanations() -> dict[str, str]:
    """Returns part of the map -> path of the page that explains it: a page about that part, else Shapes,
    which shows them all.
    """
    everything = "inside/shapes/page.py"
    pages = sorted(
        built(), key=lambda entry: entry.file != everything
    )  # a page about the one part goes over Shapes
    return {part: entry.path for entry in pages for part in entry.explains}


def icons() -> str:
    """Returns the style that draws each page's icon before its name in the menu, in a font that is there."""
    names = ((entry.url, entry.icon.removeprefix(":material/").removesuffix(":")) for entry in built())
    return "\n".join(
        f'[data-testid="stSidebarNavLink"][href$="/{url}"]::before {{ content: "{name}" / ""; }}'
        for url, name in names
    )
