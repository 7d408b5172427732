// @ts-check
// The training-time scrubber: a slider over a run's snapshots, with its training loss drawn behind. See ui/players/scrubber.py.

import { within } from "./shared/dom.js"
import { component } from "./shared/mount.js"
import { asker, frames, playButton } from "./shared/play.js"
import { createTrack, drawTrack, said } from "./shared/track.js"
import { after, place, wanted } from "./scrubber_state.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {number[]} steps the snapshots, ascending
 * @property {(number | null)[]} losses
 * @property {import("./scrubber_state.js").Mark[]} marks
 * @property {number} shown the step that the page has drawn, or NEWEST
 * @property {string} run
 */

const REST_MS = 120 // while it plays, a picture stands so long at least

function create(parent) {
  const root = within(parent, "div", "gf-scrubber")
  root.innerHTML = `
    <button type="button" class="gf-scrub-play"></button>
    <output class="gf-scrub-where"></output><button type="button" class="gf-scrub-film" title="Save this view over training as a video">Film</button>`
  const find = (name) => root.querySelector(name), track = createTrack("Training step of the model shown")
  find(".gf-scrub-play").after(track.root)
  const self = {
    root, track, slider: track.slider, button: find(".gf-scrub-play"), film: find(".gf-scrub-film"), where: find("output"),
    marks: [], steps: [], losses: [], run: "", index: 0, playing: false, send: null, question: null, shown: NaN, drew: () => {},
  }
  self.question = asker(() => wanted(self.steps, self.index), (step) => self.trigger("step", step), () => self.again()) // an event: the server keeps the step (ui/training_step.py)
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
  playButton(self.button, false, "Play through training")
}

function advance(self) {
  if (!self.playing) return
  if (self.index >= self.steps.length - 1) return stop(self)
  go(self, self.index + 1)
}

function go(self, index) {
  self.index = index
  self.question.ask() // the server is at work on it while the browser lays the slider out
  draw(self)
}

const PATIENCE_MS = 60_000 // for one picture of a film
const AGAIN_MS = 8_000 // a question that got lost is asked again by then

async function filmed(self) {
  stop(self)
  const before = wanted(self.steps, self.index), { steps, run } = self
  const show = (step) => new Promise((resolve, reject) => {
    const index = () => place(self.steps, step)
    const timer = setTimeout(() => { clearInterval(again); reject(new Error("no picture")) }, PATIENCE_MS)
    const again = setInterval(() => { self.question.forget(); go(self, index()) }, AGAIN_MS)
    self.drew = () => {
      if (self.question.waiting() || self.shown !== wanted(self.steps, index())) return
      clearTimeout(timer)
      clearInterval(again)
      self.drew = () => {}
      resolve(said(self, self.index))
    }
    go(self, index())
    self.drew()
  })
  const { film } = await import("./film.js")
  await film(self.film, { name: run, steps, show, back: () => go(self, place(self.steps, before)) })
}

function draw(self) {
  const single = self.steps.length < 2, where = said(self, self.index)
  drawTrack(self.track, self, self.index)
  self.slider.disabled = self.button.disabled = self.film.hidden = single
  self.where.textContent = where
  self.slider.setAttribute("aria-valuetext", where)
}

function update(self, /** @type {Data} */ data, fresh) {
  const waited = self.question.waiting(), moving = !fresh && self.run === data.run && waited
  self.index = after(self, data, moving)
  Object.assign(self, { run: data.run, steps: data.steps, losses: data.losses, shown: data.shown, marks: data.marks ?? [] })
  if (!moving) self.question.forget()
  if (self.question.answered(data.shown) && waited && self.playing) frames(() => 1000 / REST_MS, () => { advance(self); return false })
  draw(self)
  self.drew()
}

function remove(self) {
  self.question.forget()
  self.playing = false
}

export default component({ create, update, remove })
