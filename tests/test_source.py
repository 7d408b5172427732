"""What the source may hold: imports that go down only, caches with a bound, no dead names, no arithmetic on a page."""

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

from engine.additions import ADDING
from tests import source
from tests.source import ENGINE, EVERYTHING, ROOT, SCREEN

# engine <- studies <- runs <- ui <- pages: a module imports from its own folder and from those before it. Of two names that
# fit, the longer counts: experiments are commands that start runs, guesses and the inventory replay what these stored.
RANK = {
    "engine": 0,
    "studies": 1,
    "studies.experiments.command": 1,
    "runs": 2,
    "studies.experiments": 3,
    "studies.guesses": 3,
    "studies.inventory": 3,
    "ui": 4,
    "pages": 5,
    "app": 6,
}
# Topics of studies/ -> those that they may import; experiments, guesses and the inventory are about all of them.
TOPICS = {
    "after": "generation tasks",
    "attention": "circuits costs",
    "circuits": "attention residual weights",
    "costs": "pairs",
    "exercises": "costs lab shapes",
    "families": "attention pairs tasks",
    "feedforward": "costs residual",
    "generation": "attention circuits costs pairs",
    "home": "costs residual",
    "lab": "costs experiments residual",
    "pairs": "generation tasks",
    "positions": "attention costs embeddings",
    "residual": "costs",
    "shapes": "costs pairs residual",
    "tasks": "after attention lab",
    "tokens": "costs",
    "weights": "costs pairs tokens",
}
FOREIGN = {"streamlit", "plotly"}
UNSAFE = {"pickle", "shelve", "marshal", "dill", "joblib", "multiprocessing"}
TRUSTING = {"runs/service.py": {"multiprocessing"}}  # between processes of one user, as it says


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path) for path in EVERYTHING}


@cache
def imports(path: Path) -> frozenset[str]:
    """The modules that one imports when it runs: not those for annotations alone."""
    found: set[str] = set()
    typing = {
        inner
        for node in source.nodes(path)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for body in node.body
        for inner in ast.walk(body)
    }
    for node in source.nodes(path):
        if node in typing:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative imports hide the direction"
            assert node.module is not None
            inside = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES
            found |= inside or {node.module}
    return frozenset(found)


def rank(module: str) -> int:
    """
    >>> rank("studies.costs.flops"), rank("studies.guesses.order")
    (1, 3)
    """
    parts = module.split(".")
    ends = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next(RANK[name] for name in ends if name in RANK)


def ours(names: frozenset[str]) -> set[str]:
    return {name for name in names if name.partition(".")[0] in RANK}


def test_engine_imports_no_screen_and_nothing_that_unpickles() -> None:
    forbidden = FOREIGN | {"ui", "pages", "app", "tests", "benchmarks"}
    wrong = []
    for path in ENGINE:
        tops = {name.partition(".")[0] for name in imports(path)}
        bad = tops & (forbidden | UNSAFE) - TRUSTING.get(source.name(path), set())
        wrong += [f"{source.name(path)} imports {top}" for top in sorted(bad)]
    assert not wrong, "\n".join(wrong)


def test_imports_go_down_only() -> None:
    up = {
        (module_of(path), name)
        for path in EVERYTHING
        for name in ours(imports(path))
        if rank(name) > rank(module_of(path))
    }
    assert not up, f"upwards: {sorted(up)}"


def test_pages_compute_with_no_tensors() -> None:
    wrong = [source.name(path) for path in source.files("pages") if "torch" in imports(path)]
    assert not wrong, f"move to studies/ what these do with tensors: {wrong}"


def test_topics_import_only_those_that_are_declared() -> None:
    found: dict[str, set[str]] = {}
    for path in source.files("studies"):
        own, *_ = module_of(path).split(".")[1:] or [""]
        others = {name.split(".")[1] for name in imports(path) if name.startswith("studies.")} - {own}
        if others and own not in ("experiments", "guesses", "inventory"):
            found.setdefault(own, set()).update(others)
    assert found == {name: set(others.split()) for name, others in TOPICS.items()}


