// @ts-check
// The many-handed clock: one hand for each frequency, a position slider, and a binary counter beside it.
// See pages/input/positions/clock.py.

import { around, element, vector, within } from "../../../ui/assets/shared/dom.js"
import { target } from "../../../ui/assets/shared/keys.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { scientific, whole } from "../../../ui/assets/shared/numbers.js"
import { saveTools } from "../../../ui/assets/shared/save.js"
import { createStepper } from "../../../ui/assets/shared/stepper.js"
import { sideOf } from "../../../ui/assets/shared/theme.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {number[]} thetas radians per position, a hand each
 * @property {number[]} pairs
 * @property {number} of hands there are in all
 * @property {number} last
 * @property {number} position at first
 * @property {string} name of the position in the address
 * @property {import("../../../ui/assets/shared/colours.js").Palette} palette
 */

const TICK_MS = 450

function create(place, _, signal) {
  const root = within(place, "div", "gf-clock")
  root.innerHTML = `
    <div class="gf-clock-stage">
      <div><div class="gf-clock-face"></div><div class="gf-clock-said"></div>
        <div class="gf-clock-binary"><p></p><div class="gf-clock-bits"></div></div></div>
      <div class="gf-clock-dials" role="group" aria-label="One dial per hand"></div>
    </div>`
  const find = (name) => root.querySelector(name)
  /** @type {any} */
  const self = {
    root,
    face: find(".gf-clock-face"), said: find(".gf-clock-said"), dials: find(".gf-clock-dials"), binary: find(".gf-clock-binary p"), bits: find(".gf-clock-bits"),
    thetas: [], pairs: [], hands: [], cells: [], places: [], lit: -1, drawn: 0, steps: null, kind: "",
  }
  // A hand that is dragged over many positions would whirl: there it jumps.
  const moved = (dragged) => { root.classList.toggle("gf-clock-fast", dragged || Math.abs(self.steps.at - self.drawn) > 3); draw(self) }
  self.steps = createStepper({ unit: "position", label: "Position", play: "Play: one position after another", ms: TICK_MS, loops: true, moved }, signal)
  root.prepend(self.steps.bar)
  const dialOf = (event) => self.cells.findIndex((cell) => cell.root === around(event, ".gf-clock-dial"))
  self.dials.addEventListener("pointerover", (event) => light(self, dialOf(event)))
  self.dials.addEventListener("pointerleave", () => light(self, -1))
  self.dials.addEventListener("focusin", (event) => light(self, dialOf(event)))
  self.dials.addEventListener("focusout", () => light(self, -1))
  self.dials.addEventListener("keydown", (event) => {
    const next = event.key.startsWith("Arrow") && self.cells[target(event.key, dialOf(event), 0) ?? -1]
    if (!next) return
    event.preventDefault()
    self.cells.forEach((cell) => { cell.root.tabIndex = cell === next ? 0 : -1 })
    next.root.focus()
  })
  find(".gf-clock-stage").prepend(saveTools(root, () => "clock", () => table(self)))
  return self
}

function dialFace(parent, label) {
  const svg = vector("svg", { viewBox: "-108 -108 216 216", role: "img", "aria-label": label }, parent)
  vector("circle", { r: 102, class: "gf-clock-rim" }, svg)
  for (let i = 0; i < 12; i++) vector("line", { y1: -102, y2: i % 3 ? -97 : -91, transform: `rotate(${30 * i})`, class: "gf-clock-mark" }, svg)
  return svg
}

function hand(svg, length, width, colour) {
  return vector("line", { y2: -length, class: "gf-clock-hand", stroke: colour, "stroke-width": width }, svg)
}

function waves(theta) {
  const length = (2 * Math.PI) / theta
  return length >= 1e6 ? scientific(length) : length >= 1000 ? whole(Math.round(length)) : length.toPrecision(3)
}

