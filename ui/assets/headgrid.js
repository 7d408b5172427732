// Every head's pattern as a small picture: rows are layers, columns heads. See ui/attention_parts.py.
const instances = new WeakMap()

function create(parentElement) {
  const root = document.createElement("div")
  root.className = "gf-heads"
  const said = document.createElement("div")
  said.className = "gf-heads-said"
  const grid = document.createElement("div")
  grid.className = "gf-heads-grid"
  grid.setAttribute("role", "group")
  const tools = saveTools(root, () => "attention-heads", () => table(self))
  root.append(tools, said, grid)
  parentElement.appendChild(root)
  const self = { root, said, grid, buttons: [], layers: 0, heads: 0, chosen: 0, send: null, text: "", pixels: null, theme: "" }
  const at = (event) => self.buttons.indexOf(event.target.closest?.(".gf-head"))
  grid.addEventListener("click", (event) => {
    const index = at(event)
    if (index < 0 || index === self.chosen) return
    self.chosen = index
    mark(self)
    self.send("chosen", `${Math.floor(index / self.heads)},${index % self.heads}`)
  })
  grid.addEventListener("pointermove", (event) => pointerMoved(self, event) && tell(self, at(event)))
  grid.addEventListener("pointerleave", () => { self.pointer = null; tell(self, self.chosen) })
  grid.addEventListener("focusin", (event) => tell(self, at(event)))
  grid.addEventListener("keydown", (event) => {
    const index = at(event)
    const move = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: self.heads, ArrowUp: -self.heads }[event.key]
    if (index < 0 || move === undefined) return
    event.preventDefault()
    self.buttons[index + move]?.focus()
  })
  return self
}

function table(self) {
  const { size, heads } = self, lines = []
  self.pixels.forEach((value, i) => {
    const head = Math.floor(i / size ** 2)
    if (value) lines.push([Math.floor(head / heads), head % heads, Math.floor(i / size) % size, i % size, (value / 255).toFixed(3)])
  })
  return [["layer", "head", "row", "column", "weight"], ...lines]
}

function tell(self, index) {
  if (index >= 0) self.said.textContent = self.hints[index]
}

function mark(self) {
  self.buttons.forEach((button, index) => {
    button.setAttribute("aria-pressed", String(index === self.chosen))
    button.tabIndex = index === self.chosen ? 0 : -1
  })
}

function rgb(colour) {
  return [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16))
}

function shades(palette, side) {
  // 256 colours between the seven of the sequential scale.
  const stops = [0, 1, 2, 3, 4, 5, 6].map((i) => rgb(palette[`seq${i}`][side]))
  return Array.from({ length: 256 }, (_, v) => {
    const place = (v / 255) * 6, low = Math.min(5, Math.floor(place)), part = place - low
    return stops[low].map((c, i) => Math.round(c + (stops[low + 1][i] - c) * part))
  })
}

function rebuild(self, layers, heads) {
  self.layers = layers
  self.heads = heads
  self.buttons = []
  self.grid.replaceChildren()
  self.grid.style.setProperty("--heads", heads)
  const label = (text, kind) => {
    const span = document.createElement("span")
    span.className = kind
    span.textContent = text
    self.grid.appendChild(span)
  }
  label("", "gf-heads-corner")
  for (let h = 0; h < heads; h++) label(heads > 8 ? `${h}` : `head ${h}`, "gf-heads-column")
  for (let l = 0; l < layers; l++) {
    label(`layer ${l}`, "gf-heads-row")
    for (let h = 0; h < heads; h++) {
      const button = document.createElement("button")
      button.type = "button"
      button.className = "gf-head"
      button.appendChild(document.createElement("canvas"))
      self.grid.appendChild(button)
      self.buttons.push(button)
    }
  }
}

function draw(self, size, palette) {
  const colours = shades(palette, isDark(self.root) ? 1 : 0)
  self.buttons.forEach((button, index) => {
    const canvas = button.firstChild
    if (canvas.width !== size) canvas.width = canvas.height = size
    const context = canvas.getContext("2d")
    const image = context.createImageData(size, size)
    const start = index * size * size
    for (let i = 0; i < size * size; i++) {
      const [r, g, b] = colours[self.pixels[start + i]]
      image.data[4 * i] = r
      image.data[4 * i + 1] = g
      image.data[4 * i + 2] = b
      image.data[4 * i + 3] = 255
    }
    context.putImageData(image, 0, 0)
  })
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component
  if (!data) return
  let self = instances.get(parentElement)
  if (!self) instances.set(parentElement, (self = create(parentElement)))
  self.send = setTriggerValue
  const theme = getComputedStyle(self.root).getPropertyValue("--st-background-color")
  const fresh = data.layers !== self.layers || data.heads !== self.heads
  if (fresh) rebuild(self, data.layers, data.heads)
  if (fresh || data.pixels !== self.text || theme !== self.theme) {
    self.pixels = Uint8Array.from(atob(data.pixels), (c) => c.charCodeAt(0))
    self.text = data.pixels
    self.size = data.size
    self.theme = theme
    draw(self, data.size, data.palette)
  }
  self.hints = data.hints
  self.grid.setAttribute("aria-label", data.alt)
  self.buttons.forEach((button, index) => button.setAttribute("aria-label", data.hints[index]))
  self.chosen = data.chosen[0] * data.heads + data.chosen[1]
  mark(self)
  const focused = self.buttons.indexOf(document.activeElement)
  tell(self, focused >= 0 ? focused : self.chosen)
  return () => {
    self.root.remove()
    instances.delete(parentElement)
  }
}
