// @ts-check
// One figure fills the screen, and comes back: key f over it, or the button beside its others.
// The figure is laid over the page by itself (a popover), so that it works in a frame, too; where the browser allows it, the
// page then fills the screen.

import { fitting } from "./stage_state.js"

const PLACES = '[data-testid="stBidiComponentRegular"], [data-testid="stBidiComponentIsolated"]'
const OURS = ".gf-filmed", NOT = ".gf-stage-ui, .gf-terms, .gf-tour, .gf-scrubber"
const ROOM = 0.75 // of a figure's text: the rest of the screen is room for what it shows
const READ = 540 // pixels of height for which a figure's text is made: on a screen of twice as many it is twice as large

/** @type {{ root: HTMLElement, ended: AbortController, entered: boolean, style: string | null, height: string } | null} */
let now = null

/** The figure that an element lies in; a component without one is one itself. @param {Element | null} node */
export function figureAt(node) {
  if (!node || node.closest(NOT)) return null
  let found = /** @type {HTMLElement | null} */ (node.closest(OURS))
  while (found?.parentElement?.closest(OURS)) found = /** @type {HTMLElement} */ (found.parentElement.closest(OURS))
  if (found) return found
  const place = node.closest(PLACES)
  const inside = place && /** @type {HTMLElement | null} */ ([...place.querySelectorAll("*")].find((one) => one.getBoundingClientRect().height > 40))
  return inside && !inside.querySelector(NOT) && !inside.matches(NOT) ? inside : null
}

/** The largest figure that is in sight. @param {ParentNode} page */
export function largest(page) {
  const area = (/** @type {Element} */ one) => { const box = one.getBoundingClientRect(); return box.width * box.height }
  const all = /** @type {HTMLElement[]} */ ([...page.querySelectorAll(OURS)]).filter((one) => area(one) && !one.closest('[data-testid="stExpander"]'))
  return all.length ? all.reduce((most, one) => (area(one) > area(most) ? one : most)) : null
}

export const fills = () => now !== null && now.root.isConnected

/** How much larger the page is drawn around an element. @param {Element} root */
function zoomAround(root) {
  return Number(getComputedStyle(/** @type {Element} */ (root.parentElement ?? document.body)).getPropertyValue("--gf-zoom")) || 1
}

/** @param {HTMLElement} root */
export function fill(root) {
  if (fills()) return back()
  const box = root.getBoundingClientRect(), style = root.getAttribute("style"), ended = new AbortController()
  now = { root, ended, entered: false, style, height: root.style.height }
  root.setAttribute("popover", "manual")
  root.classList.add("gf-full")
  root.showPopover()
  const lay = () => spread(root, { width: box.width, height: box.height })
  lay()
  window.addEventListener("resize", lay, { signal: ended.signal })
  document.addEventListener("fullscreenchange", () => { if (now?.entered && !document.fullscreenElement) back() }, { signal: ended.signal })
  if (!document.fullscreenElement) document.documentElement.requestFullscreen?.().then(() => { if (now) now.entered = true }).catch(() => {}) // a frame may not: then it fills the window
}

function spread(root, own) {
  const screen = { width: innerWidth, height: innerHeight }, around = zoomAround(root), times = fitting(own, screen)
  Object.assign(root.style, { zoom: String(1 / around), width: `${screen.width}px`, height: `${screen.height}px` })
  if (root.classList.contains("gf-plot")) {
    root.style.setProperty("--gf-unzoom", "1")
    // `own` is as large as it stood on the screen, and so was its text.
    root.style.setProperty("--gf-scale", String(Math.max(1, times * around * ROOM, screen.height / READ)))
    root.style.setProperty("--gf-scaled", "scale(var(--gf-scale))")
    return
  }
  // All else keeps its form and is drawn larger.
  const edge = Math.max(0, (screen.width - own.width * times) / 2 / times)
  Object.assign(root.style, { zoom: String(times / around), width: `${screen.width / times}px`, height: `${screen.height / times}px`, paddingInline: `${edge}px` })
}

export function back() {
  if (!now) return
  const { root, ended, entered, style, height } = now
  now = null
  ended.abort()
  if (entered && document.fullscreenElement) document.exitFullscreen().catch(() => {})
  if (root.matches(":popover-open")) root.hidePopover()
  root.removeAttribute("popover")
  root.classList.remove("gf-full")
  if (style === null) root.removeAttribute("style")
  else root.setAttribute("style", style)
  root.style.height = height
}
