"""Would a test notice if this line were wrong? Breaks lines of the engine and the views, one at a time, and asks their tests.

    python -m tests.mutants PATTERN ... [--draw 100] [--results FILE]      mutants of files, or 100 of them by lot
    python -m tests.mutants --sample tests/mutants.tsv [--results FILE]    a stored sample, or --draw some of it
    ... --draw 300 --write FILE                                            store them as a sample, and run nothing
    ... --killers OLD                                                      ask first the test that killed it in these results

A tool, not a part of `make test`. A pattern is a path, or one with wildcards in quotes: 'pages/**/words*.py'. cosmic-ray says what
can be changed in a file and how; `tests/judging.py` runs the tests. Lists the survivors with file and line, then counts by package.
With --results, each outcome is kept as a line of JSON, and a run that was interrupted goes on where it was.

Left out, since no test can see it: annotations, docstrings, decorators (caches, inference_mode, frozen), what stands under
TYPE_CHECKING, and `is` for `==` between constants; since none should hold it: sizes, margins, shades and tick distances of a figure;
and the lists of views in page.py, which Streamlit reads from the disk.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from tests.judging import ROOT, Judge

UNSEEN = {"RemoveDecorator"} | {
    f"ReplaceComparisonOperator_{pair}" for pair in ("Is_Eq", "IsNot_NotEq", "Eq_Is", "NotEq_IsNot")
}
ANNOTATED = (ast.arg, ast.AnnAssign)
# Arguments and keys of a figure whose numbers are a matter of taste, or only decide whether a zoom is kept
LAID_OUT = {
    *("ax", "ay", "bargap", "domain", "dtick", "font", "height", "len", "legend", "margin", "nticks"),
    *("opacity", "points", "shade", "showlegend", "size", "standoff", "textfont", "thickness", "tickangle"),
    *("tickfont", "uirevision", "width", "wrap", "xshift", "yshift", "zeroline"),
}


@dataclass(frozen=True)
class Mutant:
    """The `nth` place where `operator` applies on lines that read `text` in function `where` of `file`."""

    file: str
    operator: str
    where: str  # the function's qualified name; empty for the module's own lines
    text: str
    nth: int


@dataclass(frozen=True)
class Place:
    mutant: Mutant
    occurrence: int  # cosmic-ray's number, for this text of the file
    line: int
    column: int


@cache
def _source(file: str) -> str:
    return (ROOT / file).read_text("utf-8")


def _operator(name: str):  # type: ignore[no-untyped-def]  # cosmic-ray has no types
    return get_operator(f"core/{name}")()


@cache
def _operators() -> tuple[str, ...]:
    names = (name.removeprefix("core/") for name in operator_names())
    return tuple(n for n in names if n not in UNSEEN and not get_operator(f"core/{n}").arguments())


def functions(source: str) -> dict[int, str]:
    """The innermost function of each line that lies in one, by qualified name.

    >>> functions("class A:\\n  def f(self):\\n    return 1\\nB = 2")
    {2: 'A.f', 3: 'A.f'}
    """
    found: dict[int, str] = {}

    def walk(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            inside = name
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inside = f"{name}.{child.name}".lstrip(".")
                if not isinstance(child, ast.ClassDef):
                    found.update(dict.fromkeys(range(child.lineno, (child.end_lineno or 0) + 1), inside))
            walk(child, inside)

    walk(ast.parse(source), "")
    return found


class _Effective(ast.NodeTransformer):
    def visit(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return None
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return None
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.decorator_list = []
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ANNOTATED):
            node.annotation = ast.Name("_") if isinstance(node, ast.AnnAssign) else None
        return self.generic_visit(node)


class _EffectiveInFigures(_Effective):
    def visit(self, node: ast.AST) -> ast.AST | None:
        named = [(node.arg, node.value)] if isinstance(node, ast.keyword) else []
        if isinstance(node, ast.Dict):
            named = [
                (getattr(key, "value", ""), value) for key, value in zip(node.keys, node.values, strict=True)
            ]
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "colour":
            named = [("shade", value) for value in node.args[1:]]
        for name, value in named:
            for part in ast.walk(value) if name in LAID_OUT else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, int | float):
                    part.value = 0
        return super().visit(node)


def effective(source: str, file: str = "") -> str:
    """A module's syntax, without what changes no result.

    >>> effective("@cache\\ndef f(x: int): return x") == effective("def f(x: str): return x")
    True
    >>> effective("def f(x=1): return x") == effective("def f(x=2): return x")
    False
    >>> effective("f(size=1)", "pages/a/b/figures.py") == effective("f(size=-2)", "pages/a/b/figures.py")
    True
    >>> effective("colour('run0', 25)", "pages/a.py") == effective("colour('run0', 26)", "pages/a.py")
    True
    """
    tree = ast.parse(source)
    (_EffectiveInFigures() if file.startswith("pages/") else _Effective()).visit(tree)
    return ast.dump(tree).replace("UnaryOp(op=USub(), operand=Constant(value=0))", "Constant(value=0)")


def places(file: str, operators: Iterable[str] = ()) -> list[Place]:
    """All that can be changed in a file, or by some operators, in order of operator and place."""
    source = _source(file)
    tree, lines, inside = get_ast(source), source.splitlines(), functions(source)
    seen: Counter[tuple[str, str, str]] = Counter()
    found = []
    nodes = list(ast_nodes(tree))
    for name in operators or _operators():
        operator = _operator(name)
        spots = (start for node in nodes for start, _end in operator.mutation_positions(node))
        for occurrence, (line, column) in enumerate(spots):
            where, text = inside.get(line, ""), lines[line - 1].strip()
            mutant = Mutant(file, name, where, text, seen[name, where, text])
            seen[name, where, text] += 1
            found.append(Place(mutant, occurrence, line, column))
    return found


def mutated(place: Place) -> str | None:
    source = _source(file := place.mutant.file)
    changed = mutate_code(source, _operator(place.mutant.operator), place.occurrence)
    try:
        return changed if changed and effective(changed, file) != effective(source, file) else None
    except SyntaxError:
        return None


def files_of(patterns: Iterable[str]) -> list[str]:
    found = {pattern: list(ROOT.glob(pattern)) for pattern in patterns}
    if missing := [pattern for pattern, paths in found.items() if not paths]:
        sys.exit(f"There is no {missing[0]}.")
    files = {
        file
        for paths in found.values()
        for path in paths
        for file in (path.rglob("*.py") if path.is_dir() else [path])
    }
    return sorted(file.relative_to(ROOT).as_posix() for file in files if file.name != "page.py")


def drawn(files: Sequence[str], number: int, seed: int) -> list[Place]:
    """Mutants by lot: each place in the code alike, and one mutant for a place however many operators apply to it."""
    spots: dict[tuple[str, int, int], list[Place]] = {}
    for file in files:
        for place in places(file):
            spots.setdefault((file, place.line, place.column), []).append(place)
    dice = random.Random(seed)
    found: list[Place] = []
    for key in dice.sample(sorted(spots), len(spots)):
        place = dice.choice(spots[key])
        if mutated(place) is not None:
            found.append(place)
        if len(found) == number:
            break
    return found


def stored(path: Path) -> list[Mutant]:
    rows = (line.split("\t") for line in path.read_text("utf-8").splitlines() if not line.startswith("#"))
    return [
        Mutant(file, operator, where, text, int(nth))
        for file, nth, operator, where, text in ((f, n, o, w, t) for f, w, o, n, t in rows)
    ]


def store(path: Path, found: Sequence[Mutant]) -> None:
    rows = ["# file, function, cosmic-ray's operator, which of several on such lines, the line's text"]
    rows += ["\t".join((m.file, m.where, m.operator, str(m.nth), m.text)) for m in found]
    path.write_text("\n".join(rows) + "\n", "utf-8")


def located(wanted: Sequence[Mutant]) -> Iterator[tuple[Mutant, Place | None]]:
    """Where the mutants of a sample are now; None for one whose line is no longer there."""
    operators: dict[str, set[str]] = {}
    for mutant in wanted:
        operators.setdefault(mutant.file, set()).add(mutant.operator)
    here = (file for file in operators if (ROOT / file).is_file())
    at = {place.mutant: place for file in here for place in places(file, operators[file])}
    for mutant in wanted:
        yield mutant, at.get(mutant)


def change(place: Place, text: str) -> str:
    before, after = _source(place.mutant.file).splitlines(), text.splitlines()
    pairs = [(old.strip(), new.strip()) for old, new in zip(before, after, strict=False) if old != new]
    old, new = pairs[0] if pairs else (place.mutant.text, "")
    return f"{old}  ->  {new}"


def kept(results: Path | None) -> dict[Mutant, dict[str, Any]]:
    lines = results.read_text("utf-8").splitlines() if results and results.exists() else []
    return {Mutant(**row["mutant"]): row for row in map(json.loads, lines)}


def judged(
    wanted: Sequence[tuple[Mutant, Place | None]], results: Path | None, killers: Path | None
) -> list[dict[str, Any]]:
    known, before = kept(results), kept(killers)
    judge = Judge()
    for number, (mutant, place) in enumerate(wanted, 1):
        if mutant in known:
            continue
        text = place and mutated(place)
        row = {"mutant": asdict(mutant), "line": place and place.line, "outcome": "gone"}
        if place and text:
            killer = before.get(mutant, {}).get("by", "")
            row |= {"change": change(place, text)}
            row |= asdict(judge.verdict(mutant.file, mutant.where, text, killer))
        known[mutant] = row
        if results:
            with results.open("a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")
        told = f"{row['outcome']} {mutant.file}:{row['line']} {row.get('by', '')}"
        print(f"{number}/{len(wanted)} {told}", flush=True)
    return [known[mutant] for mutant, _ in wanted]


def report(rows: Sequence[dict[str, Any]]) -> None:
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        file = row["mutant"]["file"]
        counts.setdefault("/".join(file.split("/")[:2]), Counter())[row["outcome"]] += 1
        if row["outcome"] in ("survived", "uncovered"):
            print(f"{row['outcome']}: {file}:{row['line']} {row['change']}")
    counts["all"] = sum(counts.values(), Counter())
    for package, n in counts.items():
        share = n["killed"] / max(1, n["killed"] + n["survived"])
        print(
            f"{package:20} killed {n['killed']:4}  survived {n['survived']:4}  {share:4.0%}"
            f"  uncovered {n['uncovered']:3}  gone {n['gone']:3}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("patterns", nargs="*", help="files and folders of engine/, ui/ and pages/")
    parser.add_argument("--draw", type=int, help="only so many, by lot")
    parser.add_argument("--seed", type=int, default=28)
    parser.add_argument("--write", type=Path, help="store them as a sample and run nothing")
    parser.add_argument("--sample", type=Path, help="a stored sample, in place of patterns")
    parser.add_argument("--results", type=Path, help="a file that keeps the outcomes")
    parser.add_argument("--killers", type=Path, help="results from before the tests changed")
    given = parser.parse_args()
    if bool(given.patterns) == bool(given.sample):
        parser.error("give either patterns or a --sample")
    if given.sample:
        wanted = list(located(stored(given.sample)))
        if given.draw:
            here = [(mutant, place) for mutant, place in wanted if place and mutated(place)]
            wanted = random.Random(given.seed).sample(here, given.draw)
    else:
        files = files_of(given.patterns)
        every = (place for file in files for place in places(file) if mutated(place) is not None)
        found = drawn(files, given.draw, given.seed) if given.draw else every
        wanted = [(place.mutant, place) for place in found]
    if given.write:
        store(given.write, [mutant for mutant, _ in wanted])
    else:
        report(judged(wanted, given.results, given.killers))


if __name__ == "__main__":
    main()
