// @ts-check
// A text as a model writes it: played, stepped, and gone on with otherwise. The server writes in batches, when it is asked;
// everything over tokens that are already here happens in the browser. See pages/output/generation/token_by_token.py and session.py;
// writer_draw.js puts it on the screen.

import { alone, around, within } from "../../../ui/assets/shared/dom.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { frames, still } from "../../../ui/assets/shared/play.js"
import { saveTools } from "../../../ui/assets/shared/save.js"
import { createBar } from "../../../ui/assets/shared/stepper.js"
import { paint } from "../../../ui/assets/shared/theme.js"
import { copy, draw, hover, label, legend, table } from "./writer_draw.js"
import { ended, known, pathOf, sealed } from "./writer_state.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {string} session
 * @property {string} nodes JSON of the tokens from `from` on
 * @property {number} from
 * @property {Record<string, [string, string]>} words tokens as shown, and their bytes in hex
 * @property {number[] | null} prompt
 * @property {number[]} leaves
 * @property {Record<string, [number, string]>} ends by leaf: tokens that count, and why it ends
 * @property {number | null} leaf
 * @property {number} at
 * @property {number} move grows when the server moved the reader
 * @property {string} asked the id of what this answers
 * @property {boolean} fresh
 * @property {number} todo branches of the link that are not written yet
 * @property {string} said
 * @property {number} length
 * @property {string} stop
 * @property {number} context
 * @property {number} vocab
 * @property {import("../../../ui/assets/shared/colours.js").Palette} palette
 */

const AHEAD = 64 // tokens that are asked for before they are needed, while playing; a quarter of them while stepping
const REST_MS = 500 // after the last move, where the reader stands goes into the link
const ANSWER_MS = 8000 // an answer that has not come by then is asked for again
const SPEEDS = [2, 5, 15, 40, 0] // tokens per second; 0: as fast as frames come

const TEMPLATE = `
  <div class="gf-writer-two">
    <div class="gf-writer-left">
      <div class="gf-writer-text gf-text" tabindex="0" role="group" aria-label="The text. Arrow keys step, space plays, a click selects a token."></div>
      <div class="gf-writer-legend"></div>
      <p class="gf-writer-said" aria-live="polite"></p>
      <p class="gf-writer-window"></p>
    </div>
    <div class="gf-writer-panel">
      <p class="gf-writer-title" data-is="which"></p>
      <div class="gf-writer-list gf-text-cells"></div>
      <p class="gf-writer-note">Upper bar: the model; lower: with the settings.</p>
      <form class="gf-writer-other" data-unsaved><input type="text" aria-label="Another token" placeholder="Another token" maxlength="200" autocomplete="off" spellcheck="false"><button type="submit" aria-label="Continue with it">Continue</button></form>
      <p class="gf-writer-note gf-writer-answer" aria-live="polite"></p>
    </div>
  </div>
  <details class="gf-writer-more"><summary>Probability, branches, copy</summary>
  <div class="gf-writer-facts"></div>
  <div class="gf-writer-tree"><p class="gf-writer-title" data-is="branches"></p><div class="gf-writer-lanes"><svg aria-hidden="true"></svg><ol></ol></div></div>
  <div class="gf-writer-files" data-unsaved><button type="button" data-do="copy">Copy the text</button></div></details>`

