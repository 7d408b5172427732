// @ts-check
// One lasting <div> per figure; Plotly.react on it. See ui/players/plot.py.

import { csv } from "./shared/csv.js"
import { element, ROOT, within } from "./shared/dom.js"
import { counted } from "./load.js"
import { slim, stack } from "./plot_narrow.js"
import { handles, movable } from "./plot_points.js"
import { component } from "./shared/mount.js"
import { numbers } from "./shared/numbers.js"
import { still } from "./shared/play.js"
import { asCsv, download, toolbar } from "./shared/save.js"
import { filmed } from "./shared/shots.js"
import { isDark, rgb, themed } from "./shared/theme.js"

const NEAR = 200 // pixels above and below the window that count as in sight

/** @type {Promise<any> | undefined} */
let loading
const plotly = () => /** @type {any} */ (window).Plotly

// Once per page, however many figures there are. A failure is forgotten, so that the next figure tries again.
function library(name) {
  loading ??= (plotly() ? Promise.resolve() : load(new URL(`app/static/${name}`, ROOT).href)).catch((error) => {
    loading = undefined
    throw error
  })
  return loading
}

function load(address) {
  return new Promise((resolve, reject) => {
    const script = element("script")
    script.src = address
    script.onload = () => (plotly() ? resolve(undefined) : reject(new Error(address)))
    script.onerror = () => reject(new Error(address))
    document.head.append(script)
  })
}

function create(place, _, signal) {
  const root = within(place, "div", "gf-plot"), figure = within(root, "div", "gf-figure", "", { role: "img" })
  /** @type {any} */
  const self = { root, figure, text: "", theme: "", message: null, drawn: false, near: true, held: false, pending: false, late: false, trigger: null, points: null, pointer: null, page: null, width: 0, height: 0, taller: 1, grown: 1 }
  self.tools = root.appendChild(toolbar(root, () => rowsOf(self), { CSV: () => saveTable(self), PNG: () => savePicture(self, "png"), SVG: () => savePicture(self, "svg") }))
  // Plotly asks before each drawing whether its place is empty, for which the browser would lay out the whole page: it never is.
  for (const side of ["clientWidth", "clientHeight"]) Object.defineProperty(figure, side, { get: () => self.width || 1 })
  filmed(root, () => (self.message && self.width ? prepared(self) : null))
  // A redraw in the middle of a drag would end the drag, so it waits for the hand to let go.
  figure.addEventListener("pointerdown", () => { self.held = true })
  const release = () => {
    self.held = false
    if (self.pending) draw(self)
  }
  window.addEventListener("pointerup", release, { signal })
  window.addEventListener("pointercancel", release, { signal })
  root.addEventListener("pointermove", (event) => { self.pointer = event.isTrusted ? [event.clientX, event.clientY] : self.pointer })
  root.addEventListener("pointerleave", () => { self.pointer = null })
  root.addEventListener("touchstart", () => root.classList.add("gf-touched"), { passive: true })
  new ResizeObserver(() => {
    const high = full(self) ? figure.offsetHeight : 0
    if (!figure.offsetWidth || (figure.offsetWidth === self.width && high === self.height)) return
    Object.assign(self, { width: figure.offsetWidth, height: high, near: true }) // it may have come into sight by that
    if (self.drawn) soon(self)
  }).observe(root)
  // On a stage a figure is as high as the screen allows: stage_fit.js says how much higher than the page asked for.
  root.addEventListener("gf-grow", (/** @type {CustomEvent} */ event) => {
    if (event.detail === self.grown) return
    self.grown = event.detail
    self.near = true
    if (self.message) heighten(self, self.taller)
    if (self.drawn) soon(self)
  })
  // A figure that is out of sight is drawn anew when it comes near: those in sight then answer sooner.
  const come = () => { if (self.late) draw(self) }
  const margin = `${NEAR}px` // of the window in a saved file, of what scrolls in the app
  const sight = new IntersectionObserver((entries) => {
    self.near = entries[entries.length - 1].isIntersecting
    if (self.near) come()
  }, /** @type {any} */ ({ rootMargin: margin, scrollMargin: margin }))
  sight.observe(root)
  window.addEventListener("beforeprint", come, { signal })
  return self
}

