// @ts-check
// The room answers: a lecturer writes a question, phones choose, and the bars grow here.

import { button, element, resize, running, vector, within, write } from "./shared/dom.js"
import { bars, rightAnswer, shifted } from "./stage_state.js"

const LOOK_MS = 1000 // between two looks at the counts
const LETTERS = "ABCDE"
const percent = (/** @type {number} */ share) => `${Math.round(100 * share)}%`

/** @param {HTMLElement} host @param {(done: object) => void} send */
export function createRoom(host, send) {
  const dialog = within(host, "dialog", "gf-room", "", { "aria-label": "Ask the room" })
  const form = within(dialog, "form", "gf-room-form")
  within(form, "p", "gf-room-head", "Ask the room")
  const text = within(within(form, "label", "", "Question"), "textarea", "", "", { rows: 2, maxlength: 200 })
  const answers = within(within(form, "label", "", "Answers, one per line (2 to 5)"), "textarea", "", "", { rows: 5, maxlength: 450 })
  const said = within(form, "p", "gf-room-said", "", { role: "status" }), buttons = within(form, "div", "gf-room-buttons")
  within(buttons, "button", "gf-room-main", "Ask", { type: "submit" })
  buttons.append(button("Cancel", "Close without asking", () => dialog.close()))
  const live = within(dialog, "div", "gf-room-live")
  const head = within(live, "p", "gf-room-head"), body = within(live, "div", "gf-room-body"), list = within(body, "ol", "gf-room-bars"), way = within(body, "div", "gf-room-way")
  const shift = within(live, "p", "gf-room-shift"), why = within(live, "p", "gf-room-why"), total = within(live, "p", "gf-room-total"), foot = within(live, "div", "gf-room-buttons")
  const closing = button("Close the question", "No more answers", () => send({ do: "close" }))
  const again = button("Vote again", "Put the same question a second time; this vote stays beside it", () => send({ do: "again" }))
  const telling = button("Show the answer", "Mark the right answer, and say why", () => reveal(self))
  foot.append(closing, again, telling, button("Next question", "Ask the same room another question", () => { self.writing = true; show(self); look(self) }), button("Close room", "Forget the room and its answers", () => { send({ do: "end" }); dialog.close() }), button("Hide", "Hide the answers; the room stays open", () => dialog.close()))
  /** @type {any} */
  const self = { dialog, form, text, answers, said, live, head, list, way, why, shift, total, closing, again, telling, told: 0, back: false, rows: [], room: null, given: null, writing: false, timer: 0, send }
  form.onsubmit = (event) => {
    event.preventDefault()
    self.writing = false
    send({ do: "ask", text: text.value, answers: answers.value.split("\n") })
  }
  dialog.addEventListener("close", () => {
    look(self)
    const { back } = self
    self.back = false
    // A course goes on behind its question, or back to it.
    if (back || (self.room && !self.writing)) document.dispatchEvent(new CustomEvent("gf-room-left", { detail: back ? -1 : 1 }))
  })
  return self
}

/** @param {any} self @param {{ text: string, answers: string[], right: number, why: string }} [given] a question that is written already: one of a course */
export function openRoom(self, given) {
  const asked = !!given && self.room?.text === given.text && self.room.answers.join("\n") === given.answers.join("\n")
  self.writing = !asked && (!self.room || !!given)
  if (given) {
    self.given = given
    self.text.value = given.text
    self.answers.value = given.answers.join("\n")
  }
  if (!self.dialog.open) self.dialog.showModal()
  show(self)
  look(self)
}

/**
 * A presenter's keys: on asks what a course has written, closes the question, shows the answer, and goes on; back leaves the room,
 * which stays open.
 * @param {any} self
 * @param {number} by
 * @returns {boolean} whether there is a room to lead
 */
