// @ts-check
// On every page, unseen: notes the view that is looked at; and, a minute after a wrong guess, offers a question of the same kind
// with other numbers, in a line at the bottom of the window, once. See ui/returns.py.

import { button, element, within } from "./shared/dom.js"
import { component } from "./shared/mount.js"
import { follow, note, progress, today, watch } from "./shared/progress_store.js"
import { seen, target } from "./shared/progress_state.js"
import { MISSED } from "./guess_state.js"

const SEEN_MS = 3000 // a view that was only passed through was not seen
const LATER_MS = 60_000, AGAIN_MS = 2000
const BUSY = ".gf-guess-strip:not([hidden]), .gf-tour-ask:not([hidden]), dialog:modal, html.gf-stage" // then the line waits

/** @type {{ id: string, again: import("./shared/progress_state.js").Catalogue, at: number } | null} The last wrong guess, which outlives a component that is drawn anew. */
let pending = null

function create(place, _, signal) {
  const root = within(place, "div", "gf-watch")
  const line = within(root, "section", "gf-watch-line", "", { "aria-label": "A question of the same kind", hidden: "" })
  const self = { root, line, view: "", seeing: /** @type {any} */ (0), waiting: /** @type {any} */ (0) }
  document.addEventListener(MISSED, (event) => missed(self, /** @type {CustomEvent} */ (event).detail), { signal })
  document.addEventListener("visibilitychange", () => look(self), { signal })
  watch(() => forgotten(self), signal)
  const main = document.querySelector('[data-testid="stMain"]')
  const size = new ResizeObserver(() => line.style.setProperty("--gf-guess-left", `${main ? main.getBoundingClientRect().left : 0}px`))
  if (main) size.observe(main)
  signal.addEventListener("abort", () => {
    size.disconnect()
    clearTimeout(self.seeing)
    clearTimeout(self.waiting)
  })
  wait(self)
  return self
}

function update(self, { view }) {
  if (view === self.view) return
  if (!self.line.hidden) pass(self) // it was not taken, and is not said twice
  self.view = view
  look(self)
}

function look(self) {
  clearTimeout(self.seeing)
  const { view } = self
  if (view && !document.hidden) self.seeing = setTimeout(() => note((held) => seen(held, view)), SEEN_MS)
}

/** What is guessed before the line has come takes the place of the guess before it. */
function missed(self, { id, again }) {
  pending = again ? { id, again, at: Date.now() + LATER_MS } : null
  self.line.hidden = true
  wait(self)
}

/** Who has the browser forget everything has it forget this guess, too. */
function forgotten(self) {
  if (pending && !progress().guesses.has(pending.id)) pass(self)
}

function wait(self) {
  clearTimeout(self.waiting)
  if (pending) self.waiting = setTimeout(() => offer(self), Math.max(0, pending.at - Date.now()))
}

function offer(self) {
  if (!pending) return
  if (document.querySelector(BUSY)) {
    pending.at = Date.now() + AGAIN_MS
    return wait(self)
  }
  const to = target(progress(), pending.again, "guesses", pending.id, today())
  if (!to) return pass(self)
  const go = button(to.title, `${to.title}: a question of the same kind`, () => {
    pass(self)
    follow(to.address, to.guess)
  })
  const said = element("p", "", "Your last guess was wrong. The same idea with other numbers:")
  self.line.replaceChildren(said, go, button("Not now", "Not now", () => pass(self)))
  self.line.hidden = false
}

function pass(self) {
  pending = null
  clearTimeout(self.waiting)
  self.line.hidden = true
}

export default component({ create, update })