function pageTheme(node) {
  return {
    background: themed(node, "background-color", "#ffffff"), dark: isDark(node), text: themed(node, "text-color", "#222222"),
    font: themed(node, "font", "sans-serif"), panel: themed(node, "secondary-background-color", "#f2f4f7"), line: themed(node, "border-color", "#d8dde5"),
  }
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

function coloured(value, palette, dark, inside = false) {
  // Names of colours -> colours, in fields that hold colours (…color, colorscale, …colors) and nowhere else.
  if (typeof value === "string") {
    const match = inside && /^var\(--gf-([a-z]+\d*)(?:-(\d+))?\)$/.exec(value)
    if (!match || !palette[match[1]]) return value
    const found = palette[match[1]][dark ? 1 : 0]
    return match[2] ? `rgba(${rgb(found).join(",")},${Number(match[2]) / 100})` : found
  }
  if (Array.isArray(value)) return inside || typeof value[0] === "object" ? value.map((v) => coloured(v, palette, dark, inside)) : value
  if (value && typeof value === "object" && !value.bdata) {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, coloured(v, palette, dark, inside || /color/i.test(k))]))
  }
  return value
}

// A heatmap says of its cells their row and column; sent for each cell, the names would be larger than the numbers.
function withNames(trace) {
  const { rows, columns, between } = trace.meta ?? {}
  return rows && columns ? { ...trace, hovertext: rows.map((row) => columns.map((column) => `${row}${between}${column}`)) } : trace
}

// A rerun brings several figures one after the other: all are drawn together, in a microtask after the last of them. Nothing is asked of the
// page before that, since the browser would have to lay it out to answer.
const waiting = new Set()

function soon(self) {
  if (!waiting.size) queueMicrotask(() => {
    const all = [...waiting].filter((one) => one.root.isConnected)
    waiting.clear()
    for (const one of all) {
      one.late = one.drawn && !one.near
      if (!one.late) draw(one)
    }
  })
  waiting.add(self)
}

/** Whether it fills the screen: see stage_full.js. */
const full = (self) => self.root.classList.contains("gf-full")

/** Whether its notes stand over lines and points, which would run through their letters: they get the ground of the page. */
const drawnInLines = (data, layout) => data.every(({ type }) => type === "scatter") && !(layout.shapes ?? []).some(({ fillcolor }) => fillcolor)

// Plotly styles lines, points and letters as it draws them, and then all of them once more: a fourth of a drawing with many letters.
// Only bars of errors get their look by that alone.
function styledOnce(figure) {
  const scatter = figure._fullData?.find(({ type }) => type === "scatter")?._module
  if (!scatter?.style || scatter.twice) return
  const twice = scatter.twice = scatter.style
  scatter.style = (/** @type {any} */ other) => {
    if (!other._fullLayout._replotting || other._fullData.some((trace) => trace.error_x?.visible || trace.error_y?.visible)) twice(other)
  }
}

// What Plotly is given: in the page's colours, and as wide as its place.
function prepared({ message, page, width, height, grown }) {
  const { data, layout } = coloured(message.figure, message.palette, page.dark)
  layout.template = template(page)
  if (drawnInLines(data, layout)) layout.template.layout.annotationdefaults = { bgcolor: `rgba(${rgb(page.background).join(",")},0.85)`, borderpad: 0 }
  const taller = slim(layout, width) * stack(layout, width)
  layout.autosize = !width
  layout.width = width || undefined
  layout.height = height || message.height * taller * grown
  if (still()) delete layout.transition
  return { data, layout, taller }
}

