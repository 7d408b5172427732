// One lasting <div> per figure; Plotly.react on it. See ui/plot.py.
const instances = new WeakMap()
const NEAR = 200 // pixels above and below the window that count as in sight

function library() {
  // Once per page, however many figures there are. A failure is forgotten, so that the next figure tries again.
  window.__glassformerPlotly ??= (window.Plotly ? Promise.resolve(window.Plotly) : load(addresses())).catch((error) => {
    window.__glassformerPlotly = undefined
    throw error
  })
  return window.__glassformerPlotly
}

function addresses() {
  // Pages lie one level below the app's root, wherever a host has put that root; Streamlit's own script knows too.
  const name = "app/static/plotly.min.js"
  const own = [...document.scripts].map((s) => s.src).find((src) => /\/static\/js\/[^/]+$/.test(src))
  const list = [new URL("./" + name, document.baseURI).href]
  if (own) list.push(own.replace(/static\/js\/[^/]+$/, name))
  return [...new Set([...list, new URL("/" + name, document.baseURI).href])]
}

function load([address, ...others]) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script")
    script.src = address
    script.onload = () => (window.Plotly ? resolve(window.Plotly) : reject(new Error(address)))
    script.onerror = () => reject(new Error(address))
    document.head.appendChild(script)
  }).catch((error) => {
    if (others.length) return load(others)
    throw error
  })
}

function create(parentElement) {
  const root = document.createElement("div")
  root.className = "gf-plot"
  const figure = document.createElement("div")
  figure.className = "gf-figure"
  figure.setAttribute("role", "img")
  const tools = document.createElement("div")
  tools.className = "gf-tools"
  tools.setAttribute("role", "group")
  tools.setAttribute("aria-label", "Save this figure")
  root.append(figure, tools)
  parentElement.appendChild(root)
  const self = { root, figure, tools, text: "", theme: "", message: null, drawn: false, held: false, pending: false, late: false, trigger: null, pointer: null, page: null, width: 0 }
  for (const [label, save] of [["CSV", saveTable], ["PNG", savePicture], ["SVG", savePicture]]) {
    const button = document.createElement("button")
    button.type = "button"
    button.textContent = label
    button.title = label === "CSV" ? "Save the data behind this figure as CSV" : `Save this figure as ${label}`
    button.setAttribute("aria-label", button.title)
    button.onclick = () => save(self, label.toLowerCase())
    tools.appendChild(button)
  }
  // A redraw in the middle of a drag would end the drag, so it waits for the hand to let go.
  figure.addEventListener("pointerdown", () => { self.held = true })
  self.release = () => {
    self.held = false
    if (self.pending) draw(self)
  }
  window.addEventListener("pointerup", self.release)
  window.addEventListener("pointercancel", self.release)
  root.addEventListener("pointermove", (event) => { self.pointer = event.isTrusted ? [event.clientX, event.clientY] : self.pointer })
  root.addEventListener("pointerleave", () => { self.pointer = null })
  root.addEventListener("touchstart", () => root.classList.add("gf-touched"), { passive: true })
  self.observer = new ResizeObserver(() => {
    if (!figure.offsetWidth || figure.offsetWidth === self.width) return
    self.width = figure.offsetWidth
    if (self.drawn) soon(self)
  })
  self.observer.observe(root)
  // A figure that is out of sight is drawn anew when it comes near: those in sight then answer sooner.
  self.sight = new IntersectionObserver((entries) => { if (self.late && entries.some((e) => e.isIntersecting)) draw(self) }, { rootMargin: `${NEAR}px` })
  self.sight.observe(root)
  self.print = () => { if (self.late) draw(self) }
  window.addEventListener("beforeprint", self.print)
  return self
}

function pageTheme(element) {
  const css = getComputedStyle(element)
  const value = (name, fallback) => css.getPropertyValue(name).trim() || fallback
  const background = value("--st-background-color", "#ffffff")
  return {
    background, dark: luminance(background) < 0.5, text: value("--st-text-color", "#222222"),
    font: value("--st-font", "sans-serif"), panel: value("--st-secondary-background-color", "#f2f4f7"), line: value("--st-border-color", "#d8dde5"),
  }
}

function channels(colour) {
  const probe = document.createElement("canvas").getContext("2d")
  probe.fillStyle = colour
  const found = probe.fillStyle
  if (found.startsWith("#")) return [1, 3, 5].map((i) => parseInt(found.slice(i, i + 2), 16))
  return found.match(/[\d.]+/g).slice(0, 3).map(Number)
}

function luminance(colour) {
  const [r, g, b] = channels(colour)
  return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255
}

function template(page) {
  const faint = page.dark ? "rgba(255,255,255,0.09)" : "rgba(20,30,50,0.08)"
  const axis = {
    gridcolor: faint, zerolinecolor: faint, linecolor: page.line, tickcolor: page.line, automargin: true, ticklabeloverflow: "allow", // else Plotly measures every label to hide some: 5 times as long
    title: { standoff: 10, font: { size: 14 } }, tickfont: { size: 13 }, ticklabelstandoff: 4,
  }
  const bar = { outlinewidth: 0, thickness: 14, tickfont: { size: 13 } }
  return { data: { heatmap: [{ colorbar: bar }], scatter: [{ marker: { colorbar: bar } }] }, layout: {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: page.text, family: page.font, size: 14 }, xaxis: axis, yaxis: axis,
    hoverlabel: { bgcolor: page.panel, bordercolor: page.line, font: { color: page.text, family: page.font, size: 14 } }, legend: { font: { size: 13 } },
  } }
}

