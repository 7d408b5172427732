// One position's logits on their way to a token. The arithmetic is engine/sample/stages.py's, done again here so that
// sliders answer at once; tests/browser/test_sampling.py holds the two together. See ui/sampler.py.
const instances = new WeakMap()
const SETTLE_MS = 350 // after the last movement, the server is told
const OFF = { repetition_penalty: 1, temperature: 1, top_k: 0, top_p: 1, min_p: 0 }
const STAGES = {
  logits: "Logits", repetition_penalty: "Penalty", temperature: "Temperature", top_k: "Top-k", top_p: "Top-p", min_p: "Min-p",
}
const CONTROLS = [
  ["temperature", "Temperature", 0, 2, 0.01], ["top_k", "Top-k (0: all)", 0, 0, 1], ["top_p", "Top-p", 0, 1, 0.01], ["min_p", "Min-p", 0, 1, 0.01],
  ["repetition_penalty", "Repetition penalty", 0.5, 2, 0.05],
]
const READY = {
  "As the model says": {}, "Greedy": { temperature: 0 }, "Usual (0.8)": { temperature: 0.8 }, "Nucleus 0.9": { top_p: 0.9 }, "Top-k 5": { top_k: 5 },
  "Min-p 0.1, hot": { temperature: 1.5, min_p: 0.1 },
}

// The stages ------------------------------------------------------------------------------------------------------------

const softmax = (logits) => {
  let top = -Infinity
  for (const x of logits) if (x > top) top = x
  const raw = Float64Array.from(logits, (x) => Math.exp(x - top))
  let sum = 0
  for (const x of raw) sum += x
  return raw.map((x) => x / sum)
}

const ranked = (values) => Array.from(values.keys()).sort((a, b) => values[b] - values[a] || a - b)

const FUNCTIONS = {
  repetition_penalty: (logits, s, seen) => logits.map((x, i) => (seen.has(i) ? (x > 0 ? x / s.repetition_penalty : x * s.repetition_penalty) : x)),
  temperature: (logits, s) => {
    const order = ranked(logits)
    if (s.temperature === 0) return logits.map((x, i) => (i === order[0] ? x : -Infinity))
    // As in the engine: so near to 0 that numbers would overflow, a somewhat larger one does the same.
    let most = 0
    for (const x of logits) if (x !== -Infinity) most = Math.max(most, Math.abs(x))
    const by = s.temperature < 1e-3 ? Math.max(s.temperature, most / 1e30) : s.temperature
    return logits.map((x) => x / by)
  },
  top_k: (logits, s) => {
    const least = logits[ranked(logits)[Math.min(s.top_k, logits.length) - 1]]
    return logits.map((x) => (x < least ? -Infinity : x))
  },
  top_p: (logits, s) => {
    const p = softmax(logits), kept = Float64Array.from(logits)
    let before = 0
    ranked(logits).forEach((i, rank) => {
      if (rank > 0 && before >= s.top_p) kept[i] = -Infinity
      before += p[i]
    })
    return kept
  },
  min_p: (logits, s) => {
    const p = softmax(logits), top = Math.max(...p)
    return logits.map((x, i) => (p[i] < s.min_p * top ? -Infinity : x))
  },
}

function stages(logits, settings, seen) {
  const order = settings.penalty_last ? ["temperature", "top_k", "top_p", "min_p", "repetition_penalty"] : Object.keys(FUNCTIONS)
  let now = Float64Array.from(logits), before = softmax(now)
  const made = [record("logits", now, before, null)]
  for (const name of order) {
    const next = settings[name] === OFF[name] ? now : FUNCTIONS[name](now, settings, seen)
    made.push(record(name, next, before, now))
    now = next
    before = made[made.length - 1].p
  }
  return made
}

