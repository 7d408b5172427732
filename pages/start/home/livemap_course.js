// @ts-check
// Training time below the living map: drag it, and the same text is read by the model as it was at that step.

import { fill } from "./livemap_state.js"
import { place, wanted } from "../../../ui/assets/scrubber_state.js"
import { button, within, write } from "../../../ui/assets/shared/dom.js"
import { picture } from "../../../ui/assets/shared/picture.js"
import { playButton, still } from "../../../ui/assets/shared/play.js"
import { filmed } from "../../../ui/assets/shared/shots.js"
import { createTrack, drawTrack, said } from "../../../ui/assets/shared/track.js"

const REST_MS = 130 // while it plays, a picture stands so long at least
const SETTLE_MS = 450 // pictures that are here already are shown without the server, which is told when the hand rests
const REMEMBERED = 48 // pictures
const LOOK_MS = 40, AGAIN_MS = 8_000, PATIENCE_MS = 60_000 // while it is filmed: is the picture there, or did the question get lost?

/** Makes it, once. */
export function createCourse(self, box) {
  const track = createTrack("", "gf-live-track")
  /** @type {any} */
  const course = {
    box, track, title: within(box, "span"), range: box.appendChild(track.root) && track.slider, where: within(box, "output"),
    index: 0, playing: false, on: false, steps: [], losses: [], marks: [], cache: new Map(), timer: 0,
  }
  course.play = box.insertBefore(button("▶", "", () => (course.playing ? pause(self) : play(self))), course.title)
  course.back = box.appendChild(button("", "", () => { pause(self); self.does.ask({ do: "back" }) }))
  course.film = box.appendChild(button("Film", "", () => film(self)))
  course.film.title = "Save this view at each snapshot, as a video"
  const main = /** @type {HTMLElement} */ (self.root.querySelector(".gf-live-main"))
  filmed(main, () => ({ drawing: picture(main) }))
  course.range.oninput = () => { pause(self); go(self, Number(course.range.value)) }
  return course
}

/** What the server says of it. */
export function takeCourse(self, data) {
  const { course } = self, sent = data.course
  course.box.hidden = !sent
  if (!sent) return
  const moving = [self.waiting?.what, self.next].some((what) => what?.do === "step") // the hand is further already
  Object.assign(course, { steps: sent.steps, losses: sent.losses, marks: sent.marks, model: sent.model, on: sent.on, textId: data.text_id, wanted: undefined })
  if (sent.on) {
    course.cache.delete(data.picture.name)
    course.cache.set(data.picture.name, data.picture)
    while (course.cache.size > REMEMBERED) course.cache.delete(course.cache.keys().next().value)
  }
  if (!moving && !course.timer) course.index = sent.on ? place(sent.steps, sent.shown) : sent.steps.length - 1
  drawCourse(self)
  if (course.playing && !self.waiting) course.turn = setTimeout(() => advance(self), still() ? 600 : REST_MS)
}

const nameAt = (course, index) => `${course.model}@${course.steps[index]} ${course.textId}`

function go(self, index) {
  const { course } = self
  course.index = index
  drawCourse(self)
  const here = course.on && course.cache.get(nameAt(course, index))
  clearTimeout(course.timer)
  const say = () => { course.timer = 0; self.does.ask({ do: "step", model: course.model, step: wanted(course.steps, index) }) }
  if (!here) return say()
  self.does.show(here)
  course.timer = setTimeout(say, SETTLE_MS)
}

function play(self) {
  const { course } = self
  course.playing = true
  drawCourse(self)
  go(self, course.index >= course.steps.length - 1 ? 0 : course.index + 1)
  if (course.timer) course.turn = setTimeout(() => advance(self), REST_MS)
}

function advance(self) {
  const { course } = self
  clearTimeout(course.turn)
  if (!course.playing || !self.root.isConnected) return
  if (course.index >= course.steps.length - 1) return pause(self)
  go(self, course.index + 1)
  if (course.timer) course.turn = setTimeout(() => advance(self), REST_MS) // it was here: nobody is waited for
}

export function pause(self) {
  const { course } = self
  clearTimeout(course.turn)
  if (!course.playing) return
  course.playing = false
  drawCourse(self)
}

function drawCourse(self) {
  const { course, panel } = self
  playButton(course.play, course.playing, panel.learn)
  write(course.title, course.on ? panel.training : panel.invite)
  drawTrack(course.track, course, course.index, course.on)
  course.range.setAttribute("aria-label", panel.time)
  const where = course.on ? said(course, course.index) : fill(panel.models, { count: course.steps.length })
  course.range.setAttribute("aria-valuetext", where)
  write(course.where, where)
  course.box.classList.toggle("gf-on", course.on)
  course.back.hidden = !self.before
  if (self.before) {
    write(course.back, "↩")
    course.back.title = fill(panel.back, { title: self.before })
    course.back.setAttribute("aria-label", course.back.title)
  }
}

// Every step as it is drawn once its picture is there and has faded in.
async function film(self) {
  const { course } = self, { on, steps } = course, before = course.index
  pause(self)
  const show = async (step) => {
    const index = place(steps, step), since = performance.now()
    let asked = since
    go(self, index)
    while (!course.on || self.p.name !== nameAt(course, index) || self.ghost || self.sweep < 1) {
      if (performance.now() - since > PATIENCE_MS) throw new Error("no picture")
      if (performance.now() - asked > AGAIN_MS) { asked = performance.now(); go(self, index) }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
    return said(course, course.index)
  }
  const back = () => (on ? go(self, before) : self.does.ask({ do: "back" }))
  const { film: make } = await import("../../../ui/assets/film.js")
  await make(course.film, { name: course.model, steps, show, back })
}
