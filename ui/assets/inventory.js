// @ts-check
// A test in two forms, before and after: one question at a time, then both columns and what stayed. Alone all of it stays in this
// browser; in a room the answers to the open form go to the server, which counts them. See ui/inventory.py.

import { button, element, ROOT, within } from "./shared/dom.js"
import { component } from "./shared/mount.js"
import { browser } from "./shared/shelf.js"
import { answered, chosen, firstOpen, flagged, fresh, gained, marks, next, points, read, SHELF, stayed, written } from "./inventory_state.js"

/**
 * @typedef {import("./inventory_state.js").Question} Question
 * @typedef {object} Data
 * @property {string} who the test, or the room
 * @property {Question[][]} forms both; in a room those that may be seen
 * @property {number[][]} sizes
 * @property {{ form: number | null, open: boolean, held: (number | null)[] } | null} room
 * @property {Record<string, string>} words
 */

const FORMS = ["First form", "Second form"]
const PATIENCE_MS = 5000 // until an answer that did not arrive is sent once more
const MOST_STAYED = 5 // that are named; the table has all
const MARKS = { right: "✓", wrong: "✗", "": "–" }
const SAID = { right: "right", wrong: "not right", "": "left out" }

function create(place) {
  const root = within(place, "div", "gf-inv")
  return /** @type {any} */ ({ root, data: null, who: "", taken: null, at: 0, looked: -1, sent: "", sentAt: 0 })
}

function update(self, /** @type {Data} */ data) {
  const other = data.who !== self.who, before = self.shown
  Object.assign(self, { data, who: data.who, taken: read(browser.get(SHELF), data.who, data.sizes) })
  const { screen, form } = next(self.taken, data.room)
  recover(self)
  if (other || before !== `${screen} ${form}`) self.at = firstOpen(self.taken.answers[form])
  if (other) self.looked = -1
  draw(self)
}

/** A browser that keeps nothing has its answers from the server; one whose last answer did not arrive sends it again. */
function recover(self) {
  const { room } = self.data
  if (!room?.open) return
  const ours = self.taken.answers[room.form]
  if (!answered(ours) && room.held.length === ours.length) self.taken.answers[room.form] = room.held
  else if (answered(ours) && JSON.stringify(ours) !== JSON.stringify(room.held)) send(self, room.form)
}

/** @param {any} self @param {number} form */
function send(self, form) {
  const message = { form, answers: self.taken.answers[form] }, text = JSON.stringify(message)
  if (text === self.sent && Date.now() - self.sentAt < PATIENCE_MS) return // refused, or under way
  Object.assign(self, { sent: text, sentAt: Date.now() })
  self.trigger("answered", message)
}

function keep(self, /** @type {import("./inventory_state.js").Taken} */ taken) {
  self.taken = taken
  browser.put(SHELF, written(browser.get(SHELF), self.who, taken))
  draw(self)
}

function draw(self) {
  const { screen, form } = next(self.taken, self.data.room)
  const moved = self.shown !== `${screen} ${form}`
  self.shown = `${screen} ${form}`
  const parts = { start, form: question, done, between, wait, results }[screen](self, form)
  self.root.dataset.screen = screen
  self.root.replaceChildren(...parts)
  if (moved) self.root.scrollIntoView?.({ block: "nearest" })
}

const paragraph = (/** @type {string} */ text) => element("p", "gf-inv-text", text)

/** @param {HTMLElement[]} buttons */
function foot(...buttons) {
  const line = element("div", "gf-inv-foot")
  line.append(...buttons)
  return line
}

const main = (/** @type {HTMLElement} */ node) => (node.classList.add("gf-inv-main"), node)

function begin(self, form) {
  self.at = 0
  keep(self, { ...self.taken, begun: flagged(self.taken.begun, form) })
}

function start(self) {
  return [paragraph(self.data.words.start), foot(main(button("Start", "Start the first form", () => begin(self, 0))))]
}

