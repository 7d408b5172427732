// @ts-check
// The bar of a course: what is said, on and back, the question before the reveal, the speaker's notes; and the outline
// around what is pointed at. See ui/tour/bar.py. It stands at the bottom of the window, and the page ends above it.

import { button, element, running, within, write } from "./shared/dom.js"
import { revisit, visit } from "./shared/history.js"
import { component } from "./shared/mount.js"
import { note } from "./shared/progress_store.js"
import { visited } from "./shared/progress_state.js"
import { createAgain } from "./tour_again.js"
import { createNotes } from "./tour_notes.js"
import { ANSWER, FIGURE, QUESTION, arrows, chosen, leads, sceneAt, scrolledBy, stepped, writes } from "./tour_state.js"

const RUNS = "gf-tour-on" // on the root element, while a course runs
const AGAIN = 700 // milliseconds after which a scene that has not come is asked for again: a page that asks for something
const TRIES = 8 //    of its own at the same moment may have overtaken it
const PHONE = "(max-width: 640px)", ENOUGH = 0.6 // of a figure: on a wide screen only what lies mostly behind the bar is scrolled to
const LOOK_MS = 150, LOOKS = 100 // at a figure that stands

function create(place, _, signal) {
  const root = element("section", "gf-tour", "", { "aria-label": "Guided course" })
  const self = { root, at: 0, part: FIGURE, aim: "", scene: "", drawn: "", shown: "", going: 0, revealing: 0, wanted: -1, tabbed: false, seen: false, data: null, asked: new Set() }
  const bar = within(root, "div", "gf-tour-bar")
  const ask = element("div", "gf-tour-ask", "", { role: "dialog", hidden: "" }), notes = createNotes(), returns = createAgain()
  const back = button("‹", "Previous scene", () => step(self, -1))
  const on = button("›", "Next scene", () => step(self, 1) || visit(self.data.end))
  const where = element("span", "gf-tour-where")
  const said = element("p", "gf-tour-said", "", { "aria-live": "polite" })
  const title = within(said, "strong"), text = within(said, "span")
  const away = button("", "Back to the scene", () => go(self, { at: self.at, part: FIGURE }))
  const question = button("Question", "Show the question", () => show(self, QUESTION))
  const speaks = button("Notes", "Notes for the speaker", () => notes.press())
  const end = button("End", "End the course", () => visit(self.data.end))
  bar.append(back, where, on, said, away, question, speaks, end)
  root.prepend(ask, notes.root, returns.root)
  const style = document.head.appendChild(element("style"))
  new ResizeObserver(() => document.documentElement.style.setProperty("--gf-tour", `${bar.offsetHeight}px`)).observe(bar)
  Object.assign(self, { bar, ask, notes, returns, back, on, where, title, text, away, question, speaks, style })
  const options = { signal, capture: true }
  document.addEventListener("pointerdown", () => { self.tabbed = false }, options)
  for (const name of ["pointerdown", "touchmove", "wheel"]) document.addEventListener(name, () => clearTimeout(self.revealing), options)
  document.addEventListener("keydown", (event) => pressed(self, event), options)
  document.addEventListener("gf-room-left", (event) => show(self, /** @type {CustomEvent} */ (event).detail < 0 ? QUESTION : FIGURE), options)
  window.addEventListener("popstate", () => expect(self), options)
  const app = document.querySelector('[data-testid="stApp"]'), looking = new MutationObserver(() => setTimeout(() => rested(self), LOOK_MS))
  if (app) looking.observe(app, { attributeFilter: ["data-test-script-state"] })
  signal.addEventListener("abort", () => looking.disconnect())
  document.documentElement.classList.add(RUNS)
  place.append(root)
  return self
}

// Where a key leads on from: several may be pressed before the scene of the first has come.
const near = (self) => (self.wanted < 0 ? { at: self.at, part: self.part } : { at: self.wanted, part: self.aim || FIGURE })

const staged = () => document.documentElement.classList.contains("gf-stage")

/** One step on or back; whether there was one. @param {1 | -1} by */
function step(self, by) {
  const { count, asks, away } = self.data, from = near(self)
  if (away && self.wanted < 0) from.part = by > 0 ? FIGURE : QUESTION // no part of the scene is here
  const to = stepped(from, by, { count, asks, asked: self.asked, stage: staged() })
  if (!to) return false
  if (to.at !== from.at) go(self, to)
  else if (self.wanted >= 0) self.aim = to.part
  else show(self, to.part)
  return true
}

