"""Chat templates, rendered as transformers does it: `python -m studies.weights.pretrained.chat_template`.

A template is a stranger's program: it can loop for ever, or write a text that fills the memory, and nothing
in Python ends a thread that does. It runs in a process of its own, which the system bounds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.errors import TokenizerError

ROOT = Path(__file__).resolve().parents[3]
MAX_TEMPLATE, MAX_TEXT = 200_000, 200_000  # characters of a template, and of what it writes
CPU_SECONDS, SECONDS = 2, 20  # that it computes; that it may take on a machine with other work
MEMORY = 512 << 20  # bytes of address space, Python's own included
KEPT = 16  # conversations whose text is remembered

Messages = Sequence[Mapping[str, str]]
_alone = threading.Lock()  # one process at a time


def rendered(
    template: str, conversations: Sequence[Messages], answer: bool, names: Mapping[str, str]
) -> tuple[tuple[str, ...], str]:
    """Returns (the text of each conversation, the template's own literal text, its pieces parted by NUL).

    `names` are the special tokens by their roles, such as `eos_token`. Raises TokenizerError with the
    template's own sentence where it refuses the messages, and for one that is endless or has a mistake.
    """
    if len(template) > MAX_TEMPLATE:
        raise TokenizerError(f"the model's chat template is longer than {MAX_TEMPLATE:,} characters")
    order = {"template": template, "conversations": conversations, "answer": answer, "names": dict(names)}
    return _rendered(json.dumps(order), date.today())


@lru_cache(maxsize=KEPT)
def _rendered(order: str, _today: date) -> tuple[tuple[str, ...], str]:
    child = [sys.executable, "-m", "studies.weights.pretrained.chat_template"]
    where = {**os.environ, "PYTHONPATH": str(ROOT)}
    try:
        with _alone:
            ended = subprocess.run(
                child, input=order.encode(), capture_output=True, timeout=SECONDS, cwd=ROOT, env=where
            )
        result = json.loads(ended.stdout)
    except (subprocess.TimeoutExpired, OSError, ValueError):  # no answer, or none that is whole
        raise TokenizerError(
            f"the model's chat template was stopped: it takes more than {CPU_SECONDS} seconds or"
            f" {MEMORY >> 20} MB"
        ) from None
    if "refused" in result:
        raise TokenizerError(f"the model's chat template refuses these messages: {result['refused']}")
    return tuple(result["texts"]), result["literals"]


# In the process ---------------------------------------------------------------------------------


def environment() -> Any:
    """Returns the environment that chat templates are written for.

    >>> environment().from_string("{{ x | tojson }}{% break %}").render(x="é<b>")
    Traceback (most recent call last):
    SyntaxError: 'break' outside loop
    >>> environment().from_string("{% generation %}{{ x | tojson }}{% endgeneration %}").render(x="é<b>")
    '"é<b>"'
    """
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """`{% generation %}` marks what a model writes: it is kept as it is."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body).set_lineno(line)

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    def tojson(x: Any, ensure_ascii: bool = False, **how: Any) -> str:  # Jinja's own escapes HTML
        return json.dumps(x, ensure_ascii=ensure_ascii, **how)

    result = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    result.filters["tojson"] = tojson
    result.globals["raise_exception"] = raise_exception
    result.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return result


def _serve(order: dict[str, Any]) -> dict[str, Any]:
    from jinja2 import TemplateError, nodes

    try:
        jinja = environment()
        tree = jinja.parse(order["template"])
        literals = [node.data for node in tree.find_all(nodes.TemplateData)]
        literals += [node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)]
        template = jinja.from_string(order["template"])
        texts: list[str] = []
        for messages in order["conversations"]:
            pieces, length = [], 0
            for piece in template.generate(
                **order["names"],
                messages=messages,
                tools=None,
                documents=None,
                add_generation_prompt=order["answer"],
            ):
                pieces.append(piece)
                length += len(piece)
                if length > MAX_TEXT:
                    return {"refused": f"it makes more than {MAX_TEXT:,} characters of them"}
            texts.append("".join(pieces))
    except TemplateError as error:
        return {"refused": str(error)[:MAX_TEXT]}
    except (MemoryError, RecursionError, OverflowError) as error:
        return {"refused": f"it needs too much for them ({type(error).__name__})"}
    except Exception as error:  # whatever a stranger's program does
        return {"refused": f"{type(error).__name__}: {str(error)[:MAX_TEXT]}"}
    return {"texts": texts, "literals": "\0".join(literals)}


def _bound() -> None:
    """Has the system end this process if it computes too long, and refuse it more memory."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


if __name__ == "__main__":
    _bound()
    json.dump(_serve(json.load(sys.stdin)), sys.stdout)
