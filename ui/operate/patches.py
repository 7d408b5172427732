"""The one table of names that a running server replaces, or reads, inside Streamlit and uvicorn.

Each row holds for one version and for the source that was read when it was written. On another version, or
where the source has changed, the row stands down: one line in the log says what is lost, and the app runs
without it.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from engine.errors import GlassformerError
from runs import profiles
from ui.operate import clicks_beside, expire_sessions, invalid_widget_values, stopped_runs, widget_lookup

log = logging.getLogger(__name__)

MB = 1_000_000  # as Streamlit counts
UPLOADS, MESSAGES, FRAMES = "uploaded files", "message size", "views past Streamlit"


@dataclass(frozen=True)
class Patch:
    """One row. `make` takes the original and returns its replacement; without it the symbol is only read.

    `symbol` and `reads` are `module:name` or `module:Class.name`; `digest` is that of their sources together.
    A `control` protects the server from strangers, so `/healthz` says where it is missing.
    """

    name: str
    symbol: str
    package: str  # and its version, without the last number
    digest: str
    reason: str
    upstream: str  # the issue, or its draft, that would make the row superfluous; empty where there is none
    lost: str  # what happens without it
    make: Callable[[Any], Any] | None = None
    reads: tuple[str, ...] = field(default=())
    control: bool = False


class StandsDown(GlassformerError):
    """A row that does not fit the installed version."""


def _bounded(original: Callable[..., Any]) -> Callable[..., Any]:
    most = profiles.current().max_message_mb * MB

    def protocol(**named: Any) -> Any:
        return original(**{**named, "max_size": min(named["max_size"], most)})

    return protocol


def _read_once(original: Callable[..., None]) -> Callable[..., None]:
    sections: dict[str, Any] = {}

    def populate(message: Any, section: str = "theme") -> None:
        if section not in sections:
            of_section = type(message)()
            original(of_section, section)
            sections[section] = of_section
        if sections[section].ByteSize():  # else the message would say that there is such a theme
            message.MergeFrom(sections[section])

    return populate


class _Widgets(dict[str, Any]):
    """A session's widgets, and those of them which its last run no longer drew."""

    left: frozenset[str] = frozenset()


def _letting_go(original: Callable[[Any, frozenset[str], Any], None]) -> Callable[..., None]:
    from streamlit.components.v2.bidi_component.constants import EVENT_DELIM
    from streamlit.runtime.state.session_state import STREAMLIT_INTERNAL_KEY_PREFIX, _is_stale_widget

    def remove(self: Any, active: frozenset[str], fragments: list[str] | None) -> None:
        original(self, active, fragments)
        known = self.widget_metadata
        if not isinstance(known, _Widgets):
            known = self.widget_metadata = _Widgets(known)
        stale = {name for name, about in known.items() if _is_stale_widget(about, active, fragments)}
        # A browser may have spoken of one before it saw that it is gone: it stays for a run more.
        gone = stale & known.left
        for name in gone:
            # what a component says of events is never called active: it stays as long as its component
            component = name.removeprefix(f"{STREAMLIT_INTERNAL_KEY_PREFIX}_").rpartition(EVENT_DELIM)[0]
            if component not in known or component in gone:
                del known[name]
        known.left = frozenset(stale)

    return remove