// A scene is an address, and going there is what the browser's Back does.
function go(self, { at, part }) {
  self.shown = ""
  visit(self.data.addresses[at])
  self.aim = part
}

// Somebody went to a scene, by this bar or by the browser's: until it has come, it is asked for again.
function expect(self) {
  clearTimeout(self.going)
  self.wanted = sceneAt(location.href, self.data.addresses)
  self.aim = ""
  if (self.wanted >= 0) self.going = setTimeout(() => again(self, TRIES), AGAIN)
}

function again(self, tries) {
  if (!running()) {
    const { wanted } = self
    if (!tries) self.wanted = -1
    else {
      const { aim } = self
      revisit(self.data.addresses[wanted]) // which expects it
      self.aim = aim
    }
    tries--
  }
  clearTimeout(self.going)
  if (self.wanted >= 0) self.going = setTimeout(() => again(self, tries), AGAIN)
}

/** @param {KeyboardEvent} event */
function pressed(self, event) {
  if (event.key === "Tab") self.tabbed = true
  if (event.altKey || event.shiftKey || event.defaultPrevented || event.isComposing) return
  const held = event.isTrusted ? document.activeElement : null // not of the notes' window, whose keys are handed on
  if (event.key === "Enter") entered(held, event)
  if (event.ctrlKey || event.metaKey) return
  if (event.key === "Escape" && !(self.ask.hidden && self.notes.root.hidden)) {
    self.notes.root.hidden = true
    if (!self.ask.hidden) show(self, FIGURE)
    event.stopImmediatePropagation() // the stage stays
    return
  }
  const by = leads(event.key, { writes: writes(held), busy: arrows(held, self.tabbed) }), over = document.querySelector("dialog:modal")
  const answer = by || over || self.ask.hidden || writes(held) ? -1 : chosen(event.key, self.data.question.answers.length)
  if (by && writes(held)) /** @type {HTMLElement} */ (held).blur() // which applies what was written
  if (answer >= 0) show(self, ANSWER, answer)
  else if (!by) return
  else if (!(over ? led(by) : step(self, by)) && (over || !event.key.startsWith("Page"))) return // past the ends a clicker scrolls nothing
  document.dispatchEvent(new Event("gf-rest"))
  event.preventDefault()
  event.stopPropagation()
}

/** What is written is applied; the keys then lead on. A list that is open takes what was chosen in it. @param {Element | null} held @param {KeyboardEvent} event */
function entered(held, { ctrlKey, metaKey }) {
  if (!(held instanceof HTMLElement) || !writes(held) || held.matches("dialog *, [aria-expanded=true]")) return
  if (!held.matches("textarea, [contenteditable=true]") || ctrlKey || metaKey) setTimeout(() => held.blur())
}

/** What lies over the page leads itself: a room that votes. @param {number} by */
const led = (by) => !document.dispatchEvent(new CustomEvent("gf-lead", { detail: by, cancelable: true }))

/** Shows a part of the scene: its question and its answer lie over the page, so that nobody reads it there first. */
function show(self, part, chose = -1) {
  const { question, away } = self.data
  self.part = question && !away ? part : FIGURE
  named(self)
  self.ask.hidden = self.part === FIGURE
  document.dispatchEvent(new Event("gf-release")) // what lies over both: a figure that fills the screen
  if (self.ask.hidden) return reveal(self)
  self.asked.add(self.at)
  document.dispatchEvent(new Event("gf-rest"))
  if (self.drawn !== self.scene) drawQuestion(self)
  const answered = part === ANSWER, right = chose === question.right
  for (const [i, one] of self.answers.entries()) {
    one.classList.toggle("right", answered && i === question.right)
    one.classList.toggle("wrong", answered && i === chose && !right)
  }
  write(self.why, answered ? `${chose < 0 ? "" : right ? "Yes. " : "Not quite. "}${question.why}` : "")
  write(self.close, answered ? "Show it" : "Skip")
}

/** Names the button that leads on: it shows an answer and a figure before it leaves a scene. */
function named(self) {
  const { at, count } = self.data, last = at + 1 === count ? "End of the course" : "Next scene"
  self.on.setAttribute("aria-label", { [QUESTION]: "Show the answer", [ANSWER]: "Show the figure" }[self.part] ?? last)
}