function between(self) {
  const { taken, data } = self
  return [
    paragraph(data.words.between),
    foot(
      main(button("Take the second form", "Take the second form", () => begin(self, 1))),
      button("End here and see the answers", "End here and see the answers, without a second form", () => keep(self, { ...taken, ended: true })),
    ),
  ]
}

function wait(self) {
  const { room, words } = self.data
  return [paragraph(room.form === null ? words.wait : words["first closed"])]
}

function done(self, form) {
  const count = answered(self.taken.answers[form])
  const back = button("Look at my answers again", "Look at my answers again", () => {
    self.at = 0
    keep(self, { ...self.taken, done: self.taken.done.map((each, at) => each && at !== form) })
  })
  return [paragraph(`You answered ${count} of ${self.data.sizes[form].length}. ${self.data.words.done}`), foot(back)]
}

function question(self, form) {
  const { data, taken, at } = self, questions = /** @type {Question[]} */ (data.forms[form]), { title, text, options } = questions[at]
  const answers = taken.answers[form], last = at === questions.length - 1
  const head = element("div", "gf-inv-head")
  head.append(element("span", "gf-inv-form", FORMS[form]), element("span", "gf-inv-count", `Question ${at + 1} of ${questions.length}`), dots(self, form))
  const box = element("fieldset", "gf-inv-question"), legend = within(box, "legend")
  within(legend, "span", "gf-inv-title", title, { tabindex: -1 })
  within(legend, "span", "gf-inv-text", text)
  options.forEach((option, i) => {
    const label = within(box, "label", "gf-inv-option"), input = within(label, "input", "", "", { type: "radio", name: `${self.who}-${form}-${at}` })
    input.checked = answers[at] === i
    label.append(element("span", "", option.text))
    input.onclick = () => {
      keep(self, chosen(self.taken, form, at, i))
      self.root.querySelectorAll("input")[i]?.focus()
      if (data.room) send(self, form)
    }
  })
  const to = (/** @type {number} */ place) => { self.at = place; draw(self); self.root.querySelector(".gf-inv-title")?.focus() }
  const back = button("Back", "Back to the question before", () => to(at - 1))
  back.disabled = at === 0
  const skips = answers[at] === null, word = last ? "Finish" : skips ? "Leave out" : "Next"
  const said = last ? "Finish this form" : skips ? "Leave out this question, and go on" : "Next question"
  const on = main(button(word, said, () => (last ? finish(self, form) : to(at + 1))))
  return [head, box, foot(back, on)]
}

function finish(self, form) {
  self.at = 0
  keep(self, { ...self.taken, done: flagged(self.taken.done, form) })
}

function dots(self, form) {
  const line = element("span", "gf-inv-dots")
  self.data.forms[form].forEach((/** @type {Question} */ each, /** @type {number} */ i) => {
    const full = self.taken.answers[form][i] !== null
    const said = `Question ${i + 1}, ${each.title}: ${full ? "answered" : "not answered"}`
    const dot = button("", said, () => { self.at = i; draw(self) })
    dot.className = full ? "gf-inv-dot gf-inv-full" : "gf-inv-dot"
    dot.title = said
    if (i === self.at) dot.setAttribute("aria-current", "true")
    line.append(dot)
  })
  return line
}