function create(place) {
  const root = within(place, "div", "gf-writer")
  root.innerHTML = TEMPLATE
  const find = (name) => root.querySelector(name)
  /** @type {any} */
  const self = {
    root, more: find("details"), text: find(".gf-writer-text"),
    said: find(".gf-writer-said"), window: find(".gf-writer-window"), list: find(".gf-writer-list"), which: find("[data-is=which]"), facts: find(".gf-writer-facts"),
    branches: find("[data-is=branches]"), lanes: find("svg"), rows: find("ol"), legend: find(".gf-writer-legend"), form: find("form"),
    other: find("form input"), answer: find(".gf-writer-answer"),
    session: null, nodes: [], words: {}, prompt: [], leaves: [], ends: {}, leaf: null, at: 0, path: [], cells: [], move: -1, hover: -1, panelOf: "", treeOf: "",
    client: Math.random().toString(36).slice(2, 10), asks: 0, waiting: null, queue: [], told: "", timer: 0, retry: 0, playing: null, toEnd: false,
    stepping: false, todo: 0, side: 0, whole: (data) => whole(self, data),
  }
  self.does = {
    step: (at) => step(self, at),
    pick: (after, token) => { stop(self); self.toEnd = false; command(self, { do: "pick", after, token }) },
    drop: (branch) => { stop(self); self.stepping = true; command(self, { do: "delete", branch }) },
    visit: (leaf) => visit(self, leaf),
  }
  const does = {
    first: () => step(self, 0), back: () => step(self, self.at - 1), play: () => toggle(self), next: () => step(self, self.at + 1),
    last: () => { stop(self); self.toEnd = !ended(self); label(self); show(self, known(self)); pump(self) },
  }
  self.line = createBar({ unit: "token", label: "Tokens shown", speeds: SPEEDS }, does, (at) => step(self, at))
  self.line.speed.value = "15"
  root.prepend(self.line.bar)
  find("[data-do=copy]").onclick = (/** @type {Event} */ event) => copy(self, event.currentTarget)
  find(".gf-writer-two").prepend(saveTools(root, () => "generation-tokens", () => table(self)))
  root.addEventListener("keydown", (event) => {
    const on = /** @type {HTMLElement} */ (event.target), typing = on.matches("input[type=text], select")
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return
    if (on === self.line.slider) return
    if (event.key === " " && !on.matches("button")) toggle(self)
    else if (event.key === "ArrowRight") step(self, self.at + 1)
    else if (event.key === "ArrowLeft") step(self, self.at - 1)
    else if (event.key === "Home" && on === self.text) step(self, 0)
    else if (event.key === "End" && on === self.text) step(self, known(self))
    else return
    event.preventDefault()
  })
  const cellAt = (event) => self.cells.indexOf(around(event, ".gf-writer-token"))
  self.text.addEventListener("click", (event) => { const i = cellAt(event); if (i >= 0) step(self, i + 1) })
  self.text.addEventListener("pointerover", (event) => { if (event.pointerType === "mouse") hover(self, cellAt(event)) })
  self.text.addEventListener("pointerleave", () => hover(self, -1))
  self.form.onsubmit = (event) => {
    event.preventDefault()
    const i = self.at - 1
    if (i < 0 || !self.other.value) return
    command(self, { do: "pick", after: i ? self.path[i - 1] : null, text: self.other.value })
    self.other.value = ""
  }
  return self
}

// Where we are ----------------------------------------------------------------------------------------------------------

function step(self, at) {
  self.stepping = true
  stop(self)
  self.toEnd = false
  show(self, at)
}

function show(self, at) {
  self.at = Math.max(0, Math.min(known(self), at))
  for (let i = 0; i < self.at; i++) self.nodes[self.path[i]].seen = true
  draw(self)
  rest(self)
  pump(self)
}

function visit(self, leaf) {
  stop(self)
  self.toEnd = false
  self.leaf = leaf
  self.path = pathOf(self, leaf)
  const unseen = self.path.findIndex((index) => !self.nodes[index].seen)
  show(self, unseen < 0 ? self.path.length : unseen)
}

function toggle(self) {
  self.stepping = false
  if (self.toEnd) { self.toEnd = false; label(self); draw(self); rest(self) } // as far as it has come
  else if (self.playing) { stop(self); draw(self); rest(self) } else play(self)
}

function play(self) {
  if (self.todo) return
  if (self.at >= known(self) && ended(self)) { if (!known(self)) return; self.at = 0 }
  if (still()) { self.toEnd = true; return show(self, known(self)) }
  self.playing?.stop()
  self.playing = frames(() => Number(self.line.speed.value), (steps) => {
    if (self.at < known(self)) show(self, self.at + steps)
    else if (!ended(self)) pump(self)
    else { stop(self); draw(self); rest(self) }
  })
  self.said.textContent = "Playing."
  label(self)
}

function stop(self) {
  self.playing?.stop()
  self.playing = null
  label(self)
}

// Asking the server: one thing at a time --------------------------------------------------------------------------------

function command(self, what) {
  self.queue.push(what)
  pump(self)
}

function rest(self) {
  clearTimeout(self.timer)
  if (self.playing) return
  self.timer = setTimeout(() => pump(self, true), REST_MS)
}

