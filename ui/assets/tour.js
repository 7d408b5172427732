// @ts-check
// The bar of a course: what is said, on and back, the question before the reveal, the speaker's notes; and the outline
// around what is pointed at. See ui/tour/bar.py. It stands at the bottom of the window, and the page ends above it.

import { button, element, running, within, write } from "./shared/dom.js"
import { revisit, visit } from "./shared/history.js"
import { component } from "./shared/mount.js"
import { createNotes } from "./tour_notes.js"
import { arrows, leads, sceneAt, scrolledBy, writes } from "./tour_state.js"

const RUNS = "gf-tour-on" // on the root element, while a course runs
const AGAIN = 700 // milliseconds after which a scene that has not come is asked for again: a page that asks for something
const TRIES = 8 //    of its own at the same moment may have overtaken it
const PHONE = "(max-width: 640px)", ENOUGH = 0.6 // of a figure: on a wide screen only what lies mostly behind the bar is scrolled to
const LOOK_MS = 150, LOOKS = 100 // at a figure that is still being drawn

function create(place, _, signal) {
  const root = element("section", "gf-tour", "", { "aria-label": "Guided course" })
  const self = { root, at: 0, count: 0, scene: "", shown: "", going: 0, revealing: 0, wanted: -1, tabbed: false, data: null, asked: new Set() }
  const bar = within(root, "div", "gf-tour-bar")
  const ask = element("div", "gf-tour-ask", "", { role: "dialog", hidden: "" }), notes = createNotes()
  const back = button("‹", "Previous scene", () => go(self, near(self) - 1))
  const on = button("›", "Next scene", () => go(self, near(self) + 1))
  const where = element("span", "gf-tour-where")
  const said = element("p", "gf-tour-said", "", { "aria-live": "polite" })
  const title = within(said, "strong"), text = within(said, "span")
  const away = button("", "Back to the scene", () => go(self, self.at))
  const question = button("Question", "Show the question", () => openQuestion(self))
  const speaks = button("Notes", "Notes for the speaker", () => notes.press())
  const end = button("End", "End the course", () => visit(self.data.end))
  bar.append(back, where, on, said, away, question, speaks, end)
  root.prepend(ask, notes.root)
  const style = document.head.appendChild(element("style"))
  new ResizeObserver(() => document.documentElement.style.setProperty("--gf-tour", `${bar.offsetHeight}px`)).observe(bar)
  Object.assign(self, { bar, ask, notes, back, on, where, title, text, away, question, speaks, style })
  const options = { signal, capture: true }
  document.addEventListener("pointerdown", () => { self.tabbed = false }, options)
  for (const name of ["pointerdown", "touchmove", "wheel"]) document.addEventListener(name, () => clearTimeout(self.revealing), options)
  document.addEventListener("keydown", (event) => pressed(self, event), options)
  document.addEventListener("gf-room-left", () => { ask.hidden = true }, options)
  window.addEventListener("popstate", () => expect(self), options)
  document.documentElement.classList.add(RUNS)
  place.append(root)
  return self
}

// The scene from which a key leads on: several may be pressed before the first of theirs has come.
const near = (self) => (self.wanted < 0 ? self.at : self.wanted)

// A scene is an address, and going there is what the browser's Back does.
function go(self, to) {
  if (to >= self.count) visit(self.data.end)
  else if (to >= 0) visit(self.data.addresses[to])
}

// Somebody went to a scene, by this bar or by the browser's: until it has come, it is asked for again.
function expect(self) {
  clearTimeout(self.going)
  self.wanted = sceneAt(location.href, self.data.addresses)
  if (self.wanted >= 0) self.going = setTimeout(() => again(self, TRIES), AGAIN)
}

function again(self, tries) {
  if (!running()) {
    const { wanted } = self
    if (!tries) self.wanted = -1
    else revisit(self.data.addresses[wanted]) // which expects it
    tries--
  }
  clearTimeout(self.going)
  if (self.wanted >= 0) self.going = setTimeout(() => again(self, tries), AGAIN)
}