export function leadRoom(self, by) {
  if (!self.dialog.open) return false
  if (by < 0) { self.back = true; self.dialog.close() }
  else if (!self.form.hidden) self.form.requestSubmit()
  else if (self.room?.open) self.send({ do: "close" })
  else if (hides(self)) reveal(self)
  else self.dialog.close()
  return true
}

// After a first vote the answer waits: the room may talk, and vote again. `told` is the number of the question that was answered.
const hides = (self) => rightAnswer(self.room, self.given) >= 0 && !self.room.before.length && self.told !== self.room.number

function reveal(self) {
  self.told = self.room.number
  show(self)
}

// Looks for as long as answers may come; a look that finds nothing new brings no message. Not while the page is being
// made: that would end its run, and leave a blank page.
function look(self) {
  const wanted = self.dialog.open && self.room?.open && !self.writing
  if (wanted) self.timer ||= setInterval(() => { if (!running()) self.send({ do: "look", at: performance.now() }) }, LOOK_MS)
  else { clearInterval(self.timer); self.timer = 0 }
}

/** @param {any} self @param {any} room @param {string} said */
export function updateRoom(self, room, said) {
  self.room = room
  if (said) self.writing = true
  write(self.said, said)
  if (!self.dialog.open) return
  show(self)
  look(self)
}

function show(self) {
  const { room } = self, writing = self.writing || !room
  self.form.hidden = !writing
  self.live.hidden = writing
  if (writing) return
  write(self.head, room.text)
  resize(self.rows, room.answers.length, () => {
    const row = within(self.list, "li"), label = within(row, "span", "gf-room-answer"), first = within(row, "div", "gf-room-first"), was = within(first, "div", "gf-room-bar")
    const bar = within(within(row, "div", "gf-room-track"), "div", "gf-room-bar"), count = within(row, "span", "gf-room-count")
    return { row, label, first, was, bar, count, remove: () => row.remove() }
  })
  const second = room.before.length > 0, right = hides(self) ? -1 : rightAnswer(room, self.given), before = bars(room.before)
  self.live.classList.toggle("open", room.open)
  // Bars that grow while people vote tell those who have not.
  bars(room.open ? room.counts.map(() => 0) : room.counts).forEach(({ count, share }, i) => {
    const row = self.rows[i]
    write(row.label, `${LETTERS[i]}  ${room.answers[i]}${i === right ? " ✓" : ""}`)
    row.row.classList.toggle("right", i === right)
    row.bar.style.width = `${100 * share}%`
    row.first.hidden = !second
    if (second) row.was.style.width = `${100 * before[i].share}%`
    write(row.count, second ? `${percent(before[i].share)} → ${room.open ? "?" : percent(share)}` : room.open ? "" : `${count} · ${percent(share)}`)
  })
  write(self.why, right < 0 ? "" : self.given.why)
  const all = room.counts.reduce((sum, n) => sum + n, 0)
  write(self.total, `${second ? "Second vote: " : ""}${all} ${all === 1 ? "answer" : "answers"}${room.open ? "" : " · closed"}`)
  write(self.shift, shifted(room, right))
  self.closing.hidden = !room.open
  self.telling.hidden = !hides(self)
  self.again.hidden = room.open || second || right >= 0
  self.way.dataset.room = room.room
  if (self.way.dataset.address !== room.address) {
    self.way.dataset.address = room.address
    self.way.replaceChildren(...(room.code.path ? [squares(room.code, "To the room's question")] : []), element("p", "", room.address), element("p", "gf-room-note", room.note))
  }
}

/** A QR code. @param {{ size: number, path: string }} code @param {string} label */
export function squares(code, label) {
  const drawing = vector("svg", { viewBox: `0 0 ${code.size} ${code.size}`, class: "gf-code", role: "img", "aria-label": label, "shape-rendering": "crispEdges" })
  vector("rect", { width: code.size, height: code.size, fill: "#ffffff" }, drawing)
  vector("path", { d: code.path, fill: "#000000" }, drawing)
  return drawing
}
