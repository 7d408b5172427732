// @ts-check
// The training-time scrubber: a slider over a run's snapshots, with its training loss drawn behind. See ui/players/scrubber.py.

import { htmlOver } from "./shared/answer.js"
import { ROOT, within } from "./shared/dom.js"
import { component, handOut } from "./shared/mount.js"
import { asker, frames, playButton } from "./shared/play.js"
import { counted } from "./load.js"
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
 * @property {string} frames what to ask ui/frames.py for, where nothing but figures differs from step to step
 */

const SETTLE_MS = 250 // the hand has rested for so long: now the page follows, with its address and its tables
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
    marks: [], steps: [], losses: [], run: "", index: 0, playing: false, filming: false, send: null, question: null, shown: NaN, drew: () => {},
    frames: "", pictures: null, picture: null, past: true, resting: 0, rested: null, ahead: null,
  }
  self.pictures = asker(() => wanted(self.steps, self.index), (step) => pictured(self, step), () => {})
  self.question = asker(() => wanted(self.steps, self.index), (step) => self.trigger("step", step), () => self.again()) // an event: the server keeps the step (ui/training_step.py)
  self.slider.oninput = () => { stop(self); go(self, Number(self.slider.value)) }
  self.button.onclick = () => (self.playing ? stop(self) : play(self))
  self.film.onclick = () => filmed(self)
  stop(self)
  return self
}

function play(self) {
  Object.assign(self, { playing: true, past: true })
  playButton(self.button, true)
  if (self.index >= self.steps.length - 1) go(self, 0)
  else advance(self)
}

function stop(self) {
  if (self.playing && pastPage(self)) rest(self)
  self.playing = false
  playButton(self.button, false, "Play through training")
}

function advance(self) {
  if (!self.playing) return
  if (self.index >= self.steps.length - 1) return stop(self)
  go(self, self.index + 1)
}

// Whether figures and answer come past Streamlit; what plays on where they cannot stays with the page.
const pastPage = (self) => self.frames && !self.filming && (self.past || !self.playing)

function go(self, index) {
  self.index = index
  if (pastPage(self)) {
    self.pictures.ask()
    if (self.playing) busy(self)
    else rest(self)
  } else askPage(self) // the server is at work on it while the browser lays the slider out
  draw(self)
}

// Until the page follows, the browser counts as at work.
function busy(self) {
  if (!self.rested) counted(new Promise((resolve) => { self.rested = resolve }))
}

// Has the page follow once the hand has rested.
function rest(self) {
  clearTimeout(self.resting)
  busy(self)
  self.resting = setTimeout(() => askPage(self), SETTLE_MS)
}

function askPage(self) {
  clearTimeout(self.resting)
  self.resting = 0
  self.question.ask()
  if (!self.question.waiting()) settled(self) // the page is at that step
  rested(self)
}

function rested(self) {
  self.rested?.()
  self.rested = null
}

// What figures show at a step, past Streamlit.
async function fetched(self, step) {
  const address = new URL(`live/frame/${self.frames}?step=${step}`, ROOT)
  const picture = await fetch(address, { cache: "no-store" }).then((answer) => (answer.status === 200 ? answer.json() : null)).catch(() => null)
  return picture ?? { whole: false }
}

// The server draws one picture of a tab at a time.
async function met(self, step) {
  const { ahead } = self, picture = await ahead?.picture
  self.ahead = null
  return ahead?.step === step || !self.frames ? (picture ?? { whole: false }) : fetched(self, step)
}

// While it plays, the next picture is on its way as long as one stands: a slow network does not slow it.
function lookAhead(self) {
  if (self.index + 1 >= self.steps.length) return
  const step = wanted(self.steps, self.index + 1)
  self.ahead = { step, picture: fetched(self, step) }
}

// Where the page has to be drawn for a step, it is asked at once.
async function pictured(self, step) {
  const picture = await met(self, step)
  if (!self.root.isConnected) return
  if (picture.whole && (self.resting || self.playing)) {
    self.picture = { step, ...picture }
    showPicture(self.picture)
  } else if (!picture.whole) {
    self.frames = "" // until the page has been drawn again
    self.past = false
    askPage(self)
  }
  if (self.pictures.answered(step) && self.playing && pastPage(self)) {
    lookAhead(self)
    soon(self)
  }
}

function soon(self) {
  frames(() => 1000 / REST_MS, () => { advance(self); return false })
}

// The answer comes after the figures, which are drawn in a microtask: Plotly measures letters, and would have the browser lay out the page
// for the new answer first.
function showPicture({ parts, answer }) {
  handOut(parts)
  queueMicrotask(() => htmlOver(answer))
}

const PATIENCE_MS = 60_000 // for one picture of a film
const AGAIN_MS = 8_000 // a question that got lost is asked again by then

async function filmed(self) {
  stop(self)
  self.filming = true
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
  await film(self.film, { name: run, steps, show, back: () => { self.filming = false; go(self, place(self.steps, before)) } })
}

function draw(self) {
  const single = self.steps.length < 2, where = said(self, self.index)
  drawTrack(self.track, self, self.index)
  self.slider.disabled = self.button.disabled = self.film.hidden = single
  self.where.textContent = where
  self.slider.setAttribute("aria-valuetext", where)
}

function update(self, /** @type {Data} */ data, fresh) {
  const waited = self.question.waiting(), moving = !fresh && self.run === data.run && (waited || self.resting !== 0 || self.playing)
  self.index = after(self, data, moving)
  Object.assign(self, { run: data.run, steps: data.steps, losses: data.losses, shown: data.shown, marks: data.marks ?? [], frames: data.frames })
  if (self.ahead) self.ahead.step = NaN // the page is another now
  if (!moving) self.question.forget()
  if (self.question.answered(data.shown) && waited && self.playing && !pastPage(self)) soon(self)
  draw(self)
  settled(self)
  self.drew()
}

// The page has been drawn: where the hand has moved on meanwhile, its picture comes over that of the page's step.
function settled(self) {
  const step = wanted(self.steps, self.index)
  if (self.shown !== step && self.frames && self.picture?.step === step) showPicture(self.picture)
  else {
    self.picture = null
    htmlOver("")
  }
  if (!self.pictures.waiting()) self.pictures.answered(self.picture ? step : self.shown)
}

function remove(self) {
  clearTimeout(self.resting)
  rested(self)
  htmlOver("")
  self.question.forget()
  self.pictures.forget()
  self.playing = false
}

export default component({ create, update, remove })
