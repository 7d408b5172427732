// @ts-check
// The bar of a course: what is said, on and back, the question before the reveal, the speaker's notes; and the outline
// around what is pointed at. See ui/tour/bar.py. It stands at the bottom of the window, and the page ends above it.

import { button, element, within, write } from "./shared/dom.js"
import { component } from "./shared/mount.js"
import { leads } from "./tour_state.js"

const RUNS = "gf-tour-on" // on the root element, while a course runs
const WRITES = "input:not([type=range]):not([type=checkbox]):not([type=radio]):not([type=button]), textarea, [contenteditable=true]"
const MOVES = 'input, select, [role=slider], [role=radio], [role=tab], [role=option], [role=combobox], [tabindex="0"]'
const AGAIN = 700 // milliseconds after which a press that led nowhere is made again: a page that asks for something of its own
const TRIES = 8 //    at the same moment may have overtaken it

/** @param {HTMLElement} place */
function create(place) {
  const root = element("section", "gf-tour")
  root.setAttribute("aria-label", "Guided course")
  const self = { root, ended: new AbortController(), at: 0, count: 0, scene: "", going: 0, wanted: -1, data: null, asked: new Set() }
  const bar = within(root, "div", "gf-tour-bar")
  const ask = element("div", "gf-tour-ask"), notes = element("aside", "gf-tour-notes")
  ask.setAttribute("role", "dialog")
  notes.setAttribute("aria-label", "Notes for the speaker")
  const back = button("‹", "Previous scene", () => go(self, self.at - 1))
  const on = button("›", "Next scene", () => go(self, self.at + 1))
  const where = element("span", "gf-tour-where")
  const said = element("p", "gf-tour-said")
  said.setAttribute("aria-live", "polite")
  const title = within(said, "strong"), text = within(said, "span")
  const away = button("", "Back to the scene", () => go(self, self.at))
  const question = button("Question", "Show the question", () => openQuestion(self))
  const speaks = button("Notes", "Notes for the speaker", () => { notes.hidden = !notes.hidden })
  const end = button("End", "End the course", () => self.trigger?.("go", "end"))
  bar.append(back, where, on, said, away, question, speaks, end)
  root.prepend(ask, notes)
  const style = document.head.appendChild(element("style"))
  const size = new ResizeObserver(() => document.documentElement.style.setProperty("--gf-tour", `${bar.offsetHeight}px`))
  size.observe(bar)
  Object.assign(self, { bar, ask, notes, back, on, where, title, text, away, question, speaks, style, size })
  document.addEventListener("keydown", (event) => pressed(self, event), { signal: self.ended.signal, capture: true })
  document.documentElement.classList.add(RUNS)
  place.append(root)
  return self
}

function go(self, to) {
  clearTimeout(self.going)
  if (to >= self.count) return self.trigger?.("go", "end")
  if (to < 0) return
  self.wanted = to
  request(self, to, TRIES)
}

// Until another scene comes. What is asked for is a place, not a step: asked twice, it is the same place.
function request(self, to, tries) {
  self.trigger?.("go", to)
  self.going = setTimeout(() => again(self, to, tries - 1), AGAIN)
}

function again(self, to, tries) {
  const rests = document.querySelector('[data-testid="stApp"]')?.getAttribute("data-test-script-state") === "notRunning"
  if (tries > 0 && rests) request(self, to, tries)
  else if (tries > 0) self.going = setTimeout(() => again(self, to, tries), AGAIN)
}

/** @param {KeyboardEvent} event */
function pressed(self, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.defaultPrevented) return
  if (event.key === "Escape" && !(self.ask.hidden && self.notes.hidden)) {
    self.ask.hidden = self.notes.hidden = true
    return
  }
  const held = document.activeElement
  const busy = !!held?.closest(MOVES) && !held.matches('[data-testid="stMain"]')
  const to = leads(event.key, self.at, self.count, { writes: !!held?.matches(WRITES), busy })
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
  const answers = element("div", "gf-tour-answers"), why = element("p", "gf-tour-why")
  why.setAttribute("aria-live", "polite")
  const shown = button("Skip", "Close the question and show the page", () => { ask.hidden = true })
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
  const detail = { text: question.asked, answers: question.answers }
  const room = button("Ask the room", "Let phones answer this question", () => document.dispatchEvent(new CustomEvent("gf-ask-room", { detail })))
  room.className = "gf-tour-room"
  foot.append(shown, room)
  card.append(element("h2", "", question.asked), answers, why, foot)
  ask.replaceChildren(card)
  ask.hidden = false
}

function update(self, data) {
  const fresh = data.scene !== self.scene
  if (data.at === self.wanted && !data.away) clearTimeout(self.going)
  Object.assign(self, { data, at: data.at, count: data.count, scene: data.scene })
  write(self.where, `${data.at + 1} of ${data.count}`)
  write(self.title, data.title)
  write(self.text, ` ${data.text}`)
  write(self.away, data.away ? `Back to ${data.away}` : "")
  self.bar.title = data.course
  self.away.hidden = !data.away
  self.question.hidden = !data.question
  self.speaks.hidden = !data.notes
  self.notes.textContent = data.notes
  self.back.disabled = data.at === 0
  const last = data.at + 1 === data.count
  self.on.setAttribute("aria-label", last ? "End of the course" : "Next scene")
  self.style.textContent = data.point
    ? `.st-key-${CSS.escape(data.point)} { outline: 3px solid var(--gf-tour-point); outline-offset: 3px; border-radius: 6px; }`
    : ""
  if (!fresh) return
  self.ask.hidden = self.notes.hidden = true
  if (data.question && !self.asked.has(data.scene)) openQuestion(self)
}

function remove(self) {
  clearTimeout(self.going)
  self.ended.abort()
  self.size.disconnect()
  self.style.remove()
  document.documentElement.classList.remove(RUNS)
}

export default component({ create, update, remove })