function record(name, logits, before, previous) {
  const p = softmax(logits)
  let kept = 0, mass = 1, entropy = 0
  const removed = new Set()
  for (let i = 0; i < logits.length; i++) {
    if (logits[i] === -Infinity) {
      if (previous && previous[i] !== -Infinity) { removed.add(i); mass -= before[i] }
    } else kept++
    if (p[i] > 0) entropy -= p[i] * Math.log(p[i])
  }
  return { name, logits, p, removed, kept, mass, entropy, choices: Math.exp(entropy) }
}

function draw(p, u) {
  let total = 0
  for (const x of p) total += x
  let end = 0, last = 0
  for (let i = 0; i < p.length; i++) {
    end += p[i]
    if (p[i] > 0) last = i
    if (u * total < end) return i
  }
  return last
}

// The screen ------------------------------------------------------------------------------------------------------------

function numbers(text, Kind) {
  const raw = atob(text), bytes = new Uint8Array(raw.length)
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i)
  return new Kind(bytes.buffer)
}

function create(parentElement) {
  const root = element("div", "gf-sampler")
  const ready = element("div", "gf-sampler-ready"), controls = element("div", "gf-sampler-controls")
  ready.setAttribute("role", "group")
  ready.setAttribute("aria-label", "Ready settings")
  ready.dataset.unsaved = ""
  const main = element("div", "gf-sampler-main")
  root.append(ready, controls, main)
  parentElement.appendChild(root)
  const self = { root, main, inputs: {}, settings: null, timer: 0, frame: 0, playing: 0, count: 1000, rows: [], send: null, mode: "" }
  for (const [name, values] of Object.entries(READY)) {
    const button = element("button", "", name)
    button.type = "button"
    button.onclick = () => change(self, { ...OFF, ...values, penalty_last: self.settings.penalty_last, seed: self.settings.seed })
    ready.append(button)
  }
  for (const [name, label, low, high, step] of CONTROLS) {
    const box = element("label", "gf-sampler-control")
    const range = element("input"), number = element("input")
    range.type = "range"
    number.type = "number"
    for (const input of [range, number]) Object.assign(input, { min: low, max: high, step })
    number.max = name === "temperature" || name === "repetition_penalty" ? 100 : high
    number.step = "any"
    range.setAttribute("aria-label", label)
    number.setAttribute("aria-label", `${label}, exactly`)
    const take = (input) => () => {
      const value = Number(input.value)
      if (input.value === "" || !Number.isFinite(value)) return
      const inside = Math.min(Math.max(value, name === "repetition_penalty" ? 0.01 : 0), Number(number.max))
      change(self, { [name]: name === "top_k" ? Math.round(inside) : inside }, inside === value ? input : null)
    }
    range.oninput = take(range)
    number.oninput = take(number)
    box.append(element("span", "", label), number, range)
    controls.append(box)
    self.inputs[name] = { range, number }
  }
  const last = element("label", "gf-sampler-last"), tick = element("input")
  tick.type = "checkbox"
  tick.onchange = () => change(self, { penalty_last: tick.checked })
  last.append(tick, element("span", "", "Penalty after the cuts"))
  controls.append(last)
  self.tick = tick
  root.prepend(saveTools(root, () => `sampling-${self.mode}`, () => table(self)))
  return self
}

function change(self, values, source) {
  Object.assign(self.settings, values)
  show(self, source)
  clearTimeout(self.timer)
  self.timer = setTimeout(() => tell(self), SETTLE_MS)
}

function tell(self) {
  clearTimeout(self.timer)
  self.send("settings", { ...self.settings })
}

function show(self, source) {
  for (const [name, { range, number }] of Object.entries(self.inputs)) {
    if (range !== source) range.value = String(self.settings[name])
    if (number !== source) number.value = String(Math.round(self.settings[name] * 1e6) / 1e6)
    range.classList.toggle("gf-off", self.settings[name] === OFF[name])
  }
  self.tick.checked = self.settings.penalty_last
  self.tick.parentElement.toggleAttribute("data-unsaved", !self.tick.checked)
  if (!self.frame) self.frame = requestAnimationFrame(() => { self.frame = 0; if (self.root.isConnected) paint(self) })
}

