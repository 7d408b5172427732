"""What the app keeps for the next who looks has a bound: a server lives for weeks, and strangers choose the keys."""

import ast
from collections.abc import Iterable, Iterator

import pytest

from tests import source

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


def kept(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.FunctionDef, str, dict[str, ast.expr]]]:
    """Functions whose results are kept, what keeps them, and what it was told."""
    for function in nodes:
        for each in function.decorator_list if isinstance(function, ast.FunctionDef) else ():
            call = each.func if isinstance(each, ast.Call) else each
            name = call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "")
            if name in ("cache_resource", "cache_data", "lru_cache", "cache"):
                told = (
                    {word.arg or "": word.value for word in each.keywords}
                    if isinstance(each, ast.Call)
                    else {}
                )
                yield function, name, told


def endless(nodes: Iterable[ast.AST]) -> list[str]:
    """Of those the ones that grow with what is asked."""
    return [
        function.name
        for function, name, told in kept(nodes)
        if not {"max_entries", "maxsize"} & set(told)
        and not (name == "lru_cache" and not told)  # 128
        and function.args.args + function.args.kwonlyargs
    ]


def test_every_cache_has_a_bound() -> None:
    found = {name: path for path in source.EVERYTHING for name in endless(source.nodes(path))}
    wrong = [f"{source.name(found[name])}: {name}" for name in sorted(found.keys() - FEW.keys())]
    assert not wrong, "\n".join(wrong)
    assert not FEW.keys() - found.keys(), "these are gone, or have a bound"


@pytest.mark.parametrize(
    ("code", "grows"),
    [
        ("@st.cache_resource(show_spinner=False)\ndef f(a): ...", True),
        ("@st.cache_data\ndef f(a): ...", True),
        ("@cache\ndef f(*, a): ...", True),
        ("@lru_cache(maxsize=8)\ndef f(a): ...", False),
        ("@st.cache_resource(max_entries=8)\ndef f(a): ...", False),
        ("@st.cache_resource\ndef f(): ...", False),
    ],
)
def test_what_grows_is_noticed(code: str, grows: bool) -> None:
    assert endless(ast.walk(ast.parse(code))) == (["f"] if grows else [])
