// A text as a row of tokens: one is chosen, by a click or the arrow keys. See ui/tokens.py.
const instances = new WeakMap()

function create(parentElement) {
  const root = document.createElement("div")
  root.className = "gf-tokens"
  root.setAttribute("role", "listbox")
  root.tabIndex = 0
  parentElement.appendChild(root)
  const self = { root, cells: [], index: 0, send: null }
  const choose = (index) => {
    if (index < 0 || index >= self.cells.length || index === self.index) return
    self.index = index
    mark(self)
    self.send("index", index)
  }
  root.addEventListener("click", (event) => {
    const cell = event.target.closest(".gf-token")
    if (cell) choose(self.cells.indexOf(cell))
  })
  root.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1, Home: -self.index, End: self.cells.length - 1 - self.index }[event.key]
    if (move === undefined) return
    event.preventDefault()
    choose(self.index + move)
  })
  return self
}

function mark(self) {
  self.cells.forEach((cell, index) => {
    cell.classList.toggle("gf-chosen", index === self.index)
    cell.setAttribute("aria-selected", String(index === self.index))
  })
  self.root.setAttribute("aria-activedescendant", self.cells[self.index]?.id ?? "")
}

function dark(element) {
  const probe = document.createElement("canvas").getContext("2d")
  probe.fillStyle = getComputedStyle(element).getPropertyValue("--st-background-color").trim() || "#ffffff"
  return parseInt(probe.fillStyle.slice(1, 3), 16) < 128
}

export default function (component) {
  const { data, parentElement, setStateValue, key } = component
  if (!data) return
  let self = instances.get(parentElement)
  if (!self) instances.set(parentElement, (self = create(parentElement)))
  self.send = setStateValue
  self.root.setAttribute("aria-label", data.label)
  while (self.cells.length > data.tokens.length) self.cells.pop().remove()
  while (self.cells.length < data.tokens.length) {
    const cell = document.createElement("span")
    cell.className = "gf-token"
    cell.setAttribute("role", "option")
    cell.id = `gf-token-${key ?? "x"}-${self.cells.length}`
    self.cells.push(cell)
    self.root.appendChild(cell)
  }
  const side = dark(self.root) ? 1 : 0
  self.cells.forEach((cell, i) => {
    if (cell.textContent !== data.tokens[i]) cell.textContent = data.tokens[i]
    cell.title = data.hints ? data.hints[i] : `position ${i}`
    const v = data.values ? Math.min(6, Math.max(0, Math.round(data.values[i] * 6))) : null
    cell.style.background = v === null ? "" : data.palette[`seq${v}`][side]
    cell.style.color = v === null ? "" : (side ? v >= 4 : v < 4) ? (side ? "#10151d" : "#18202c") : "#f4f7fb"
  })
  self.index = data.index
  mark(self)
  return () => {
    self.root.remove()
    instances.delete(parentElement)
  }
}
