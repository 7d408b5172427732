// @ts-check
// The track of a training: its loss, the steps at which something happened, and the slider over its snapshots.

import { marked, points, words } from "../scrubber_state.js"
import { element, rangeInput, vector, within } from "./dom.js"

/**
 * @typedef {object} Training
 * @property {number[]} steps
 * @property {(number | null)[]} losses
 * @property {import("../scrubber_state.js").Mark[]} marks
 */

/** Makes a track, once. @param {string} label of its slider @param {string} [name] of its element */
export function createTrack(label, name = "") {
  const root = element("div", `gf-scrub-track ${name}`)
  const drawing = vector("svg", { preserveAspectRatio: "none", viewBox: "0 0 1000 100", "aria-hidden": "true" }, root)
  const [line, done] = ["gf-scrub-line", "gf-scrub-done"].map((part) => vector("polyline", { class: part }, drawing))
  const names = within(root, "div", "gf-scrub-marks", "", { "aria-hidden": "true" }), slider = root.appendChild(rangeInput(label))
  const track = { root, line, done, names, slider, wide: 900, training: /** @type {Training | null} */ (null) }
  new ResizeObserver(([{ contentRect }]) => { track.wide = contentRect.width || 900; drawNames(track) }).observe(names)
  return track
}

/**
 * Draws a training at one of its steps; `on` where its model is the one that is shown.
 * @param {ReturnType<typeof createTrack>} track
 * @param {Training} training
 * @param {number} index
 */
export function drawTrack(track, training, index, on = true) {
  const { steps, losses } = training, last = Math.max(steps.length - 1, 0), line = points(losses)
  const text = (some) => some.map((p) => p.map((n) => n.toFixed(1)).join(",")).join(" ")
  Object.assign(track.slider, { max: String(last), value: String(index) })
  track.line.setAttribute("points", text(line))
  track.done.setAttribute("points", on ? text(line.filter(([x]) => x <= (1000 * index) / Math.max(last, 1) + 0.01)) : "")
  track.training = training
  drawNames(track)
}

function drawNames(/** @type {ReturnType<typeof createTrack>} */ { names, training, wide }) {
  const found = training ? marked(training.steps, training.marks, wide) : [], known = JSON.stringify(found)
  if (known === names.dataset.known) return
  names.dataset.known = known
  names.replaceChildren(...found.map(({ at, name: written, words: full }) => {
    const name = element("span", "", written)
    name.style.left = `${at}%`
    name.title = full
    return name
  }))
}

/** Says where in a training one is. @param {Training} training @param {number} index */
export const said = (training, index) => words({ ...training, run: "" }, index)