def test_controls_own_the_address() -> None:
    """A page reads and writes it by `ui.widgets` alone."""
    pages = [path for path in EVERYTHING if module_of(path).startswith("pages.")]
    wrong = [source.name(path) for path in pages if "query_params." in source.text(path)]
    wrong += [source.name(path) for path in pages if "query_params[" in source.text(path)]
    assert pages and not wrong, "\n".join(wrong)


def test_no_page_imports_from_another() -> None:
    wrong = []
    for path in source.files("pages"):
        own = module_of(path)
        others = (name for name in imports(path) if name.startswith("pages.") and room(name) != room(own))
        wrong += [f"{own} imports {name}: what both pages need belongs to ui/" for name in sorted(others)]
    assert not wrong, "\n".join(wrong)


def room(module: str) -> str:
    """The page that a module of pages/ belongs to.

    >>> room("pages.inside.attention.heads")
    'inside.attention'
    """
    return ".".join(module.split(".")[1:3])


def test_no_modules_import_each_other() -> None:
    graph = {module_of(path): imports(path) & MODULES for path in EVERYTHING}
    TopologicalSorter(graph).prepare()


def test_modules_of_ui_are_used_by_several_pages() -> None:
    screen = [*SCREEN, ROOT / "glassformer" / "cli.py"]
    users = {name: {module_of(path) for path in screen if name in imports(path)} for name in MODULES}

    def rooms(module: str, seen: frozenset[str] = frozenset()) -> set[str]:
        """The pages that use a module, also through others of ui/; app.py counts as one, and the command."""
        via = (rooms(user, seen | {module}) for user in users[module] - seen if user.startswith("ui"))
        return {room(user) for user in users[module] if not user.startswith("ui")}.union(*via)

    modules = (
        name for name in MODULES if name.startswith("ui.") and not (ROOT / name.replace(".", "/")).is_dir()
    )
    few = {name: found for name in modules if len(found := rooms(name)) < 2 and not found <= {"", "cli"}}
    assert not few, "\n".join(f"{name} belongs to {found}" for name, found in few.items())


def printed(script: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", script]
    return subprocess.check_output(command, cwd=ROOT, env=environment, text=True).splitlines()


def test_configs_need_no_torch() -> None:
    script = "import engine.config, engine.presets, engine.errors, sys; print('torch' in sys.modules)"
    assert printed(script) == ["False"]


def test_who_reads_the_model_or_the_trainer_meets_few_files() -> None:
    """And nothing that is not the engine's."""
    script = """if True:
        import sys
        def met(): return sorted(name for name in sys.modules if name.startswith(("engine", "studies", "runs")))
        import engine.model; print(*met()); import engine.training.train; print(*met())"""
    model, trainer = (line.split() for line in printed(script))
    assert len(model) <= 17 and len(trainer) <= 32, (model, trainer)
    assert all(name.startswith("engine") for name in trainer)


def test_the_engine_works_alone() -> None:
    """It trains, writes, saves and loads where no other library of ours can be imported."""
    script = """if True:
        import sys, tempfile
        from dataclasses import replace
        sys.modules |= dict.fromkeys(("studies", "runs", "ui", "pages"))  # any import of them raises
        from engine import checkpoints
        from engine.data import corpora
        from engine.presets import SMALL
        from engine.sample import complete
        from engine.training.train import fit
        text, preset = corpora.from_text("to be or not to be, that is the question " * 20), SMALL["classic"]
        model = replace(preset.model, vocab_size=text.vocab_size, context=16, d_model=16)
        found = fit(model, replace(preset.train, steps=2, eval_every=1, sample_length=4), text, device="cpu")
        with tempfile.TemporaryDirectory() as folder:
            checkpoints.save(folder, found.model, found.tokenizer, found.metrics)
            again = checkpoints.load(folder)
        zipped = checkpoints.unpack(checkpoints.pack(again.model, again.tokenizer, again.metrics))
        written = [complete(each.model, each.tokenizer, "to", 8, 0.0, seed=0) for each in (found, again, zipped)]
        print(len(set(written)), len(written[0]), *corpora.names())"""
    assert printed(script) == ["1 8 shakespeare python"]


def test_a_worker_knows_every_part_and_every_corpus() -> None:
    """However few modules it has imported."""
    script = """if True:
        import runs.worker
        from engine.data import corpora
        from engine.parts.registry import parts_of
        print(parts_of("unscaled_scores").name, "sort" in corpora.names())"""
    assert printed(script) == ["unscaled_scores True"]


def test_the_engine_names_nothing_above_it() -> None:
    """Not even for annotations; and what adds to one of its modules is there."""
    named = [
        f"{source.name(path)}: {name}"
        for path in source.files("engine")
        for node in source.nodes(path)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
        )
        if name and name.partition(".")[0] in RANK and not name.startswith("engine")
    ]
    assert not named, "\n".join(named)
    import_module("studies")
    assert ADDING and {*ADDING, *ADDING.values()} <= MODULES