const percent = (x) => (x >= 0.0995 ? `${(100 * x).toFixed(0)}%` : x >= 0.00095 ? `${(100 * x).toFixed(1)}%` : x > 0 ? "<0.1%" : "0%")

function paint(self) {
  self.made = stages(self.logits, self.settings, self.seen)
  const last = self.made[self.made.length - 1]
  self.token = draw(last.p, self.numbers[0])
  self.root.dataset.drawn = String(self.token)
  self.root.dataset.stages = JSON.stringify(self.made.map((s) => [s.name, s.kept, s.mass, s.entropy]))
  if (self.mode === "draws") paintDraws(self, last)
  else paintStages(self, last)
}

// The table of stages: a row for each of the likeliest tokens, a column for each stage.
function buildStages(self) {
  self.main.replaceChildren()
  const scroll = element("div", "gf-sampler-scroll"), grid = element("div", "gf-sampler-grid")
  scroll.tabIndex = 0
  scroll.setAttribute("role", "region")
  scroll.setAttribute("aria-label", "What each stage leaves of the likeliest tokens")
  scroll.append(grid)
  self.grid = grid
  const title = element("p", "gf-sampler-title", "Renormalised and drawn: what is left, side by side from 0 to 1")
  const strip = element("div", "gf-sampler-strip"), said = element("p", "gf-sampler-said")
  said.setAttribute("aria-live", "polite")
  self.main.append(scroll, title, strip, said)
  Object.assign(self, { strip, said, order: null, cells: [] })
}

function buildGrid(self, names) {
  self.grid.replaceChildren()
  self.grid.style.setProperty("--stages", names.length)
  self.cells = []
  self.heads = []
  self.grid.append(element("span", "gf-sampler-corner", "token"))
  for (const name of names) {
    const head = element("div", "gf-sampler-head")
    head.append(element("b", "", STAGES[name]), element("span"), element("span"), element("span"), element("span"))
    self.grid.append(head)
    self.heads.push(head)
  }
  for (let row = 0; row <= self.shown.length; row++) {
    const label = element("span", "gf-sampler-token")
    self.grid.append(label)
    const line = { label, cells: [] }
    for (let column = 0; column < names.length; column++) {
      const cell = element("div", "gf-sampler-cell"), bar = element("i"), text = element("span")
      cell.append(bar, text)
      self.grid.append(cell)
      line.cells.push({ cell, bar, text })
    }
    self.cells.push(line)
  }
  self.order = names.join()
}