/** @param {KeyboardEvent} event */
function pressed(self, event) {
  if (event.key === "Tab") self.tabbed = true
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.defaultPrevented) return
  if (event.key === "Escape" && !(self.ask.hidden && self.notes.root.hidden)) {
    self.ask.hidden = self.notes.root.hidden = true
    event.stopImmediatePropagation() // the stage stays
    return
  }
  if (document.querySelector("dialog:modal")) return // the room's
  const held = document.activeElement
  const to = leads(event.key, near(self), self.count, { writes: writes(held), busy: arrows(held, self.tabbed) })
  if (to === undefined) return
  event.preventDefault()
  event.stopPropagation()
  go(self, to)
}

/** Over the page, so that nobody reads the answer there first. */
function openQuestion(self) {
  const { question } = self.data
  if (!question) return
  self.asked.add(self.scene)
  const { ask } = self
  ask.setAttribute("aria-label", question.asked)
  const answers = element("div", "gf-tour-answers"), why = element("p", "gf-tour-why", "", { "aria-live": "polite" })
  const shown = button("Skip", "Close the question and show the page", () => { ask.hidden = true; reveal(self) })
  shown.className = "gf-tour-show"
  question.answers.forEach((/** @type {string} */ answer, /** @type {number} */ i) => {
    answers.append(button(answer, answer, () => {
      for (const [j, one] of [...answers.children].entries()) {
        one.classList.toggle("right", j === question.right)
        one.classList.toggle("wrong", j === i && j !== question.right)
      }
      why.textContent = `${i === question.right ? "Yes." : "Not quite."} ${question.why}`
      shown.textContent = "Show it"
    }))
  })
  const card = element("div", "gf-tour-card"), foot = element("div", "gf-tour-foot")
  // On a stage the phones in the room may answer it (stage.js listens): the lecturer need not write it again.
  const detail = { text: question.asked, answers: question.answers, right: question.right }
  const room = button("Ask the room", "Let phones answer this question", () => document.dispatchEvent(new CustomEvent("gf-ask-room", { detail })))
  room.className = "gf-tour-room"
  foot.append(shown, room)
  card.append(element("h2", "", question.asked), answers, why, foot)
  ask.replaceChildren(card)
  ask.hidden = false
}

function update(self, data) {
  const arrived = self.wanted < 0 || (data.at === self.wanted && !data.away)
  if (arrived) {
    clearTimeout(self.going)
    self.wanted = -1
  }
  Object.assign(self, { data, at: data.at, count: data.count, scene: data.scene })
  write(self.where, `${data.at + 1} of ${data.count}`)
  write(self.title, data.title)
  write(self.text, ` ${data.text}`)
  write(self.away, data.away ? `Back to ${data.away}` : "")
  self.bar.title = data.course
  self.away.hidden = !data.away
  self.question.hidden = !data.question
  self.speaks.hidden = !data.notes
  self.notes.write(data)
  self.back.disabled = data.at === 0
  const last = data.at + 1 === data.count
  self.on.setAttribute("aria-label", last ? "End of the course" : "Next scene")
  self.style.textContent = data.point
    ? `.st-key-${CSS.escape(data.point)} { outline: 3px solid var(--gf-tour-point); outline-offset: 3px; border-radius: 6px; }`
    : ""
  if (!arrived || self.shown === data.scene) return
  self.shown = data.scene
  self.ask.hidden = self.notes.root.hidden = true
  reveal(self)
  if (data.question && !self.asked.has(data.scene)) openQuestion(self)
}

// On a phone, and under an open fold, a page is longer than the screen: what a scene points at is scrolled to, as often as the
// page has grown above it, until somebody begins to look around.
function reveal(self, before = "", looks = LOOKS) {
  clearTimeout(self.revealing)
  if (!looks || !self.data.point) return
  const main = document.querySelector('[data-testid="stMain"]'), at = main?.querySelector(`.st-key-${CSS.escape(self.data.point)}`)
  const box = at?.getBoundingClientRect(), now = box && !running() && box.height > 1 ? `${box.top} ${box.height}` : ""
  if (main && box && now && now === before) {
    const from = document.querySelector('[data-testid="stHeader"]')?.getBoundingClientRect().bottom ?? 0
    main.scrollBy({ top: scrolledBy(box, from, self.bar.getBoundingClientRect().top, matchMedia(PHONE).matches ? 1 : ENOUGH) })
  }
  self.revealing = setTimeout(() => reveal(self, now, looks - 1), LOOK_MS)
}

function remove(self) {
  clearTimeout(self.going)
  clearTimeout(self.revealing)
  self.style.remove()
  document.documentElement.classList.remove(RUNS)
}

export default component({ create, update, remove })
