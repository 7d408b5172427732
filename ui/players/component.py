"""Components that run in the browser: one way of mounting for all of them.

With every message Streamlit sends a component's script again. Ours is a few lines that import the module,
which the browser fetches once and keeps: ui/assets/load.js says what happens there, `ui.players.served` where
it lies.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import streamlit as st

from ui import frames
from ui.players import served

PREFIX = "glassformer_"  # of the name that Streamlit has for a component
SAVES = "shared/save"  # the style of the buttons that save a figure
STEPPER = "shared/stepper"  # the style of the line that shared/stepper.js makes

# Streamlit's own script lies below the app's root, wherever a host has put that. Where it comes from another
# place, the page's address says so: pages lie one level below the root.
_SCRIPT = """\
const at = "app/static/{folder}/ui/assets/load.js", root = /static\\/js\\/[^/]+$/
const near = new URL(at, document.baseURI).href
const own = [...document.scripts].map((s) => s.src).find((src) => root.test(src))?.replace(root, at) ?? near
const ready = import(own).catch(() => import(near)).then(({{ load }}) => load({arguments}))
export default async (message) => (await ready.catch(() => {{ throw Error({problem}) }}))(message)
"""
STYLES: dict[str, tuple[str, ...]] = {}  # of each component that was mounted, as served.path_of has them
PROBLEM = "This part of the page did not load. Reload the page; if that does not help, restart the app."


@cache
def mounted(
    name: str,
    *,
    styles: tuple[str, ...] | None = None,
    ahead: tuple[str, ...] = (),
    isolated: bool = False,
    stepper: bool = False,
) -> Callable[..., Any]:
    """Returns the component `glassformer_{name}`: {name}.js, in ui/assets or beside its view, in the styles
    {name}.css and SAVES, and STEPPER where it has a `stepper`, or in those that are named. `ahead` are other
    files that it is going to fetch. `isolated` puts it into a shadow root, where no style of the page reaches
    it. Where a view is drawn past Streamlit, what the component gets goes there, and it returns nothing.
    """
    default = (SAVES, STEPPER, name) if stepper else (SAVES, name)
    worn = default if styles is None else styles
    STYLES[name] = tuple(map(served.path_of, worn))
    js = script(name, worn, ahead)
    component = st.components.v2.component(f"{PREFIX}{name}", js=js, isolate_styles=isolated)

    def mount(*, key: str, data: Any, **further: Any) -> Any:
        return None if frames.take(key, data) else component(key=key, data=data, **further)

    return mount


def script(name: str, styles: tuple[str, ...], ahead: tuple[str, ...] = ()) -> str:
    """Returns the script that is sent with every message of this component."""
    what = (served.path_of(name), [served.path_of(style) for style in styles], *([ahead] if ahead else []))
    arguments = ", ".join(map(json.dumps, what))
    return _SCRIPT.format(folder=served.modules(), arguments=arguments, problem=json.dumps(PROBLEM))