function paintStages(self, last) {
  const names = self.made.map((s) => s.name)
  const shown = self.first.slice(0, self.rowsShown)
  if (!shown.includes(self.token)) shown[shown.length - 1] = self.token
  const fresh = self.order !== names.join() || self.cells.length !== shown.length + 1
  self.shown = shown
  if (fresh) buildGrid(self, names)
  let top = 0
  for (const s of self.made) for (const i of shown) top = Math.max(top, s.p[i])
  self.made.forEach((s, column) => {
    const [, a, b, c, d] = self.heads[column].children
    const off = column > 0 && self.settings[s.name] === OFF[s.name]
    self.heads[column].classList.toggle("gf-off", off)
    a.textContent = off ? "off" : `${s.kept.toLocaleString("en")} ${s.kept === 1 ? "token" : "tokens"} left`
    b.textContent = off ? "" : `${percent(s.mass)} mass kept`
    c.textContent = off ? "" : `${s.entropy.toFixed(2)} nats`
    d.textContent = off ? "" : `≈ ${s.choices.toFixed(1)} choices`
  })
  const gone = new Map()
  self.made.forEach((s, column) => s.removed.forEach((i) => gone.set(i, column)))
  self.shown.forEach((token, row) => {
    const { label, cells } = self.cells[row]
    label.textContent = self.labels[token]
    label.title = `token ${token}, logit ${self.logits[token].toFixed(3)}`
    label.classList.toggle("gf-drawn", token === self.token)
    cells.forEach(({ cell, bar, text }, column) => {
      const s = self.made[column], at = gone.get(token)
      const out = at !== undefined && at <= column
      cell.className = "gf-sampler-cell" + (out ? (at === column ? " gf-cut" : " gf-gone") : "") + (column && self.settings[s.name] === OFF[s.name] ? " gf-off" : "")
      bar.style.width = out ? "0" : `${(100 * s.p[token]) / Math.max(top, 1e-12)}%`
      text.textContent = out ? (at === column ? `✕ ${STAGES[s.name].toLowerCase()}` : "") : (column ? "" : `${s.logits[token].toFixed(2)} · `) + percent(s.p[token])
      cell.title = out ? `removed by ${STAGES[self.made[at].name].toLowerCase()}` : `p = ${s.p[token].toPrecision(4)}, logit ${s.logits[token].toFixed(3)}`
    })
  })
  const rest = self.cells[self.shown.length], inside = new Set(self.shown)
  rest.label.textContent = `${(self.logits.length - self.shown.length).toLocaleString("en")} others`
  rest.label.className = "gf-sampler-token gf-others"
  rest.cells.forEach(({ cell, bar, text }, column) => {
    const s = self.made[column]
    let sum = 0, left = 0
    for (let i = 0; i < s.p.length; i++) if (!inside.has(i)) { sum += s.p[i]; left += s.logits[i] !== -Infinity }
    cell.className = "gf-sampler-cell gf-others" + (column && self.settings[s.name] === OFF[s.name] ? " gf-off" : "")
    bar.style.width = `${Math.min(100, (100 * sum) / Math.max(top, 1e-12))}%`
    text.textContent = left ? percent(sum) : "none left"
    cell.title = `${left} of them left, together p = ${sum.toPrecision(4)}`
  })
  paintStrip(self, last)
}

// The draw: the probabilities side by side from 0 to 1 by token id, and where u falls.
function paintStrip(self, last) {
  const u = self.numbers[0]
  self.strip.replaceChildren()
  let from = 0, mine = [0, 1]
  for (let i = 0; i < last.p.length; i++) {
    if (!last.p[i]) continue
    if (i === self.token) mine = [from, from + last.p[i]]
    if (last.p[i] >= 0.002 || i === self.token) {
      const part = element("span", "gf-sampler-part" + (i === self.token ? " gf-drawn" : ""), last.p[i] > 0.03 ? self.labels[i] : "")
      part.style.left = `${100 * from}%`
      part.style.width = `${100 * last.p[i]}%`
      part.title = `${self.labels[i]}: ${from.toFixed(4)} to ${(from + last.p[i]).toFixed(4)}`
      self.strip.append(part)
    }
    from += last.p[i]
  }
  const mark = element("span", "gf-sampler-mark")
  mark.style.left = `${100 * u}%`
  self.strip.append(mark)
  const sure = last.kept === 1
  self.said.replaceChildren(element("b", "", `Drawn: “${self.labels[self.token]}”`), document.createTextNode(
    sure ? ". One token is left, so nothing is left to chance." : `. Seed ${self.settings.seed} gives u = ${u.toFixed(4)}, which falls into its stretch, ${mine[0].toFixed(4)} to ${mine[1].toFixed(4)}.`,
  ))
}

function table(self) {
  if (self.mode === "draws") {
    const { made, now, count, labels } = self
    return [["id", "token", "probability", "drawn", "share"], ...Array.from(made.at(-1).p, (p, i) => [i, labels[i], p, now[i], count ? now[i] / count : null])]
  }
  const head = ["id", "token", ...self.made.flatMap(({ name }) => [`${name}_logit`, `${name}_probability`]), "removed_by"]
  const line = (_, i) => [i, self.labels[i], ...self.made.flatMap((s) => [s.logits[i], s.p[i]]), self.made.find((s) => s.removed.has(i))?.name]
  return [head, ...Array.from(self.logits, line)]
}

