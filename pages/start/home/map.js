// @ts-check
// Draws the map that pages/start/home/map_drawing.py computed: an SVG, and a panel that says more about one part.

import { button, element, vector, within } from "../../../ui/assets/shared/dom.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { toolbar } from "../../../ui/assets/shared/save.js"
import { paint } from "../../../ui/assets/shared/theme.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {{ parts: Record<string, any>, wide: any, tall: any }} map pages/start/home/map_drawing.py
 * @property {import("../../../ui/assets/shared/colours.js").Palette} palette
 * @property {string} alt
 * @property {string | null} part the one that a link points at; whatever a stranger wrote
 */

const TALL_BELOW = 640 // pixels

const tint = (part, percent) => `color-mix(in srgb, var(--gf-${part}) ${percent}%, var(--st-background-color))`

function drawFrame(group, box, part) {
  // Two sheets behind: the block is one of many.
  for (const shift of [10, 5]) {
    group.append(vector("rect", { class: "copy", x: box.x + shift, y: box.y - shift, width: box.w, height: box.h, rx: 16, fill: "none", stroke: `var(--gf-${part})`, "stroke-opacity": 0.5 }))
  }
  group.append(vector("rect", { x: box.x, y: box.y, width: box.w, height: box.h, rx: 16, fill: tint(part, 7), stroke: `var(--gf-${part})`, "stroke-opacity": 0.7 }))
}

function drawBox(box, part, id) {
  const kind = box.kind === "box" && box.w < 150 ? "box narrow" : `box ${box.kind}`
  const group = vector("g", { class: kind, tabindex: 0, role: "button", "data-part": id })
  group.setAttribute("aria-label", [part.title.trim(), ...part.lines].join(", "))
  const colour = `var(--gf-${part.colour})`
  const [cx, cy] = [box.x + box.w / 2, box.y + box.h / 2]
  if (box.kind === "frame") {
    drawFrame(group, box, part.colour)
  } else if (box.kind === "plus") {
    const arm = box.w * 0.24
    group.append(vector("circle", { cx, cy, r: box.w / 2, fill: "var(--st-background-color)", stroke: colour }))
    group.append(vector("path", { d: `M${cx - arm} ${cy}h${2 * arm}M${cx} ${cy - arm}v${2 * arm}`, stroke: colour, "stroke-width": 3, "stroke-linecap": "round" }))
  } else {
    group.append(vector("rect", { x: box.x, y: box.y, width: box.w, height: box.h, rx: box.kind === "chip" ? 8 : 10, fill: tint(part.colour, box.kind === "chip" ? 30 : 18), stroke: colour }))
    const step = box.w < 150 ? 19 : 21
    const lines = [part.title, ...part.lines]
    // A chip at its foot takes some of attention's room.
    const middle = cy - (box.chip ? 17 : 0)
    lines.forEach((line, i) => {
      const y = middle + (i - (lines.length - 1) / 2) * step + 5
      group.append(vector("text", { x: cx, y, "text-anchor": "middle", class: i ? "line" : "title" }, null, `${line} `)) // read aloud, and spoken to, as words
    })
  }
  return group
}

function drawArrow(arrow) {
  const colour = `var(--gf-${arrow.part})`
  const width = { stream: 7, memory: 6, branch: 3, tie: 2 }[arrow.kind]
  const points = arrow.points.map(([x, y]) => [x, y])
  const group = vector("g", { "aria-hidden": "true" })
  if (arrow.head) {
    const [[px, py], [x, y]] = points.slice(-2)
    const [dx, dy] = [Math.sign(x - px), Math.sign(y - py)]
    const size = width > 5 ? 12 : 9
    points[points.length - 1] = [x - dx * size * 0.9, y - dy * size * 0.9] // the line ends inside its head
    const [bx, by, half] = [x - dx * size, y - dy * size, size * 0.66]
    group.append(vector("path", { d: `M${x} ${y}L${bx - dy * half} ${by + dx * half}L${bx + dy * half} ${by - dx * half}Z`, fill: colour }))
  }
  const line = { points: points.map((p) => p.join(",")).join(" "), fill: "none", stroke: colour, "stroke-width": width, "stroke-linejoin": "round" }
  if (arrow.kind === "tie") line["stroke-dasharray"] = "6 5"
  group.append(vector("polyline", line))
  return group
}