# Kept for each argument, of which there are few whoever asks, and why
FEW = {
    "_cpu_rate": "threads and precisions that a profile allows",
    "shipped": "the files of the repository",
    "baselines": "the files of the repository",
    "square": "the models of the repository",
    "shelf": "one folder",
    "ways": "sizes of the synthetic tasks",
    "resolve": "names in the modules of the engine",
    "_text": "modules",
    "_tree": "modules",
    "_sources": "the synthetic tasks",
    "_source": "functions and classes of the engine",
    "_listing": "functions of the engine, by the lines of them that a model runs",
    "mounted": "components, by how a page mounts them",
}


def endless(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The functions with arguments whose cache has no bound."""
    for function in (node for node in nodes if isinstance(node, ast.FunctionDef)):
        for each in function.decorator_list:
            call = each.func if isinstance(each, ast.Call) else each
            name = call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "")
            bounds = {word.arg for word in each.keywords} if isinstance(each, ast.Call) else set()
            unbound = name in ("cache_resource", "cache_data", "cache") or (name == "lru_cache" and bounds)
            if unbound and not bounds & {"max_entries", "maxsize"} and _arguments(function):
                yield function.name


def _arguments(function: ast.FunctionDef) -> list[ast.arg]:
    return function.args.args + function.args.kwonlyargs


def test_every_cache_has_a_bound() -> None:
    found = {name: path for path in source.EVERYTHING for name in endless(source.nodes(path))}
    wrong = [f"{source.name(found[name])}: {name}" for name in sorted(found.keys() - FEW.keys())]
    assert not wrong, "\n".join(wrong)
    assert not FEW.keys() - found.keys(), "these are gone, or have a bound"


COUNTED = {  # caches of Streamlit, which count results: all others are `ui.memo`'s, in bytes
    "_pretrained": "models of others, of at most Profile.max_pretrained, whose weights are mapped from a file",
    "_held": "the keys and values of a large model's text, of at most its context, changed as it is read",
    "refusals": "sentences, for two minutes",
    "_failures": "sentences, for ten minutes",
    "_cpu_rate": "a number for each number of threads",
}


def test_every_cache_of_the_pages_is_bounded_in_bytes() -> None:
    found = {
        node.name
        for path in source.EVERYTHING
        for node in source.nodes(path)
        if isinstance(node, ast.FunctionDef)
        and any("st.cache_" in ast.unparse(each) for each in node.decorator_list)
    }
    assert found == COUNTED.keys()


REGISTERS = {"fault", "variant"}  # of studies.lab.faults: decorators that enter what they decorate in a table
SPARE = {
    "save_hugging_face": "for notebooks: docs/python.md",
    "write_pair": "what an encoder-decoder writes for a source; for notebooks",
}


def named(nodes: Iterable[ast.AST]) -> list[str]:
    found = []
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.append(node.id)
        elif isinstance(node, ast.Attribute):
            found.append(node.attr)
        elif isinstance(node, ast.alias):
            found.append(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return found


def defined(tree: ast.Module) -> list[str]:
    """Every function, class and constant at the top of a module, but for what a decorator registers.

    >>> defined(ast.parse("A = 1\\ndef f(): pass\\nclass C: pass"))
    ['f', 'C', 'A']
    """
    found = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not registered(node.decorator_list)
    ]
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found += [target.id for target in targets if isinstance(target, ast.Name)]
    return [name for name in found if not name.startswith("__")]


def registered(decorators: list[ast.expr]) -> bool:
    calls = [each.func for each in decorators if isinstance(each, ast.Call)]
    return any(isinstance(call, ast.Name) and call.id in REGISTERS for call in calls)


def test_everything_that_is_defined_is_used() -> None:
    used = Counter(name for path in EVERYTHING for name in named(source.nodes(path)))
    unused = {
        name: f"{source.name(path)} defines {name}"
        for path in EVERYTHING
        for name in defined(source.tree(path))
        if not used[name]
    }
    dead = [words for name, words in unused.items() if name not in SPARE]
    assert not dead, "\n".join(dead)
    stale = SPARE.keys() - unused.keys()
    assert not stale, f"these are used, or gone: {sorted(stale)}"


STATISTICS = set(
    [
        "argmax",
        "argmin",
        "average",
        "corrcoef",
        "cumprod",
        "cumsum",
        "fmean",
        "log_softmax",
        "mean",
        "median",
        "nanmean",
        "nanmedian",
        "nansum",
        "percentile",
        "prod",
        "quantile",
        "softmax",
        "std",
        "stdev",
        "sum",
        "var",
    ]
)
IN_SENTENCES = STATISTICS | {"exp", "nanmin", "nanmax"}
REDUCES_ARRAYS = {"min", "max"}  # as methods; as functions they choose the place of a label
# A count of bytes, clients or labels is not about a model, so `sum(...)` itself stays free.
LAYOUT = {  # function -> what it lays out
    "pages.input.positions.maps.table_map": "the end of the colours",
    "pages.input.positions.learned._flat": "both axes equally long",
    "pages.input.positions.learned._outside": "the side of a label",
    "pages.inside.attention.steps.parts_figure": "the edges of the matrices",
    "pages.lab.ladder.scaling_laws.growth": "the middle of a logarithmic axis",
    "ui.figures.losses._run_range": "the end of the axis",
    "ui.figures.losses.label_anchor": "curves under a label",
}


def statistics_in(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """(function, line, call) of what a module's functions reduce: `x.mean()`, `np.median(x)`, and `median(x)`
    unless the engine has it; in the braces of an f-string also maxima, powers and `sum(...)`.

    >>> [call for *_, call in statistics_in(ast.parse("def f(x): return x.mean() + sum(x) + x.max()"))]
    ['x.mean()']
    >>> [call for *_, call in statistics_in(ast.parse("f'{x.sum():.2f} {max(a, b)} {x.max()} {math.exp(a)}'"))]
    ['x.sum()', 'x.max()', 'math.exp(a)']
    """
    froms = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    ours = {
        "sum",
        *(
            a.name
            for node in froms
            if (node.module or "").startswith(("engine", "studies", "runs"))
            for a in node.names
        ),
    }
    braces = (node for node in ast.walk(tree) if isinstance(node, ast.FormattedValue))
    in_sentences = {node for each in braces for node in ast.walk(each.value)}
    for top in tree.body:
        for call in (node for node in ast.walk(top) if isinstance(node, ast.Call)):
            method = isinstance(call.func, ast.Attribute)
            name = getattr(call.func, "attr" if method else "id", "")
            reduces = name in STATISTICS and (method or name not in ours)
            shown = name in IN_SENTENCES or (method and name in REDUCES_ARRAYS)
            if reduces or (shown and call in in_sentences):
                yield getattr(top, "name", ""), call.lineno, ast.unparse(call)


def test_numbers_of_the_subject_are_computed_in_the_engine() -> None:
    computed = {
        (f"{module_of(path)}.{function}", f"{source.name(path)}:{line} {call}")
        for path in source.SCREEN
        for function, line, call in statistics_in(source.tree(path))
    }
    wrong = sorted(where for function, where in computed if function not in LAYOUT)
    assert not wrong, "\n".join(wrong)
    assert LAYOUT.keys() == {function for function, _ in computed}, "a function of LAYOUT reduces nothing"


BEGINNINGS = ("Of", "That", "Those", "What", "Whether", "Who", "Whoever", "As")


def other_words(pattern: str) -> frozenset[str]:
    """What the last column of the tables in docs/terms.md says not to write: names in `code`, phrases in “quotes”."""
    rows = [line.split("|") for line in (ROOT / "docs" / "terms.md").read_text().splitlines()]
    return frozenset(re.findall(pattern, " ".join(row[3] for row in rows if len(row) == 5)))


def words(name: str) -> list[str]:
    """
    >>> words("BlockStack"), words("one_hot_rows"), words("KvCache2")
    (['block', 'stack'], ['onehot', 'rows'], ['kv', 'cache2'])
    """
    return re.findall(
        "[a-z0-9]+", re.sub("([a-z0-9])([A-Z])", r"\1_\2", name).lower().replace("one_hot", "onehot")
    )


Documented = ast.Module | ast.ClassDef | ast.FunctionDef


def public(tree: ast.Module | ast.ClassDef) -> Iterator[Documented]:
    """A module or a class, its public functions and classes, and theirs; `__init__`, too."""
    yield tree
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public(node)
        elif isinstance(node, ast.FunctionDef) and (node.name == "__init__" or node.name[0] != "_"):
            yield node


def signature(node: Documented) -> list[str]:
    """The name of a function or class, and those of its arguments or fields.

    >>> signature(ast.parse("class Node: depth: int; kept: bool").body[0])
    ['Node', 'depth', 'kept']
    """
    if isinstance(node, ast.FunctionDef):
        return [node.name, *(each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg))]
    fields = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
    names = [each.id for each in fields if isinstance(each, ast.Name)]
    return [node.name, *names] if isinstance(node, ast.ClassDef) else []


def test_names_are_the_terms_of_the_docs() -> None:
    banned = other_words(r"`(\w+)`")
    wrong = [
        f"{source.name(path)}: {name} ({', '.join(sorted(bad))})"
        for path in EVERYTHING
        for name in [*path.relative_to(ROOT).with_suffix("").parts, *signatures(path)]
        if (bad := banned & set(words(name)))
    ]
    assert not wrong, "docs/terms.md has other words:\n" + "\n".join(wrong)


def test_sentences_use_the_terms_of_the_docs() -> None:
    phrases = sorted(other_words("“(.+?)”"))
    assert {"torn between", "by heart"} <= set(phrases)
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, phrases)) + r")\b", re.IGNORECASE)
    docs = [
        (name, " ".join((ROOT / name).read_text("utf-8").split())) for name in ("README.md", "CHANGELOG.md")
    ]
    wrong = [
        f"{where}: {match[1]} (“{string[max(0, match.start() - 30) : match.end() + 30]}”)"
        for where, string in [*source.shown(), *docs]
        for match in pattern.finditer(string)
    ]
    assert not wrong, "docs/terms.md has other words:\n" + "\n".join(wrong)


def signatures(path: Path) -> Iterator[str]:
    for node in public(source.tree(path)):
        yield from signature(node)


def sentences(docstring: str) -> list[str]:
    """Splits a docstring at . ! ? : and ; before a blank.

    >>> sentences("Returns a. Of\\nb: c.")
    ['Returns a.', 'Of\\nb:', 'c.']
    """
    return re.split(r"(?<=[.!?:;])\s+", docstring)


def test_no_sentence_of_a_docstring_begins_with_a_clause() -> None:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    wrong = [
        f"{source.name(path)}:{getattr(node, 'lineno', 1)}: {sentence}"
        for path in EVERYTHING
        for node in source.nodes(path)
        if isinstance(node, documented)
        for sentence in sentences(ast.get_docstring(node) or "")
        if re.split(r"\W", sentence, maxsplit=1)[0] in BEGINNINGS
    ]
    assert not wrong, "\n".join(wrong)