// A thousand draws ------------------------------------------------------------------------------------------------------

function buildDraws(self) {
  self.main.replaceChildren()
  const bar = element("div", "gf-sampler-play"), play = element("button", "", "▶ Draw"), slider = element("input"), where = element("output")
  play.type = "button"
  play.dataset.unsaved = ""
  Object.assign(slider, { type: "range", min: 0, max: self.numbers.length, step: 1 })
  slider.setAttribute("aria-label", "Number of draws")
  slider.oninput = () => { pause(self); self.count = Number(slider.value); paint(self) }
  play.onclick = () => (self.playing ? pause(self) : start(self))
  bar.append(play, slider, where)
  const list = element("div", "gf-sampler-list"), chart = element("div", "gf-sampler-chart"), said = element("p", "gf-sampler-said")
  self.main.append(bar, list, said, chart)
  Object.assign(self, { play, slider, where, list, chart, said, bars: [] })
}

function start(self) {
  if (self.count >= self.numbers.length) self.count = 0
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) { self.count = self.numbers.length; return paint(self) }
  const tick = () => {
    if (!self.root.isConnected) return pause(self)
    self.count = Math.min(self.numbers.length, self.count + Math.max(1, Math.round(self.count / 40)))
    paint(self)
    if (self.count >= self.numbers.length) return pause(self)
    self.playing = requestAnimationFrame(tick)
  }
  self.playing = requestAnimationFrame(tick)
  self.play.textContent = "❚❚ Pause"
}

function pause(self) {
  cancelAnimationFrame(self.playing)
  self.playing = 0
  if (self.play) self.play.textContent = "▶ Draw"
}

function paintDraws(self, last) {
  const n = self.count, p = last.p, counts = new Float64Array(p.length)
  const distances = []
  for (let d = 0; d < self.numbers.length; d++) {
    if (d === n) self.now = Float64Array.from(counts)
    counts[draw(p, self.numbers[d])]++
    if ([1, 2, 3, 5, 7, 10, 14, 20, 30, 50, 70, 100, 140, 200, 300, 500, 700, 1000].includes(d + 1)) distances.push([d + 1, away(p, counts, d + 1)])
  }
  if (n >= self.numbers.length) self.now = counts
  const now = self.now
  self.slider.value = String(n)
  self.where.textContent = `${n.toLocaleString("en")} draws`
  const order = ranked(p).slice(0, 20).filter((i) => p[i] > 0)
  const top = Math.max(...order.map((i) => Math.max(p[i], n ? now[i] / n : 0)), 1e-9)
  if (self.bars.length !== order.length) {
    self.list.replaceChildren()
    self.bars = order.map(() => {
      const row = element("div", "gf-sampler-row"), label = element("span", "gf-sampler-token"), field = element("div", "gf-sampler-field")
      const share = element("i"), wanted = element("b"), text = element("span", "gf-sampler-number")
      field.append(share, wanted)
      row.append(label, field, text)
      self.list.append(row)
      return { row, label, share, wanted, text }
    })
  }
  order.forEach((i, row) => {
    const it = self.bars[row], share = n ? now[i] / n : 0
    it.label.textContent = self.labels[i]
    it.share.style.width = `${(100 * share) / top}%`
    it.wanted.style.left = `${(100 * p[i]) / top}%`
    it.text.textContent = `${now[i]} · ${percent(share)} (p ${percent(p[i])})`
    it.row.title = `“${self.labels[i]}” drawn ${now[i]} times of ${n}; expected ${(n * p[i]).toFixed(1)}`
  })
  const distance = n ? away(p, now, n) : 1
  self.root.dataset.distance = String(distance)
  self.root.dataset.counts = JSON.stringify(Array.from(now))
  // The mean of |share - p| is near sqrt(2 p (1 - p) / (pi n)) for each token; half their sum is the total variation distance to expect.
  let expected = 0
  for (const x of p) expected += Math.sqrt((2 * x * (1 - x)) / Math.PI) / 2
  self.said.textContent = n
    ? `After ${n.toLocaleString("en")} draws the shares differ from the probabilities by ${(100 * distance).toFixed(1)}% in all (total variation distance); about ${(Math.min(1, expected / Math.sqrt(n)) * 100).toFixed(1)}% is to be expected, less and less as 1/√n.`
    : "Press Draw."
  paintChart(self, distances, expected, n, distance)
}

