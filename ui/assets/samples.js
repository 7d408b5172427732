// @ts-check
// The samples of one run behind a slider. All of them are here, so moving it asks nothing of the server.
// See pages/start/train/samples.py.

import { element, within, write } from "./shared/dom.js"
import { component } from "./shared/mount.js"
import { whole } from "./shared/numbers.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {{ step: number, prompt: string, text: string }[]} samples ascending
 * @property {string} run
 * @property {string} alt
 * @property {number} height pixels
 */

function create(place) {
  const root = within(place, "div", "gf-samples"), bar = within(root, "div", "gf-samples-bar")
  const where = within(bar, "output"), slider = within(bar, "input")
  Object.assign(slider, { type: "range", min: "0", step: "1" })
  slider.setAttribute("aria-label", "Go back through the samples")
  const text = within(root, "pre"), prompt = element("b"), own = element("span")
  text.tabIndex = 0 // so that a keyboard can scroll it
  text.append(prompt, own)
  const self = { root, slider, where, text, prompt, own, samples: [], run: null, kept: null }
  slider.oninput = () => {
    const index = Number(slider.value)
    // At the right end it follows the newest; anywhere else it stays where the reader put it.
    self.kept = index === self.samples.length - 1 ? null : self.samples[index].step
    show(self)
  }
  return self
}

function show(self) {
  const { samples, slider, kept } = self
  const last = samples.length - 1
  let index = last
  if (kept !== null) {
    index = samples.findIndex((s) => s.step >= kept)
    if (index < 0) index = last
  }
  slider.max = String(Math.max(last, 0))
  slider.value = String(Math.max(index, 0))
  slider.disabled = last < 1
  const sample = samples[index]
  const said = sample ? `The model's own text after step ${whole(sample.step)}${index === last ? " (newest)" : ""}` : "The model's own text: none yet"
  write(self.where, said)
  slider.setAttribute("aria-valuetext", said)
  write(self.prompt, sample ? sample.prompt : "")
  write(self.own, sample ? sample.text : "")
}

/**
 * @param {any} self
 * @param {Data} data
 */
function update(self, data) {
  if (data.run !== self.run) self.kept = null
  self.run = data.run
  self.samples = data.samples
  self.text.setAttribute("aria-label", data.alt)
  self.root.style.height = `${data.height}px`
  show(self)
}

export default component({ create, update })