TABLE = (
    Patch(
        name="pages folder",
        symbol="streamlit.runtime.pages_manager:PagesManager.uses_pages_directory",
        reads=("streamlit.runtime.pages_manager:PagesManager.__init__",),
        package="streamlit 1.67",
        digest="baf7a6f847ae8dcb",
        reason="a folder called `pages` means pages of Streamlit's old kind until st.navigation has run",
        upstream="https://github.com/streamlit/streamlit/issues/8860",
        lost="the first link to a page after a start says that the page was not found",
        make=lambda _: False,
    ),
    Patch(
        name="invalid widget values",
        symbol="streamlit.runtime.state.session_state:WStates.__getitem__",
        reads=("streamlit.runtime.state.session_state:WStates.set_from_value",),
        package="streamlit 1.67",
        digest="10ab242189185749",
        reason="a value of another type than its widget's ends the run before any code of a page",
        upstream="docs/upstream.md#a-widget-value-of-another-type-ends-the-run-before-the-script",
        lost="a forged widget value leaves its sender without a page, and a traceback in the log",
        make=invalid_widget_values.reader,
    ),
    Patch(
        name="widget lookup",
        symbol="streamlit.runtime.state.session_state:SessionState.filtered_state",
        reads=("streamlit.runtime.state.session_state:SessionState.__contains__",),
        package="streamlit 1.67",
        digest="c4b66ed04ec7a270",
        reason="most widgets copy the state of all pages visited to look up one key: a tenth of an answer",
        upstream="docs/upstream.md#most-widgets-copy-the-whole-session-state-to-look-up-one-key",
        lost="an answer takes longer, the more pages and controls its tab has seen",
        make=widget_lookup.by_key,
    ),
    Patch(
        name="widgets of other pages",
        symbol="streamlit.runtime.state.session_state:WStates.remove_stale_widgets",
        reads=(
            "streamlit.runtime.state.session_state:SessionState._remove_stale_widgets",
            "streamlit.runtime.state.session_state:_is_stale_widget",
            "streamlit.runtime.state.query_params:QueryParams.remove_stale_bindings",
            "streamlit.components.v2.bidi_component.main:_make_trigger_id",
        ),
        package="streamlit 1.67",
        digest="32e527cba125eb4b",
        reason="a tab keeps callbacks, and what they hold, of every widget that it has ever shown",
        upstream="docs/upstream.md#a-session-keeps-the-callbacks-of-every-widget-that-it-has-shown",
        lost="an open tab takes more memory with every page that it shows",
        make=_letting_go,
    ),
    Patch(
        name="theme",
        symbol="streamlit.runtime.app_session:_populate_theme_msg",
        reads=("streamlit.runtime.app_session:AppSession._create_new_session_message",),
        package="streamlit 1.67",
        digest="c4c5b6a25830e7b2",
        reason="each run sends the theme again, made anew of 300 options: a tenth of an answer",
        upstream="docs/upstream.md#the-theme-is-read-from-300-options-in-every-run",
        lost="an answer takes a tenth longer",
        make=_read_once,
    ),
    Patch(
        name="stopped runs",
        symbol="streamlit.runtime.state.safe_session_state:SafeSessionState.__init__",
        reads=(
            "streamlit.runtime.state.safe_session_state:SafeSessionState.on_script_will_rerun",
            "streamlit.runtime.app_session:AppSession.request_rerun",
        ),
        package="streamlit 1.67",
        digest="2475589ccadb0a49",
        reason="a run that is stopped may still write what was chosen before the click that stopped it",
        upstream="docs/upstream.md#a-run-that-was-stopped-writes-over-what-the-next-one-knows",
        lost="on a busy server a click may light its button and leave the page as it was",
        make=stopped_runs.sharing_a_lock,
    ),
    Patch(
        name="ends of stopped runs",
        symbol="streamlit.runtime.state.safe_session_state:SafeSessionState.on_script_finished",
        reads=(
            "streamlit.runtime.scriptrunner.script_runner:ScriptRunner._maybe_handle_execution_control_request",
            "streamlit.runtime.scriptrunner_utils.script_requests:ScriptRequests.request_stop",
        ),
        package="streamlit 1.67",
        digest="92beddd534e78fbd",
        reason="a run that is stopped lets go, at its end, the button that was pressed for the next one",
        upstream="docs/upstream.md#a-run-that-was-stopped-writes-over-what-the-next-one-knows",
        lost="on a busy server a pressed button may do nothing",
        make=stopped_runs.unless_stopped,
    ),
    Patch(
        name="clicks beside",
        symbol="streamlit.runtime.app_session:AppSession.request_rerun",
        reads=(
            "streamlit.runtime.state.session_state:WStates",
            "streamlit.runtime.state.common:unpack_widget_state_value",
        ),
        package="streamlit 1.67",
        digest="e4e0204067c41a42",
        reason="a click outside a fragment goes in the fragment's message where both change in one moment",
        upstream="docs/upstream.md#a-click-beside-a-component-that-speaks-runs-its-fragment-only",
        lost="while a page begins, a click may light its button and leave the page as it was",
        make=clicks_beside.whole_page,
    ),
    Patch(
        name="closed sessions",
        symbol="streamlit.runtime.memory_session_storage:MemorySessionStorage.save",
        reads=(
            "streamlit.runtime.memory_session_storage:MemorySessionStorage.__init__",
            "streamlit.runtime.caching.ttl_cache:TTLCache.expire",
        ),
        package="streamlit 1.67",
        digest="5c8fd1683ea95abe",
        reason="sessions whose time is over end when the next tab is closed, and after a lecture none is",
        upstream="docs/upstream.md#closed-tabs-keep-their-session-until-another-one-is-closed",
        lost="closed tabs keep their memory and three descriptors each",
        make=expire_sessions.saver,
    ),
    Patch(
        name=FRAMES,
        symbol="streamlit.runtime.scriptrunner_utils.script_run_context:ScriptRunContext",
        reads=(
            "streamlit.runtime.scriptrunner_utils.script_run_context:ThreadState",
            "streamlit.runtime.scriptrunner_utils.script_run_context:get_script_run_ctx",
            "streamlit.runtime.state.safe_session_state:SafeSessionState",
            "streamlit.runtime.state.session_state:SessionState.register_widget",
            "streamlit.runtime.state.session_state:WStates",
        ),
        package="streamlit 1.67",
        digest="210ba5531d42e59a",
        reason="a view is drawn at another step by a route of ours, on a copy of the tab's state",
        upstream="",
        lost="a step of the scrubber takes as long as any answer",
    ),
    Patch(
        name=UPLOADS,
        symbol="streamlit.runtime.memory_uploaded_file_manager:MemoryUploadedFileManager.__init__",
        package="streamlit 1.67",
        digest="71f20a486e052453",
        reason="what sessions hold in files is limited, and only Streamlit knows how much that is",
        upstream="",
        lost="where its files are kept otherwise, the server takes none",
        control=True,
    ),
    Patch(
        name=MESSAGES,
        symbol="uvicorn.protocols.websockets.websockets_sansio_impl:ServerProtocol",
        reads=("uvicorn.protocols.websockets.websockets_sansio_impl:WebSocketsSansIOProtocol.__init__",),
        package="uvicorn 0.54",
        digest="89ade48b88c29057",
        reason="uvicorn holds as much of a browser's message as Streamlit may send: one option serves both",
        upstream="docs/upstream.md#one-option-for-what-the-server-sends-and-what-it-accepts",
        lost="a stranger's message may take 200 MB of memory before it is refused",
        make=_bounded,
        control=True,
    ),
)