function away(p, counts, n) {
  let sum = 0
  for (let i = 0; i < p.length; i++) sum += Math.abs(counts[i] / n - p[i])
  return sum / 2
}

function paintChart(self, distances, expected, n, distance) {
  const x = (d) => 44 + (Math.log10(d) / 3) * 540, y = (v) => 150 - (Math.log10(Math.max(v, 0.003) / 0.003) / Math.log10(1 / 0.003)) * 140
  const line = (points) => points.map(([d, v]) => `${x(d).toFixed(1)},${y(v).toFixed(1)}`).join(" ")
  const guide = [1, 3, 10, 30, 100, 300, 1000].map((d) => [d, Math.min(1, expected / Math.sqrt(d))])
  const ticks = [1, 10, 100, 1000].map((d) => `<text x="${x(d)}" y="170" text-anchor="middle">${d.toLocaleString("en")}</text><line class="grid" x1="${x(d)}" x2="${x(d)}" y1="10" y2="150"/>`)
  const heights = [1, 0.1, 0.01].map((v) => `<text x="38" y="${y(v) + 4}" text-anchor="end">${v * 100}%</text><line class="grid" x1="44" x2="584" y1="${y(v)}" y2="${y(v)}"/>`)
  const dot = n ? `<circle cx="${x(n)}" cy="${y(distance)}" r="5"/>` : ""
  self.chart.innerHTML = `<svg viewBox="0 0 600 190" role="img" aria-label="Distance between shares and probabilities against the number of draws, both logarithmic; it falls along the dashed line, one over the square root of the number.">${ticks.join("")}${heights.join("")}<polyline class="guide" points="${line(guide)}"/><polyline class="real" points="${line(distances)}"/>${dot}<text x="314" y="187" text-anchor="middle">number of draws</text></svg>`
}

export default function (component) {
  const { data, parentElement, setStateValue } = component
  if (!data) return
  let self = instances.get(parentElement)
  const first = !self
  if (first) instances.set(parentElement, (self = create(parentElement)))
  self.send = setStateValue
  if (first) self.settings = { ...data.settings } // later they are the hand's: the server's are those of a moment ago
  self.settings.seed = data.settings.seed
  self.logits = numbers(data.logits, Float32Array)
  self.numbers = numbers(data.numbers, Float64Array)
  self.seen = new Set(data.seen)
  self.labels = data.labels
  self.first = ranked(self.logits)
  self.rowsShown = Math.min(data.rows, self.logits.length)
  const { range, number } = self.inputs.top_k
  range.max = String(Math.min(self.logits.length, 100))
  number.max = String(self.logits.length)
  const dark = isDark(self.root) ? 1 : 0
  for (const name of ["output", "attention", "quiet"]) self.root.style.setProperty(`--gf-${name}`, data.palette[name][dark])
  if (self.mode !== data.mode) {
    self.mode = data.mode
    if (self.mode === "draws") buildDraws(self)
    else buildStages(self)
  }
  show(self)
  return () => {
    clearTimeout(self.timer)
    cancelAnimationFrame(self.playing)
    cancelAnimationFrame(self.frame)
    self.root.remove()
    instances.delete(parentElement)
  }
}
