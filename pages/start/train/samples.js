// @ts-check
// The samples of one run, or of two side by side: a strip of some steps with how each begins, readable at a glance, and the whole text
// of the one chosen. All of them are here, so choosing asks nothing of the server. See pages/start/train/samples.py.

import { beginning, element, rangeInput, within, write } from "../../../ui/assets/shared/dom.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { whole } from "../../../ui/assets/shared/numbers.js"

/**
 * What is sent.
 * @typedef {{ step: number, prompt: string, text: string }} Sample
 * @typedef {object} Data
 * @property {{ name: string, samples: Sample[] }[]} runs one or two; samples ascending
 * @property {string} run
 * @property {string} alt
 * @property {number} rows of the strip, at most
 * @property {number} height pixels
 */

const BEGINNING = 90 // characters of a row of the strip: what does not fit is cut off

function create(place) {
  const root = within(place, "div", "gf-samples"), bar = within(root, "div", "gf-samples-bar")
  const where = within(bar, "output"), slider = bar.appendChild(rangeInput("Go back through the samples"))
  const names = within(root, "div", "gf-samples-names"), strip = within(root, "div", "gf-samples-strip gf-text")
  const texts = within(root, "div", "gf-samples-texts gf-text")
  const self = { root, slider, where, names, strip, texts, runs: [], steps: [], rows: 6, run: null, kept: null }
  slider.oninput = () => choose(self, Number(slider.value))
  strip.onclick = (event) => {
    const pressed = event.target instanceof Element ? event.target.closest("button") : null
    if (pressed) choose(self, self.steps.indexOf(Number(pressed.dataset.step)))
  }
  return self
}

/** At the right end it follows the newest; anywhere else it stays where the reader put it. */
function choose(self, index) {
  self.kept = index === self.steps.length - 1 ? null : self.steps[index]
  show(self)
}

/** The newest sample of a run up to a step. */
const upTo = (samples, step) => samples.findLast((s) => s.step <= step)

/** Some of the steps, the first and the last and the chosen among them: evenly over the list, which is dense where much is learned. */
function some(steps, many, chosen) {
  const last = steps.length - 1, found = new Set(chosen < 0 ? [] : [chosen])
  for (let i = 0; i < many && last >= 0; i++) found.add(Math.round((i * last) / Math.max(many - 1, 1)))
  const all = [...found].sort((a, b) => a - b)
  while (all.length > many) {
    const spare = all.findIndex((i) => i !== 0 && i !== last && i !== chosen)
    if (spare < 0) break
    all.splice(spare, 1)
  }
  return all
}

/** How a sample begins, on one line. @param {Sample | undefined} sample */
export const begins = (sample) => (sample ? beginning((sample.prompt + sample.text).trim().replaceAll(/\s*\n\s*/g, " ⏎ "), BEGINNING) : "")

function show(self) {
  const { runs, steps, slider, kept, strip, texts } = self
  const last = steps.length - 1
  let index = last
  if (kept !== null) {
    index = steps.findIndex((s) => s >= kept)
    if (index < 0) index = last
  }
  slider.max = String(Math.max(last, 0))
  slider.value = String(Math.max(index, 0))
  slider.disabled = last < 1
  const said = last < 0 ? "Nothing written yet" : `What it writes after step ${whole(steps[index])}${index === last ? " (newest)" : ""}`
  write(self.where, said)
  slider.setAttribute("aria-valuetext", said)
  fill(self.names, runs.length > 1 ? runs : [], "span", (node, run) => write(node, run.name))
  fill(strip, some(steps, self.rows, index), "button", (node, at) => row(self, node, at, at === index))
  fill(texts, runs, "pre", (node, run) => {
    if (!node.firstChild) node.append(element("b"), element("span"))
    const sample = last < 0 ? undefined : upTo(run.samples, steps[index])
    node.tabIndex = 0 // so that a keyboard can scroll it
    node.setAttribute("aria-label", runs.length > 1 ? `${self.alt}: ${run.name}` : self.alt)
    // line breaks at the beginning need no lines of their own
    const prompt = (sample?.prompt ?? "").replace(/^\n+/, ""), text = sample?.text ?? ""
    write(node.firstChild, prompt)
    write(node.lastChild, prompt ? text : text.replace(/^\n+/, ""))
  })
}

/** One line of the strip: a step, and how each run's text begins then. */
function row(self, node, at, chosen) {
  const step = self.steps[at]
  node.dataset.step = String(step)
  node.setAttribute("aria-pressed", String(chosen))
  node.setAttribute("aria-label", `Show the text after step ${whole(step)}`)
  const cells = [whole(step), ...self.runs.map((run) => begins(upTo(run.samples, step)))]
  fill(node, cells, "span", (cell, text) => write(cell, text))
}

/** As many children as there are things, each brought up to date: what stands is kept. */
function fill(parent, things, tag, draw) {
  while (parent.children.length > things.length) parent.lastElementChild.remove()
  things.forEach((thing, i) => draw(parent.children[i] ?? within(parent, tag), thing))
}

function update(self, /** @type {Data} */ data) {
  if (data.run !== self.run) self.kept = null
  Object.assign(self, { run: data.run, runs: data.runs, alt: data.alt, rows: data.rows })
  self.steps = [...new Set(data.runs.flatMap((run) => run.samples.map((s) => s.step)))].sort((a, b) => a - b)
  self.root.dataset.runs = String(data.runs.length)
  self.root.style.height = `${data.height}px`
  show(self)
}

export default component({ create, update })