function pump(self, rested) {
  if (self.waiting || !self.session || alone()) return
  const wanted = self.toEnd ? self.length : Math.min(self.length, self.at + (self.playing ? AHEAD : AHEAD / 4))
  const at = `${self.session} ${self.leaf} ${self.at}`
  if (self.todo) send(self, { do: "more" })
  else if (self.queue.length) send(self, self.queue.shift())
  else if (!ended(self) && known(self) < wanted) send(self, { do: "more" })
  else if (rested && at !== self.told) { self.told = at; send(self, { do: "look" }) }
}

function send(self, what) {
  const ask = { id: `${self.client}-${++self.asks}`, session: self.session, have: self.nodes.length, leaf: self.leaf, at: self.at, ...what }
  self.waiting = { id: ask.id, what }
  clearTimeout(self.retry)
  self.retry = setTimeout(() => {
    self.waiting = null
    if (what.do === "pick" || what.do === "delete") self.queue.unshift(what)
    pump(self)
  }, ANSWER_MS)
  self.send("ask", ask)
}

function take(self, data) {
  if (data.session !== self.session) {
    stop(self)
    Object.assign(self, { session: data.session, nodes: [], words: {}, leaf: null, at: 0, path: [], waiting: null, queue: [], toEnd: false, told: "", move: -1, treeOf: "" })
    self.cells.forEach((cell) => cell.remove())
    self.cells = []
    self.fresh = true
  }
  if (data.prompt && String(data.prompt) !== String(self.prompt)) self.prompt = data.prompt
  Object.assign(self.words, data.words)
  JSON.parse(data.nodes).forEach((sent, i) => {
    const [parent, token, drawn, begin, log, q, list] = sent
    if (data.from + i !== self.nodes.length) return
    const others = []
    for (let j = 0; j < list.length; j += 3) others.push({ token: list[j], p: list[j + 1], q: list[j + 2] })
    self.nodes.push({ parent: parent < 0 ? null : parent, token, drawn, begin, log: log ?? NaN, p: log === null ? NaN : Math.exp(log), q, others, seen: false, sent })
  })
  if (self.waiting && data.asked === self.waiting.id) { self.waiting = null; clearTimeout(self.retry) }
  if (data.from > self.nodes.length) return send(self, { do: "look" }) // told of another page's asking: what is missing comes with the answer
  self.leaves = data.leaves.filter((leaf) => leaf < self.nodes.length)
  Object.assign(self, { ends: alone() ? sealed(self, data.ends) : data.ends, length: data.length, stopAt: data.stop, context: data.context, vocab: data.vocab })
  if (self.fresh && !data.fresh) self.nodes.forEach((node) => { node.seen = true }) // they were there before this page was
  self.todo = alone() ? 0 : data.todo
  const moved = data.move !== self.move
  if (moved || self.leaf === null) {
    self.move = data.move
    self.leaf = data.leaf
    if (moved) self.at = data.at
  } else if (!self.leaves.includes(self.leaf)) {
    self.leaf = self.leaves.find((leaf) => pathOf(self, leaf).includes(self.leaf)) ?? data.leaf
  }
  self.path = self.leaf === null ? [] : pathOf(self, self.leaf)
  self.answer.textContent = data.said
  const first = self.fresh
  self.fresh = self.fresh && data.todo > 0
  self.at = moved && alone() ? known(self) : Math.min(self.at, known(self)) // a saved file shows all of it
  show(self, self.toEnd ? known(self) : self.at)
  if (self.toEnd && ended(self)) { self.toEnd = false; label(self); rest(self) }
  if (still() || alone()) return
  if (first && data.fresh) play(self)
  else if (moved && !first && !self.stepping && !self.playing && self.at < self.length) play(self)
}

/** All that has been written, as if it had come at once: for a saved file. */
const whole = ({ nodes, words, prompt }, data) => (data.from ? { ...data, from: 0, nodes: JSON.stringify(nodes.map(({ sent }) => sent)), words, prompt } : data)

function update(self, /** @type {Data} */ data) {
  self.palette = data.palette
  self.side = paint(self.root, data.palette, ["attention", "output"])
  legend(self)
  take(self, data)
}

function remove(self) {
  stop(self)
  clearTimeout(self.timer)
  clearTimeout(self.retry)
}

export default component({ create, update, remove })