function draw(self) {
  if (self.held) { self.pending = true; return }
  self.pending = self.late = false
  const { figure } = self
  // Plotly would ask the page for the size of the figure, which is known.
  self.width ||= figure.offsetWidth
  const { data, layout, taller } = prepared(self), traces = data.map(withNames)
  if (taller !== self.taller) heighten(self, taller)
  if (matchMedia("(pointer: coarse)").matches) layout.dragmode = false // a finger scrolls the page
  // The promise of a drawing whose transition the next one interrupts never resolves: the next one ends it.
  self.overtake?.()
  const overtaken = new Promise((resolve) => { self.overtake = resolve })
  const drawn = plotly().react(figure, traces, layout, { displayModeBar: false, displaylogo: false, responsive: false, showTips: false })
  styledOnce(figure) // from the next drawing on
  self.drawing = counted(Promise.race([drawn, overtaken]))
  if (self.points) self.drawing.then(self.points.place)
  if (!self.drawn) {
    self.drawn = true
    figure.on("plotly_click", (event) => {
      const value = event.points?.[0]?.customdata
      if (value === undefined || value === null) return
      self.trigger?.("clicked", typeof value === "string" ? value : JSON.stringify(ArrayBuffer.isView(value) ? Array.from(/** @type {any} */ (value)) : value))
    })
  }
  if (self.pointer) { // the hover box was cleared by the redraw: ask for it again
    const [clientX, clientY] = self.pointer
    const under = document.elementFromPoint(clientX, clientY)
    if (under && figure.contains(under)) under.dispatchEvent(new MouseEvent("mousemove", { clientX, clientY, bubbles: true }))
  }
}

// Streamlit gives a component's place the height that the page asked for: a figure that is higher here takes its place along.
function heighten(self, taller) {
  self.taller = taller
  const times = taller * self.grown, height = times === 1 ? "" : `${self.message.height * times}px`
  self.root.style.height = height || `${self.message.height}px`
  for (let place = self.root.parentElement; place; place = place.parentElement) {
    if (place.matches("[data-testid=stBidiComponentRegular], [data-testid=stBidiComponent], [data-testid=stElementContainer]")) Object.assign(place.style, { height, flexBasis: height })
    if (place.matches("[data-testid=stElementContainer]")) break
  }
}

async function savePicture(self, format) {
  if (!self.drawn) return
  if (self.late) draw(self)
  const { figure, message } = self
  const layout = { ...figure.layout, paper_bgcolor: self.page.background } // the page's own colour: text stays readable anywhere
  const options = { format, width: figure.offsetWidth, height: figure.offsetHeight, scale: format === "png" ? 2 : 1 }
  const address = await plotly().toImage({ data: figure.data, layout, config: {} }, options)
  download(`${message.name}.${format}`, await (await fetch(address)).blob())
}

function unpack(column) {
  if (Array.isArray(column)) return column
  if (column.dtype === "f8") return numbers(column.bdata, Float64Array)
  return Array.from(numbers(column.bdata, Float32Array), (v) => Number(v.toPrecision(8)))
}

function rowsOf(self) {
  const table = self.message?.table
  if (!table) return null
  const columns = table.columns.map(unpack)
  return [table.names, ...Array.from({ length: table.rows }, (_, row) => columns.map((column) => column[row]))]
}

function saveTable(self) {
  const rows = rowsOf(self), table = self.message?.table
  if (rows) download(`${self.message.name}${table.cut ? `-first-${table.rows}-rows` : ""}.csv`, asCsv(csv(rows)))
}

function update(self, data) {
  const text = typeof data === "string" ? data : new TextDecoder().decode(data), page = pageTheme(self.root), theme = JSON.stringify(page)
  if (text === self.text && theme === self.theme) return
  if (text !== self.text) self.message = JSON.parse(text)
  self.text = text
  self.theme = theme
  self.page = page
  self.root.style.height = `${self.message.height * self.taller * self.grown}px`
  self.figure.setAttribute("aria-label", self.message.alt)
  self.tools.firstChild.hidden = !self.message.table
  if (movable(self.message)) self.points ??= handles(self.root, self.figure, (points) => self.trigger?.("moved", points))
  self.points?.received(self.message)
  if (self.drawn) soon(self)
  else counted(library(self.message.library)).then(() => self.root.isConnected && soon(self)).catch(() => {
    if (self.drawn) return
    self.figure.textContent = `The figure cannot be drawn: app/static/${self.message.library} did not load. Reload the page; if that does not help, restart the app.`
    self.figure.className = "gf-figure gf-problem"
  })
}

function remove(self) {
  // Only once the last drawing has ended: one that is under way still speaks to the figure.
  if (self.drawn) Promise.resolve(self.drawing).catch(() => {}).finally(() => setTimeout(() => plotly().purge(self.figure), 500))
}

export default component({ create, update, remove })