_INSTALLED: dict[str, tuple[Any, str, Any]] = {}  # name of the row -> owner, attribute, original
_DOWN: dict[str, Patch] = {}


def install(table: Sequence[Patch] = TABLE) -> None:
    """Puts every row that fits in place; logs one line for each that does not."""
    withdraw()
    for patch in table:
        try:
            owner, attribute, original = check(patch)
        except StandsDown as why:
            _DOWN[patch.name] = patch
            said = {"about": patch.name}  # there are more rows than lines of a kind
            log.warning("patch “%s” stands down (%s): %s", patch.name, why, patch.lost, extra=said)
            continue
        _INSTALLED[patch.name] = owner, attribute, original
        if patch.make is not None:
            setattr(owner, attribute, patch.make(original))


def withdraw() -> None:
    """Puts every original back, at the end of the server."""
    for owner, attribute, original in _INSTALLED.values():
        setattr(owner, attribute, original)
    _INSTALLED.clear()
    _DOWN.clear()


def holds(name: str) -> bool:
    """True if the row of that name is in place."""
    return name in _INSTALLED


def missing_controls() -> list[str]:
    """Returns the names of the rows that protect the server and stand down."""
    return [name for name, patch in _DOWN.items() if patch.control]


def check(patch: Patch) -> tuple[Any, str, Any]:
    """Returns (owner, attribute, original) of a row's symbol. Raises StandsDown where the version, a name or
    the source is another.
    """
    package, _, wanted = patch.package.partition(" ")
    there = installed_version(package)
    if not f"{there}.".startswith(f"{wanted}."):
        raise StandsDown(f"{package} is {there}, and it was made for {wanted}")
    owner, attribute, original = _found(patch.symbol)
    if (actual := digest(patch)) != patch.digest:
        raise StandsDown(f"its source is another: {actual}")
    return owner, attribute, original


def installed_version(package: str) -> str:
    """Returns the version of an installed package."""
    return version(package)


def digest(patch: Patch) -> str:
    """Returns the first 16 hexadecimal digits of the SHA-256 of a row's sources. Raises StandsDown where a
    name is missing.
    """
    symbols = [_found(name)[2] for name in (patch.symbol, *patch.reads)]
    symbols = [symbol.fget if isinstance(symbol, property) else symbol for symbol in symbols]
    try:
        sources = [
            inspect.getsource(symbol)
            for symbol in symbols
            if inspect.isroutine(symbol) or inspect.isclass(symbol)
        ]
    except (OSError, TypeError) as error:
        raise StandsDown("its source cannot be read") from error
    return hashlib.sha256("\n".join(sources).encode()).hexdigest()[:16]


def _found(symbol: str) -> tuple[Any, str, Any]:
    module, _, path = symbol.partition(":")
    try:
        owner: Any = importlib.import_module(module)
        *outer, attribute = path.split(".")
        for name in outer:
            owner = getattr(owner, name)
        return owner, attribute, getattr(owner, attribute)
    except (ImportError, AttributeError) as error:
        raise StandsDown(f"{symbol} is no longer there") from error
