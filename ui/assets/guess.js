// @ts-check
// Predict, then see: a button beside a view's question, and, once it is pressed, a line at the bottom of the window with
// the question, the choices, and what came out. See ui/guess.py. It never opens by itself, and nothing waits for it.

import { button, element, running, within } from "./shared/dom.js"
import { component } from "./shared/mount.js"
import { follow, note, WANTED, wants } from "./shared/progress_store.js"
import { answered } from "./shared/progress_state.js"
import { ASKS, asks, declined, MISSED, postpone, postponed, verdict } from "./guess_state.js"

/**
 * `see` is another view that refutes a wrong guess; `again` what can be asked a minute later, as ./progress_watch.js takes it.
 * @typedef {{ id: string, none?: boolean, asked?: string, choices?: import("./guess_state.js").Choice[], right?: number, found?: string, see?: { title: string, address: string }, again?: import("./shared/progress_state.js").Catalogue }} Data
 */

const LINE = ".st-key-question_line"
const LOOK_MS = 100, LOOKS = 40 // at a page that is asked for

function create(place, _, signal) {
  const root = within(place, "div", "gf-guess")
  const strip = within(root, "section", "gf-guess-strip", "", { "aria-label": "Guess first", hidden: "" })
  const said = within(strip, "p", "gf-guess-said", "", { tabindex: -1, "aria-live": "polite" })
  const choices = within(strip, "div", "gf-guess-choices"), leave = within(strip, "div", "gf-guess-leave")
  const pill = button("Guess first", "Guess first, before the figure shows the answer", () => open(self))
  pill.className = "gf-guess-pill"
  pill.setAttribute("aria-expanded", "false")
  const main = place.closest('[data-testid="stMain"]')
  // The line ends where the menu begins, whether that is open or not.
  const size = new ResizeObserver(() => strip.style.setProperty("--gf-guess-left", `${main ? main.getBoundingClientRect().left : 0}px`))
  if (main) size.observe(main)
  /** @type {any} */
  const self = { root, strip, said, choices, leave, pill, size, data: null, state: "closed", about: "" }
  document.addEventListener(ASKS, () => stand(self), { signal })
  document.addEventListener(WANTED, () => come(self), { signal })
  signal.addEventListener("abort", () => clearTimeout(self.coming))
  strip.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return
    event.stopPropagation()
    close(self)
  })
  return self
}

/**
 * The button stands at the end of the line of the question, unless somebody does not want to be asked. A page that draws the
 * line anew puts its question behind what it does not know.
 */
function stand(self) {
  const line = document.querySelector(LINE)
  const wanted = line && asks() && !postponed().includes(self.data.id)
  if (!wanted) {
    self.pill.remove()
    if (!asks()) close(self)
  } else if (self.pill !== line.lastElementChild) line.append(self.pill)
}

function tell(self, what) {
  self.send("did", `${what}/${self.data.id}`)
}

function open(self) {
  if (self.state !== "closed") return close(self)
  self.state = "waiting"
  self.about = self.data.id
  self.pill.setAttribute("aria-expanded", "true")
  tell(self, "open")
  resume(self)
}

/**
 * Closed and opened again before the server had drawn anything: to it nothing has changed, and it says nothing a
 * second time. What it said before still stands.
 */
function resume(self) {
  if (self.data.none) nothing(self)
  else if (self.data.choices) question(self, self.data)
}

function close(self) {
  if (self.state === "closed") return
  const inside = self.strip.contains(document.activeElement)
  if (self.state !== "told") tell(self, "closed")
  self.state = "closed"
  self.strip.hidden = true
  self.pill.setAttribute("aria-expanded", "false")
  if (inside && self.pill.isConnected) self.pill.focus()
}

function update(self, /** @type {Data} */ data) {
  self.data = data
  if (self.state !== "closed" && self.about !== data.id) close(self)
  stand(self)
  if (self.state === "waiting") resume(self)
  else if (self.state === "closed" && wants(data.id)) open(self) // a question from last time
}

/** Somebody goes to a guess, which may be this one at another setting: then the server has nothing new to say of it. */
function come(self, began = false, looks = LOOKS) {
  clearTimeout(self.coming)
  if (running()) began = true
  else if (began || looks < LOOKS / 2) {
    if (self.state === "closed" && wants(self.data.id)) open(self)
    return
  }
  if (looks) self.coming = setTimeout(() => come(self, began, looks - 1), LOOK_MS)
}

function show(self, text) {
  self.said.replaceChildren(...text)
  self.strip.hidden = false
  self.said.focus({ preventScroll: true })
}

function nothing(self) {
  self.choices.replaceChildren()
  self.leave.replaceChildren(button("Close", "Close", () => close(self)))
  show(self, ["There is nothing to guess here: two answers would be the same. Try another setting or model."])
}

function question(self, data) {
  self.state = "asking"
  self.choices.replaceChildren(...data.choices.map((/** @type {{ text: string }} */ choice, /** @type {number} */ at) =>
    button(choice.text, choice.text, () => answer(self, data, at))))
  const not = button("Not now", "Not now: no more on this view", () => {
    postpone(self.about)
    close(self)
    stand(self)
  })
  const never = button("Never ask", "Never ask on any page; Guess in the menu brings it back", () => {
    declined(true)
    close(self)
  })
  self.leave.replaceChildren(not, never)
  show(self, [element("strong", "", data.asked)])
}

function answer(self, data, at) {
  self.state = "told"
  self.data = { id: data.id } // what was offered is answered
  tell(self, "seen")
  const holds = at === data.right, { word, text } = verdict(data.choices, data.right, at)
  note((held, day) => answered(held, "guesses", data.id, { right: holds }, day))
  if (!holds) document.dispatchEvent(new CustomEvent(MISSED, { detail: { id: data.id, again: data.again } }))
  const mark = element("strong", holds ? "gf-guess-holds" : "gf-guess-fails", `${word} `)
  self.choices.replaceChildren(...(data.see && !holds ? [elsewhere(self, data.see)] : []))
  self.leave.replaceChildren(button("Close", "Close", () => close(self)))
  show(self, [mark, `${text} ${data.found}`])
}

/** A way to the view that refutes a wrong guess. */
const elsewhere = (self, { title, address }) => button(`See it: ${title}`, `See it: ${title}`, () => {
  close(self)
  follow(address)
})

function remove(self) {
  self.size.disconnect()
  self.pill.remove()
}

export default component({ create, update, remove })