function results(self) {
  const { data, taken } = self, forms = /** @type {Question[][]} */ (data.forms)
  const columns = [0, 1].map((form) => marks(forms[form], taken.answers[form])), all = forms[0].length
  const took = taken.answers.map((/** @type {any} */ each) => answered(each) > 0), kept = stayed(forms, taken)
  const table = element("table", "gf-inv-table"), head = within(within(table, "thead"), "tr")
  for (const name of ["Question", "Before", "After"]) within(head, "th", "", name, { scope: "col" })
  const body = within(table, "tbody")
  if (self.looked < 0) self.looked = Math.max(0, kept.length ? forms[1].findIndex(({ id }) => id === kept[0].question.id) : 0)
  forms[1].forEach(({ title }, at) => {
    const row = within(body, "tr", at === self.looked ? "gf-inv-looked" : "")
    const choose = button(`${at + 1}  ${title}`, `Question ${at + 1}, ${title}: show the answer`, () => { self.looked = at; draw(self); self.root.querySelectorAll("tbody button")[at]?.focus() })
    if (at === self.looked) choose.setAttribute("aria-current", "true")
    within(row, "th", "", "", { scope: "row" }).append(choose)
    columns.forEach((column, form) => within(row, "td", `gf-inv-${column[at] || "none"}`, took[form] ? MARKS[column[at]] : "", { "aria-label": took[form] ? SAID[column[at]] : "not taken" }))
  })
  const sum = within(within(table, "tfoot"), "tr")
  within(sum, "th", "", `Right, of ${all}`, { scope: "row" })
  columns.forEach((_, form) => within(sum, "td", "", took[form] ? String(points(forms[form], taken.answers[form])) : ""))
  const left = element("div", "gf-inv-left"), right = element("div", "gf-inv-side")
  left.append(table)
  right.append(...summary(self, kept, took), ...detail(self, self.looked))
  const two = element("div", "gf-inv-two")
  two.append(left, right)
  return [two]
}

function summary(self, kept, took) {
  const { data, taken } = self, [before, after] = [0, 1].map((form) => points(data.forms[form], taken.answers[form])), all = data.sizes[0].length
  const g = gained(before, after, all), words = []
  if (took[0] && took[1]) {
    words.push(`You went from ${before} to ${after} of ${all}.`)
    if (g > 0) words.push(`That is ${Math.round(100 * g)}% of what was missing.`)
  } else words.push(`You answered ${took[1] ? after : before} of ${all} right.`)
  const out = taken.answers.flat().filter((/** @type {number | null} */ each, /** @type {number} */ i) => each === null && took[Math.floor(i / all)]).length
  if (out) words.push(`${out} left out ${out === 1 ? "counts" : "count"} as not known.`)
  const line = element("div", "gf-inv-sum"), list = element("div", "gf-inv-stayed")
  within(line, "span", "", words.join(" "))
  if (!data.room) line.append(button("Forget", "Forget these answers in this browser", () => { self.looked = -1; keep(self, fresh(data.sizes)) }))
  if (!kept.length) return [line]
  within(list, "span", "", "What stayed: ")
  for (const { question: each, belief } of kept.slice(0, MOST_STAYED)) {
    const at = data.forms[1].findIndex((/** @type {Question} */ other) => other.id === each.id)
    const pill = button(belief, `${belief} Show the question`, () => { self.looked = at; draw(self) })
    if (at === self.looked) pill.setAttribute("aria-current", "true")
    list.append(pill)
  }
  return [line, list]
}

function detail(self, at) {
  const { data, taken } = self, form = answered(taken.answers[1]) ? 1 : 0, { title, text, options, right, reason, address, page } = /** @type {Question} */ (data.forms[form][at])
  const mine = taken.answers[form][at], box = element("section", "gf-inv-detail", "", { "aria-live": "polite" })
  within(box, "strong", "gf-inv-title", title)
  within(box, "p", "gf-inv-text", text)
  const list = within(box, "ul")
  options.forEach((option, i) => {
    const row = within(list, "li", i === right ? "gf-inv-right-option" : i === mine ? "gf-inv-wrong-option" : "")
    within(row, "span", "gf-inv-sign", i === right ? "✓" : i === mine ? "✗" : "", { "aria-hidden": "true" })
    const said = within(row, "span", "", option.text)
    if (i === mine) within(said, "em", "", i === right ? " your answer" : ` your answer: “${option.belief}”`)
  })
  const why = within(box, "p", "gf-inv-text", `${reason} `)
  if (address) within(why, "a", "", `See it: ${page}`, { href: new URL(address, ROOT).href })
  return [box]
}

export default component({ create, update })