function coloured(value, palette, dark, within = false) {
  // Names of colours -> colours, in fields that hold colours (…color, colorscale, …colors) and nowhere else.
  if (typeof value === "string") {
    const match = within && /^var\(--gf-([a-z]+\d*)(?:-(\d+))?\)$/.exec(value)
    if (!match || !palette[match[1]]) return value
    const found = palette[match[1]][dark ? 1 : 0]
    return match[2] ? `rgba(${channels(found).join(",")},${match[2] / 100})` : found
  }
  if (Array.isArray(value)) return within || typeof value[0] === "object" ? value.map((v) => coloured(v, palette, dark, within)) : value
  if (value && typeof value === "object" && !value.bdata) {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, coloured(v, palette, dark, within || /color/i.test(k))]))
  }
  return value
}

function outOfSight(self) {
  const box = self.root.getBoundingClientRect()
  return box.bottom < -NEAR || box.top > window.innerHeight + NEAR
}

// A rerun brings several figures one after the other. Whatever is asked of the page between two drawings makes the browser lay it out
// again, so all that is asked is asked first, once for all of them.
const waiting = new Set()

function soon(self) {
  if (!waiting.size) queueMicrotask(() => {
    const all = [...waiting].filter((one) => one.root.isConnected)
    waiting.clear()
    for (const one of all) if (one.drawn) one.late = outOfSight(one)
    for (const one of all) if (!one.late) draw(one)
  })
  waiting.add(self)
}

function draw(self) {
  if (self.held) { self.pending = true; return }
  self.pending = self.late = false
  const { figure, message, page } = self
  const { data, layout } = coloured(message.figure, message.palette, page.dark)
  layout.template = template(page)
  // Plotly would ask the page for the size of the figure, which is known.
  self.width ||= figure.offsetWidth
  layout.autosize = !self.width
  layout.width = self.width || undefined
  layout.height = message.height
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) delete layout.transition
  if (matchMedia("(pointer: coarse)").matches) layout.dragmode = false // a finger scrolls the page
  self.drawing = window.Plotly.react(figure, data, layout, { displayModeBar: false, displaylogo: false, responsive: false, showTips: false })
  if (!self.drawn) {
    self.drawn = true
    figure.on("plotly_click", (event) => {
      const value = event.points?.[0]?.customdata
      if (value === undefined || value === null) return
      self.trigger?.("clicked", typeof value === "string" ? value : JSON.stringify(ArrayBuffer.isView(value) ? [...value] : value))
    })
  }
  if (self.pointer) { // the hover box was cleared by the redraw: ask for it again
    const [clientX, clientY] = self.pointer
    const under = document.elementFromPoint(clientX, clientY)
    if (under && figure.contains(under)) under.dispatchEvent(new MouseEvent("mousemove", { clientX, clientY, bubbles: true }))
  }
}

function save(name, blob) {
  const link = document.createElement("a")
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10000)
}

async function savePicture(self, format) {
  if (!self.drawn) return
  if (self.late) draw(self)
  const { figure, message } = self
  const layout = { ...figure.layout, paper_bgcolor: self.page.background } // the page's own colour: text stays readable anywhere
  const options = { format, width: figure.offsetWidth, height: figure.offsetHeight, scale: format === "png" ? 2 : 1 }
  const address = await window.Plotly.toImage({ data: figure.data, layout, config: {} }, options)
  save(`${message.name}.${format}`, await (await fetch(address)).blob())
}

function unpack(column) {
  if (Array.isArray(column)) return column
  const bytes = Uint8Array.from(atob(column.bdata), (c) => c.charCodeAt(0))
  if (column.dtype === "f8") return new Float64Array(bytes.buffer)
  return Array.from(new Float32Array(bytes.buffer), (v) => Number(v.toPrecision(8)))
}

function cell(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return ""
  const text = String(value)
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function saveTable(self) {
  const table = self.message?.table
  if (!table) return
  const columns = table.columns.map(unpack)
  const lines = [table.names.map(cell).join(",")]
  for (let row = 0; row < table.rows; row++) lines.push(columns.map((c) => cell(c[row])).join(","))
  save(`${self.message.name}${table.cut ? `-first-${table.rows}-rows` : ""}.csv`, new Blob([lines.join("\n") + "\n"], { type: "text/csv" }))
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component
  if (!data) return
  let self = instances.get(parentElement)
  if (!self) instances.set(parentElement, (self = create(parentElement)))
  self.trigger = setTriggerValue
  const text = new TextDecoder().decode(data)
  const page = pageTheme(self.root)
  const theme = JSON.stringify(page)
  if (text !== self.text || theme !== self.theme) {
    if (text !== self.text) self.message = JSON.parse(text)
    self.text = text
    self.theme = theme
    self.page = page
    self.root.style.height = `${self.message.height}px`
    self.figure.setAttribute("aria-label", self.message.alt)
    self.tools.firstChild.hidden = !self.message.table
    if (self.drawn) soon(self)
    else library().then(() => self.root.isConnected && soon(self)).catch(() => {
      if (self.drawn) return
      self.figure.textContent = "The figure cannot be drawn: app/static/plotly.min.js did not load. Reload the page; if that does not help, restart the app, which puts the file there."
      self.figure.className = "gf-figure gf-problem"
    })
  }
  return () => {
    self.observer.disconnect()
    self.sight.disconnect()
    window.removeEventListener("beforeprint", self.print)
    window.removeEventListener("pointerup", self.release)
    window.removeEventListener("pointercancel", self.release)
    self.root.remove()
    // Only once the last drawing has ended: one that is under way still speaks to the figure.
    if (self.drawn) Promise.resolve(self.drawing).catch(() => {}).finally(() => setTimeout(() => window.Plotly.purge(self.figure), 500))
    instances.delete(parentElement)
  }
}
