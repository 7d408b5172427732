// @ts-check
// The training-time scrubber: a slider over a run's snapshots, with its training loss drawn behind. See ui/players/scrubber.py.

import { within } from "./shared/dom.js"
import { component } from "./shared/mount.js"
import { asker, playButton } from "./shared/play.js"
import { after, marked, place, points, wanted, words } from "./scrubber_state.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {number[]} steps the snapshots, ascending
 * @property {(number | null)[]} losses
 * @property {import("./scrubber_state.js").Mark[]} marks
 * @property {number} shown the step that the page has drawn, or NEWEST
 * @property {string} run
 */

const ANSWER_MS = 1500 // a picture that has not come by then is not waited for any longer
const REST_MS = 120 // while it plays, a picture stands so long at least

function create(parent) {
  const root = within(parent, "div", "gf-scrubber")
  root.innerHTML = `
    <button type="button" class="gf-scrub-play"></button>
    <div class="gf-scrub-track"><svg preserveAspectRatio="none" viewBox="0 0 1000 100" aria-hidden="true"><polyline class="gf-scrub-line"/><polyline class="gf-scrub-done"/></svg>
      <div class="gf-scrub-marks" aria-hidden="true"></div>
      <input type="range" min="0" step="1"></div>
    <output class="gf-scrub-where"></output><button type="button" class="gf-scrub-film" title="Save this view through the training as a video">Film</button>`
  const find = (name) => root.querySelector(name)
  const self = {
    root, button: find(".gf-scrub-play"), film: find(".gf-scrub-film"), slider: find("input"), line: find(".gf-scrub-line"), done: find(".gf-scrub-done"), where: find("output"),
    marks: [], marked: find(".gf-scrub-marks"), steps: [], losses: [], run: "", index: 0, playing: false, send: null, question: null, shown: NaN, drew: () => {},
  }
  self.question = asker(() => wanted(self.steps, self.index), (step) => self.trigger("step", step), ANSWER_MS) // an event: the server keeps the step (ui/training_step.py)
  self.slider.setAttribute("aria-label", "Training time: the step whose model is shown")
  self.slider.oninput = () => { stop(self); go(self, Number(self.slider.value)) }
  self.button.onclick = () => (self.playing ? stop(self) : play(self))
  self.film.onclick = () => filmed(self)
  stop(self)
  return self
}

function play(self) {
  self.playing = true
  playButton(self.button, true)
  if (self.index >= self.steps.length - 1) go(self, 0)
  else advance(self)
}

function stop(self) {
  self.playing = false
  playButton(self.button, false, "Play through the training")
}

function advance(self) {
  if (!self.playing) return
  if (self.index >= self.steps.length - 1) return stop(self)
  go(self, self.index + 1)
}

function go(self, index) {
  self.index = index
  draw(self)
  self.question.ask()
}

const PATIENCE_MS = 60_000 // for one picture of a film
const AGAIN_MS = 8_000 // a question that got lost is asked again by then

async function filmed(self) {
  stop(self)
  const before = wanted(self.steps, self.index), { steps, run } = self
  const show = (step) => new Promise((resolve, reject) => {
    const timer = setTimeout(() => { clearInterval(again); reject(new Error("no picture")) }, PATIENCE_MS)
    const again = setInterval(() => { self.question.forget(); self.question.settle(null); self.question.ask() }, AGAIN_MS)
    self.drew = () => {
      if (self.question.waiting() || self.shown !== wanted(self.steps, self.index)) return
      clearTimeout(timer)
      clearInterval(again)
      self.drew = () => {}
      resolve(words(self, self.index))
    }
    go(self, place(self.steps, step))
    self.drew()
  })
  const { film } = await import("./film.js")
  await film(self.film, { name: run, steps, show, back: () => go(self, place(self.steps, before)) })
}

function draw(self) {
  const { steps, losses, index, slider } = self
  const last = steps.length - 1
  slider.max = String(Math.max(last, 0))
  slider.value = String(index)
  slider.disabled = last < 1
  self.button.disabled = self.film.hidden = last < 1
  const said = words(self, index)
  self.where.textContent = said
  slider.setAttribute("aria-valuetext", said)
  const text = (some) => some.map((p) => p.map((n) => n.toFixed(1)).join(",")).join(" ")
  const line = points(losses)
  self.line.setAttribute("points", text(line))
  self.done.setAttribute("points", text(line.filter(([x]) => x <= (1000 * index) / Math.max(last, 1) + 0.01)))
}

/**
 * @param {any} self
 * @param {Data} data
 * @param {boolean} fresh
 */
function update(self, data, fresh) {
  const moving = !fresh && self.run === data.run && self.question.waiting()
  self.index = after(self, data, moving)
  Object.assign(self, { run: data.run, steps: data.steps, losses: data.losses, shown: data.shown })
  mark(self, data.marks ?? [])
  if (!moving) self.question.settle(data.shown)
  if (self.question.answered(data.shown) && self.playing) setTimeout(() => advance(self), REST_MS)
  draw(self)
  self.drew()
}

/** Names at the steps where something happened; they are drawn again only where they are others. */
function mark(self, marks) {
  self.marks = marks
  const found = marked(self.steps, marks, self.marked.clientWidth || 900), said = JSON.stringify(found)
  if (said === self.marked.dataset.said) return
  self.marked.dataset.said = said
  self.marked.replaceChildren(...found.map(({ at, side, short }) => {
    const name = document.createElement("span")
    name.textContent = side === "none" ? "" : short
    name.style.left = `${at}%`
    name.dataset.side = side
    return name
  }))
}

function remove(self) {
  self.question.forget()
  self.playing = false
}

export default component({ create, update, remove })