function drawQuestion(self) {
  const { ask, scene, data: { question } } = self
  ask.setAttribute("aria-label", question.asked)
  const list = element("div", "gf-tour-answers"), why = element("p", "gf-tour-why", "", { "aria-live": "polite" })
  const answers = question.answers.map((/** @type {string} */ answer, /** @type {number} */ i) => button(answer, answer, () => show(self, ANSWER, i)))
  list.append(...answers)
  const close = button("Skip", "Close the question and show the page", () => show(self, FIGURE))
  close.className = "gf-tour-show"
  const card = element("div", "gf-tour-card"), foot = element("div", "gf-tour-foot")
  // On a stage the phones in the room may answer it (stage.js listens): the lecturer need not write it again.
  const detail = { text: question.asked, answers: question.answers, right: question.right, why: question.why }
  const room = button("Ask the room", "Let phones answer this question", () => document.dispatchEvent(new CustomEvent("gf-ask-room", { detail })))
  room.className = "gf-tour-room"
  foot.append(close, room)
  card.append(element("h2", "", question.asked), list, why, foot)
  ask.replaceChildren(card)
  Object.assign(self, { answers, why, close, drawn: scene })
}

function update(self, data) {
  const arrived = self.wanted < 0 || (data.at === self.wanted && !data.away), fresh = arrived && self.shown !== data.scene, { aim } = self
  if (fresh) self.seen = false
  if (arrived) {
    clearTimeout(self.going)
    self.wanted = -1
    self.aim = ""
  }
  if (self.data?.course !== data.course) self.asked.clear()
  Object.assign(self, { data, at: data.at, scene: data.scene })
  write(self.where, `${data.at + 1} of ${data.count}`)
  write(self.title, data.title)
  write(self.text, ` ${data.text}`)
  self.bar.title = data.course
  self.question.hidden = !data.question
  self.speaks.hidden = !data.notes
  self.notes.write(data)
  self.returns.write(data.course, data.away ? null : data.again)
  self.back.disabled = data.at === 0 && !data.question
  named(self)
  self.style.textContent = data.point
    ? `.st-key-${CSS.escape(data.point)} { outline: 3px solid var(--gf-tour-point); outline-offset: 3px; border-radius: 6px; }`
    : ""
  left(self)
  if (!fresh) return
  self.shown = data.scene
  note((held) => visited(held, data.scene.split("/")[0], data.at))
  document.dispatchEvent(new Event("gf-rest")) // a pointer that lay elsewhere points at nothing here: ./stage_rest.js
  self.notes.root.hidden = true
  document.querySelector('[data-testid="stMain"]')?.scrollTo(0, 0) // where the scene before was scrolled to
  show(self, aim || (self.asked.has(data.at) ? FIGURE : QUESTION))
}

// A run that changed nothing for the bar does not call it: the way back to a scene that was shown already has come to its end.
function rested(self) {
  if (!self.data || !self.root.isConnected || running()) return
  if (self.wanted === self.at) update(self, self.data)
  else left(self)
}

/** Says the way back where what the scene points at was left: on another page, or in another part of its own. */
function left(self) {
  const { away, point } = self.data, gone = !!away || (!!point && self.seen && !running() && !pointed(self))
  write(self.away, away ? `Back to ${away}` : gone ? "Back to the scene" : "")
  self.away.hidden = !gone
  self.text.hidden = gone // it speaks about what is not there
}

const pointed = (self) => document.querySelector('[data-testid="stMain"]')?.querySelector(`.st-key-${CSS.escape(self.data.point)}`)

// On a phone, and under an open fold, a page is longer than the screen: what a scene points at is scrolled to, as often as the
// page has grown above it, until somebody begins to look around.
function reveal(self, before = "", looks = LOOKS) {
  clearTimeout(self.revealing)
  if (!looks || !self.data.point) return
  const main = document.querySelector('[data-testid="stMain"]'), at = pointed(self)
  const box = at?.getBoundingClientRect(), now = box && !running() && box.height > 1 ? `${box.top} ${box.height}` : ""
  if (main && box && now && now === before) {
    self.seen = true
    const from = document.querySelector('[data-testid="stHeader"]')?.getBoundingClientRect().bottom ?? 0
    main.scrollBy({ top: scrolledBy(box, from, self.bar.getBoundingClientRect().top, matchMedia(PHONE).matches ? 1 : ENOUGH) })
  }
  self.revealing = setTimeout(() => reveal(self, now, now ? looks - 1 : looks), LOOK_MS) // one that is measured first may come late
}

function remove(self) {
  clearTimeout(self.going)
  clearTimeout(self.revealing)
  self.style.remove()
  document.documentElement.classList.remove(RUNS)
}

export default component({ create, update, remove })
