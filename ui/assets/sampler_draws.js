// @ts-check
// A thousand draws, how they close in on the probabilities. A view of sampler.js.

import { rangeInput, within } from "./shared/dom.js"
import { percent, whole } from "./shared/numbers.js"
import { still } from "./shared/play.js"
import { distance, drawer, expectedDistance, ranked } from "./sampler_stages.js"

const MARKS = new Set([1, 2, 3, 5, 7, 10, 14, 20, 30, 50, 70, 100, 140, 200, 300, 500, 700, 1000]) // after which the chart has a point

/** The slider, the bars and the chart, in place of what stood there. */
export function buildDraws(self) {
  self.main.replaceChildren()
  const bar = within(self.main, "div", "gf-sampler-play"), play = within(bar, "button", "", "▶ Draw", { "data-unsaved": "" })
  const slider = bar.appendChild(rangeInput("Number of draws", { max: self.numbers.length })), where = within(bar, "output")
  slider.oninput = () => { pause(self); self.count = Number(slider.value); self.paint() }
  play.onclick = () => (self.playing ? pause(self) : start(self))
  const pair = within(self.main, "div", "gf-sampler-pair"), said = within(self.main, "p", "gf-sampler-said")
  const list = within(pair, "div", "gf-sampler-list gf-text-cells"), chart = within(pair, "div", "gf-sampler-chart")
  Object.assign(self, { play, slider, where, list, chart, said, bars: [] })
}

function start(self) {
  if (self.count >= self.numbers.length) self.count = 0
  if (still()) { self.count = self.numbers.length; return self.paint() }
  const tick = () => {
    if (!self.root.isConnected) return pause(self)
    self.count = Math.min(self.numbers.length, self.count + Math.max(1, Math.round(self.count / 40)))
    self.paint()
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

/** What `self.count` draws make of the probabilities that the last stage left. */
export function paintDraws(self, last) {
  const n = self.count, p = last.p
  if (self.drawnFrom !== p || self.drawnWith !== self.numbers) { // once for each distribution, not for each frame of the play
    const of = drawer(p)
    Object.assign(self, { drawnFrom: p, drawnWith: self.numbers, ids: Array.from(self.numbers, of), likely: ranked(p).subarray(0, 12), distances: [] })
    const counts = new Float64Array(p.length)
    self.ids.forEach((id, d) => {
      counts[id]++
      if (MARKS.has(d + 1)) self.distances.push([d + 1, distance(p, counts, d + 1)])
    })
  }
  const { distances } = self, now = new Float64Array(p.length)
  for (let d = 0; d < n; d++) now[self.ids[d]]++
  self.now = now
  self.slider.value = String(n)
  self.where.textContent = `${whole(n)} draws`
  const order = Array.from(self.likely).filter((i) => p[i] > 0)
  const top = Math.max(...order.map((i) => Math.max(p[i], n ? now[i] / n : 0)), 1e-9)
  if (self.bars.length !== order.length) {
    self.list.replaceChildren()
    self.bars = order.map(() => {
      const row = within(self.list, "div", "gf-sampler-row"), label = within(row, "span", "gf-sampler-token"), field = within(row, "div", "gf-sampler-field")
      return { row, label, share: within(field, "i"), wanted: within(field, "b"), text: within(row, "span", "gf-sampler-number") }
    })
  }
  order.forEach((i, row) => {
    const it = self.bars[row], share = n ? now[i] / n : 0
    it.label.textContent = self.word(i)
    it.share.style.width = `${(100 * share) / top}%`
    it.wanted.style.left = `${(100 * p[i]) / top}%`
    it.text.textContent = `${now[i]} · ${percent(share)} (p ${percent(p[i])})`
    it.row.title = `“${self.word(i)}” drawn ${now[i]} times of ${n}; expected ${(n * p[i]).toFixed(1)}`
  })
  const found = n ? distance(p, now, n) : 1, expected = expectedDistance(p)
  self.root.dataset.distance = String(found)
  self.root.dataset.counts = JSON.stringify(Array.from(now).filter(Boolean))
  self.said.textContent = n
    ? `After ${whole(n)} draws the shares are ${(100 * found).toFixed(1)}% away from the probabilities; expected: ${(Math.min(1, expected / Math.sqrt(n)) * 100).toFixed(1)}%, falling as 1/√n.`
    : "Press Draw."
  paintChart(self, distances, expected, n, found)
}

function paintChart(self, distances, expected, n, now) {
  const x = (d) => 54 + (Math.log10(d) / 3) * 520, y = (v) => 320 - (Math.log10(Math.max(v, 0.003) / 0.003) / Math.log10(1 / 0.003)) * 310
  const line = (points) => points.map(([d, v]) => `${x(d).toFixed(1)},${y(v).toFixed(1)}`).join(" ")
  const guide = [1, 3, 10, 30, 100, 300, 1000].map((d) => [d, Math.min(1, expected / Math.sqrt(d))])
  const ticks = [1, 10, 100, 1000].map((d) => `<text x="${x(d)}" y="342" text-anchor="middle">${whole(d)}</text><line class="grid" x1="${x(d)}" x2="${x(d)}" y1="10" y2="320"/>`)
  const heights = [1, 0.1, 0.01].map((v) => `<text x="48" y="${y(v) + 4}" text-anchor="end">${v * 100}%</text><line class="grid" x1="54" x2="574" y1="${y(v)}" y2="${y(v)}"/>`)
  const dot = n ? `<circle cx="${x(n)}" cy="${y(now)}" r="5"/>` : ""
  self.chart.innerHTML = `<svg viewBox="0 0 600 372" role="img" aria-label="Distance between shares and probabilities against the number of draws, both logarithmic; it falls along the dashed line, one over the square root of the number.">${ticks.join("")}${heights.join("")}<polyline class="guide" points="${line(guide)}"/><polyline class="real" points="${line(distances)}"/>${dot}<text x="314" y="366" text-anchor="middle">number of draws; distance of the shares</text></svg>`
}
