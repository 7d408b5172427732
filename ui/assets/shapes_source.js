// Functions of the engine with the lines that just ran marked. See ui/shapes.py.
const instances = new WeakMap()

function dark(element) {
  const brush = document.createElement("canvas").getContext("2d")
  brush.fillStyle = getComputedStyle(element).getPropertyValue("--st-background-color").trim() || "#ffffff"
  return parseInt(brush.fillStyle.slice(1, 3), 16) < 128
}

export default function (component) {
  const { data, parentElement } = component
  if (!data) return
  let self = instances.get(parentElement)
  if (!self) {
    const root = document.createElement("div")
    root.className = "gf-source"
    root.tabIndex = 0 // so that a keyboard can scroll it
    root.setAttribute("role", "region")
    parentElement.appendChild(root)
    instances.set(parentElement, (self = { root, text: "" }))
  }
  const { root } = self
  root.setAttribute("aria-label", data.alt)
  root.style.setProperty("--part", data.colour[dark(root) ? 1 : 0])
  const text = JSON.stringify(data.functions)
  if (text !== self.text) {
    self.text = text
    root.replaceChildren()
    for (const { name, lines } of data.functions) {
      const title = document.createElement("h4")
      title.textContent = name
      const list = document.createElement("ol")
      for (const [number, code, ran] of lines) {
        const item = document.createElement("li")
        const count = document.createElement("span")
        count.textContent = String(number)
        item.append(count, code || " ")
        if (ran) item.className = "gf-ran"
        list.appendChild(item)
      }
      root.append(title, list)
    }
    const first = root.querySelector(".gf-ran")
    root.scrollTop = first ? Math.max(0, first.offsetTop - root.offsetTop - root.clientHeight / 2) : 0
    root.scrollLeft = 0
  }
  return () => {
    root.remove()
    instances.delete(parentElement)
  }
}