function drawMap(self) {
  const { data, root } = self
  const layout = data.map[self.shape]
  root.className = `map gf-saves ${self.shape}`
  const svg = vector("svg", { viewBox: `0 0 ${layout.width} ${layout.height}`, role: "group", "aria-label": data.alt })
  svg.style.maxWidth = `${layout.width * (self.shape === "wide" ? 1.5 : 1.25)}px`
  svg.style.margin = "0 auto"
  const chips = layout.boxes.filter((b) => b.kind === "chip")
  const holds = (box, chip) => box.kind === "box" && chip.x >= box.x && chip.y >= box.y && chip.x + chip.w <= box.x + box.w && chip.y + chip.h <= box.y + box.h
  const [frames, others] = [layout.boxes.filter((b) => b.kind === "frame"), layout.boxes.filter((b) => b.kind !== "frame")]
  const draw = (box) => {
    const group = drawBox({ ...box, chip: chips.some((one) => holds(box, one)) }, data.map.parts[box.id], box.id)
    const choose = () => select(self, box.id)
    group.addEventListener("pointerenter", choose)
    group.addEventListener("focus", choose)
    group.addEventListener("click", () => {
      const again = self.pinned === box.id // a second tap puts the panel back
      self.pinned = again ? null : box.id
      self.panel.classList.toggle("pinned", !again)
      choose()
      const covered = self.shape === "tall" && !again && group.getBoundingClientRect().bottom > self.panel.getBoundingClientRect().top
      if (covered) group.scrollIntoView({ block: "start" })
    })
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return
      event.preventDefault()
      choose()
      if (data.map.parts[box.id].page) self.trigger("opened", box.id)
    })
    return group
  }
  svg.append(...frames.map(draw), ...layout.arrows.map(drawArrow), ...others.map(draw))
  for (const label of layout.labels) {
    svg.append(vector("text", { x: label.x, y: label.y, "text-anchor": label.anchor, "font-size": label.size, class: label.strong ? "name" : "label", "pointer-events": "none" }, null, label.text))
  }
  const held = root.querySelector("svg .box:focus")?.getAttribute("data-part") // the keyboard keeps its place
  root.querySelector("svg")?.remove()
  self.tools.after(svg)
  fit(svg)
  if (held) root.querySelector(`[data-part="${held}"]`)?.focus()
  select(self, self.chosen in data.map.parts ? self.chosen : "memory" in data.map.parts ? "memory" : "block")
}

function fit(svg) {
  // Fonts differ between machines: text that would leave its box is made smaller.
  for (const text of svg.querySelectorAll(".box text")) {
    const room = text.parentNode.querySelector("rect").width.baseVal.value - 14
    const length = text.getComputedTextLength()
    if (length > room) text.style.fontSize = `${(parseFloat(getComputedStyle(text).fontSize) * room) / length}px`
  }
}

function select(self, id) {
  self.chosen = id
  const part = self.data.map.parts[id]
  for (const group of self.root.querySelectorAll(".box")) group.classList.toggle("chosen", group.getAttribute("data-part") === id)
  const words = element("div")
  words.append(element("h2", "", part.title.replace(/^\d\s+/, "")), element("p", "", part.text))
  if (part.page) {
    words.append(button("Look inside", "Look inside", () => self.trigger("opened", id)))
  }
  const list = element("dl")
  for (const [name, value] of part.rows) list.append(element("dt", "", name), element("dd", "", value))
  self.panel.style.setProperty("--part", `var(--gf-${part.colour})`)
  self.panel.replaceChildren(words, list)
}

const shapeOf = (width) => (width && width < TALL_BELOW ? "tall" : "wide")

function create(place) {
  const root = within(place, "div", "map gf-saves")
  const tools = root.appendChild(toolbar(root, () => null, {}))
  const panel = within(root, "div", "panel", "", { "aria-live": "polite" })
  const self = { root, tools, panel, chosen: "block", pinned: null, shape: "", text: "", data: null, observer: null }
  self.observer = new ResizeObserver(() => {
    const shape = shapeOf(root.clientWidth)
    if (root.clientWidth && shape !== self.shape) {
      self.shape = shape
      drawMap(self)
    }
  })
  return self
}

function update(self, /** @type {Data} */ data, fresh) {
  paint(self.root, data.palette)
  if (fresh && Object.hasOwn(data.map.parts, data.part ?? "")) self.chosen = data.part
  const text = JSON.stringify(data)
  if (text === self.text) return
  self.data = data
  self.text = text
  self.shape = shapeOf(self.root.clientWidth)
  drawMap(self)
  self.observer.observe(self.root)
}

export default component({ create, update })