function rebuild(self) {
  const { thetas, pairs } = self
  self.face.replaceChildren()
  self.dials.replaceChildren()
  self.lit = -1
  const face = dialFace(self.face, "All hands together; the fast ones are long and thin, the slow ones short and thick")
  const share = (i) => i / Math.max(thetas.length - 1, 1)
  // Slow hands first, so that the thin fast ones lie on top of them.
  self.hands = thetas.map((_, i) => i).reverse().map((i) => hand(face, 98 - 62 * share(i), 1.5 + 4.5 * share(i), self.colour)).reverse()
  vector("circle", { r: 5, class: "gf-clock-pin" }, face)
  self.cells = thetas.map((theta, i) => {
    const root = element("div", "gf-clock-dial")
    root.tabIndex = i ? -1 : 0
    const svg = dialFace(root, `Hand ${pairs[i]}, wavelength ${waves(theta)}`)
    const line = hand(svg, 86, 9, self.colour)
    vector("circle", { r: 9, class: "gf-clock-pin" }, svg)
    within(root, "div", "", waves(theta)).title = `wavelength of hand ${pairs[i]}, in positions`
    self.dials.appendChild(root)
    return { root, line }
  })
  const digits = Math.max(1, self.steps.last.toString(2).length)
  self.bits.replaceChildren()
  self.places = Array.from({ length: digits }, (_, i) => {
    const bit = within(self.bits, "div", "gf-clock-bit"), value = within(bit, "b")
    const period = within(bit, "span", "", String(2 ** (digits - i)))
    period.title = `repeats every ${2 ** (digits - i)} positions`
    return { bit, value }
  })
}

function draw(self) {
  const { thetas } = self, position = self.drawn = self.steps.at
  self.steps.paint(`position ${position}`)
  thetas.forEach((theta, i) => {
    const turn = `rotate(${position * theta}rad)`
    self.hands[i].style.transform = turn
    self.cells[i].line.style.transform = turn
  })
  const bits = position.toString(2).padStart(self.places.length, "0")
  self.places.forEach(({ bit, value }, i) => {
    value.textContent = bits[i]
    bit.classList.toggle("gf-one", bits[i] === "1")
  })
  tell(self)
}

function table(self) {
  return [["hand", "radians_per_position", "wavelength", "position", "angle", "sine", "cosine"], ...self.thetas.map((theta, i) => {
    const angle = self.drawn * theta
    return [self.pairs[i], theta, (2 * Math.PI) / theta, self.drawn, angle, Math.sin(angle), Math.cos(angle)]
  })]
}

function light(self, index) {
  if (index === self.lit) return
  self.lit = index
  self.cells.forEach((cell, i) => cell.root.classList.toggle("gf-lit", i === index))
  self.hands.forEach((line, i) => { line.style.opacity = index < 0 || i === index ? "1" : "0.15" })
  tell(self)
}

function tell(self) {
  const { lit, thetas, pairs, drawn: position } = self
  if (lit < 0) {
    self.said.textContent = self.of > thetas.length ? `${thetas.length} of the ${self.of} hands are shown. ` : ""
    self.said.textContent += "Under each dial is its wavelength: the positions per full turn. Point at a dial."
    return
  }
  const angle = position * thetas[lit], round = (angle / (2 * Math.PI)).toFixed(2)
  self.said.textContent = `Hand ${pairs[lit]}: wavelength ${waves(thetas[lit])}, ${round} turns so far. PE: sine ${Math.sin(angle).toFixed(3)}, cosine ${Math.cos(angle).toFixed(3)}.`
}

function update(self, /** @type {Data} */ data) {
  self.colour = data.palette.position[sideOf(self.root)]
  const kind = JSON.stringify([data.thetas, data.last, self.colour])
  Object.assign(self, { thetas: data.thetas, pairs: data.pairs, of: data.of })
  self.steps.update({ name: data.name, step: data.position, last: data.last })
  if (kind !== self.kind) rebuild(self)
  self.kind = kind
  self.binary.textContent = "The same position, as a binary counter. Under each digit: its period, in positions."
  draw(self)
}

export default component({ create, update })
