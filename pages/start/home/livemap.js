// @ts-check
// The living map: a text on its way through a model. Block, head, temperature, top-k and depth change here; the server is asked
// for another text, for a written token, for another step. See pages/start/home/packing.py and pages/start/home/running_model.py.

import { card } from "./livemap_card.js"
import { createCourse, pause, takeCourse } from "./livemap_course.js"
import { paint, textures } from "./livemap_draw.js"
import { createPanel, drawBars, fly } from "./livemap_panel.js"
import { further, listen } from "./livemap_further.js"
import { choose, drawHeads, headPlace } from "./livemap_heads.js"
import { keys, leave, ring, standAt } from "./livemap_keys.js"
import { between, decisive, fill, has, hit, layout, outlookAt, telling, unpack } from "./livemap_state.js"
import { button, pointIn, windowHeight, within, write } from "../../../ui/assets/shared/dom.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { keepInLink, playButton, still } from "../../../ui/assets/shared/play.js"
import { toolbar } from "../../../ui/assets/shared/save.js"
import { percent, whole } from "../../../ui/assets/shared/numbers.js"
import { paint as paintColours, sideOf, themed } from "../../../ui/assets/shared/theme.js"

const TYPED_MS = 5 // after a key the server is asked, one thing at a time
const PATIENCE_MS = 6000 // an answer that has not come by then is not waited for any longer
const REST_MS = 400
const SWEEP_MS = 700, MOVE_MS = 220, FADE_MS = 200 // a first text runs through; another block opens; a step gives way to the next
const HIGH = 326, HIGHEST = 600, AROUND = 404, TALL = 640, NARROW = 640 // pixels; what stands around the map
const MOST = 500 // tokens that are written on and on
const KEPT = ["home_block", "home_head", "home_depth", "home_temperature", "home_top_k"]

let born = 0

function create(place, _, signal) {
  const id = `gf-live-${++born}`, root = within(place, "div", "gf-live gf-saves"), find = (name) => /** @type {any} */ (root.querySelector(name))
  root.innerHTML = `
    <form class="gf-live-type"><input type="text" class="gf-live-text" autocomplete="off" spellcheck="false" enterkeyhint="done"></form>
    <p class="gf-live-notes" aria-live="polite"></p>
    <div class="gf-live-main">
      <div class="gf-live-stage"><canvas tabindex="0" role="application" aria-describedby="${id}"></canvas><div class="gf-live-heads" role="group"></div><p class="gf-live-legend"></p><div class="gf-live-depth"></div></div>
      <div class="gf-live-panel"></div>
    </div>
    <div class="gf-live-card"><div class="gf-live-said" id="${id}" aria-live="polite" aria-atomic="true"><b></b> <code></code><p></p></div></div>
    <div class="gf-live-course" role="group"></div>
    <p class="gf-live-summary" aria-live="polite"></p>`
  /** @type {any} */
  const self = {
    root, field: find("input"), notes: find(".gf-live-notes"), legend: find(".gf-live-legend"), stage: find(".gf-live-stage"), canvas: find("canvas"),
    heads: find(".gf-live-heads"), box: find(".gf-live-card"), summary: find(".gf-live-summary"), buttons: [], p: null, name: "", g: null, tall: false,
    lane: 0, head: 0, focus: 0, depth: 0, temperature: 1, topK: 0, hover: null, keyed: false, spot: null, sweep: 1, fresh: 0, frame: 0, timer: 0, asks: 0, client: Math.random().toString(36).slice(2, 10),
    waiting: null, next: null, playing: false, written: 0, wrote: "", keepers: Object.fromEntries(KEPT.map((key) => [key, keepInLink(signal)])), brush: null,
  }
  self.brush = self.canvas.getContext("2d")
  root.prepend(toolbar(root, () => null, {}))
  self.look = button("", "", () => follow(self, self.told))
  self.look.className = "gf-live-look"
  self.box.append(self.look)
  self.does = {
    ask: (what) => ask(self, what), write: () => writeOne(self), play: () => toggle(self), changed: () => changed(self),
    point: (spot) => point(self, spot), open: (layer) => open(self, layer), choose: (head) => choose(self, head), keep: (name, value) => keep(self, name, value), refresh: () => refresh(self), act: (spot) => act(self, spot, false), follow: (spot) => follow(self, card(self, spot)), show: (picture) => show(self, picture), stop: (depth) => stopAt(self, depth),
  }
  self.course = createCourse(self, find(".gf-live-course"))
  createPanel(self, find(".gf-live-panel"), find(".gf-live-depth"))
  find("form").onsubmit = (event) => { event.preventDefault(); typed(self) }
  self.field.oninput = () => { halt(self); clearTimeout(self.timer); self.timer = setTimeout(() => typed(self), TYPED_MS) }
  const spot = (event) => {
    const [x, y] = pointIn(self.canvas, event)
    return self.tall ? hit(self.p, self.g, y, x) : hit(self.p, self.g, x, y)
  }
  self.canvas.onpointermove = (event) => { if (event.pointerType !== "touch") { self.keyed = false; point(self, spot(event)) } }
  self.canvas.onpointerleave = () => { if (!self.keyed) { self.hover = null; refresh(self) } }
  self.canvas.onclick = (event) => {
    const found = spot(event)
    if (!found) return
    act(self, found, event.pointerType === "touch")
  }
  self.canvas.onkeydown = (event) => keys(self, event)
  self.canvas.onfocus = () => { if (self.canvas.matches(":focus-visible")) standAt(self) }
  self.canvas.onblur = () => leave(self)
  const anew = () => { if (self.p && root.clientWidth) { place_(self); drawBars(self); refresh(self) } } // a lower map has fewer bars beside it
  root.addEventListener("gf-spare", anew)
  new ResizeObserver(anew).observe(root)
  listen((found) => more(self, found), signal)
  return self
}

// What is shown -----------------------------------------------------------------------------------------------------------

function place_(self) {
  const wide = self.stage.clientWidth, { p } = self
  self.tall = self.root.clientWidth < NARROW
  self.root.classList.toggle("gf-tall", self.tall)
  const high = self.tall ? TALL : Math.max(HIGH, Math.min(HIGHEST, windowHeight() - AROUND)), ratio = window.devicePixelRatio || 1
  Object.assign(self.canvas, { width: Math.round(wide * ratio), height: Math.round(high * ratio) })
  Object.assign(self.canvas.style, { width: `${wide}px`, height: `${high}px` })
  const size = self.tall ? { along: high, across: wide } : { along: wide, across: high }
  self.goal = layout({ ...size, lanes: p.lanes, earlier: p.earlier > 0, layers: p.layers, focus: self.focus, tall: self.tall, there: has(p) })
  self.g = self.goal
}

function refresh(self) {
  if (!self.frame && self.p) self.frame = requestAnimationFrame((time) => { self.frame = 0; if (self.root.isConnected) tick(self, time) })
}

function tick(self, time) {
  const since = (begun, length) => (begun ? Math.min(1, (time - begun) / length) : 1)
  const moved = since(self.movedAt, MOVE_MS), ease = 1 - (1 - moved) ** 3
  self.g = moved < 1 && self.from ? between(self.from, self.goal, ease) : self.goal
  self.sweep = since(self.sweptAt, SWEEP_MS)
  if (self.sweep >= 1) self.fresh = self.p.lanes
  const { p, panel, model } = self
  self.marks = {
    embed: panel.embed, tokens: panel.tokens, guesses: self.depth < p.layers ? panel.would : panel.says, earlier: fill(panel.earlier, { count: p.earlier }),
    block: fill(panel.open, { block: self.focus, heads: p.heads, neurons: whole(model.d_ff ?? 0) }),
  }
  paint(self.brush, self, window.devicePixelRatio || 1)
  const faded = self.ghost ? since(self.fadedAt, FADE_MS) : 1
  if (faded < 1) {
    Object.assign(self.brush, { globalAlpha: 1 - faded })
    self.brush.setTransform(1, 0, 0, 1, 0, 0)
    self.brush.drawImage(self.ghost, 0, 0)
    self.brush.globalAlpha = 1
  } else self.ghost = null
  headPlace(self)
  ring(self)
  tell(self)
  self.root.dataset.frames = String(Number(self.root.dataset.frames ?? 0) + 1)
  if (moved < 1 || self.sweep < 1 || faded < 1) refresh(self)
}

function sweep(self, fresh) {
  if (still()) return
  Object.assign(self, { sweptAt: performance.now(), sweep: 0, fresh })
}

function point(self, spot) {
  self.hover = spot
  if (spot) self.part = null // what the link had pointed at has been read
  if (spot && spot.lane >= 0 && spot.kind !== "neuron") self.lane = spot.lane
  self.canvas.style.cursor = spot ? "pointer" : "default"
  refresh(self)
}

/** A closed block opens; everything else leads to the page that explains it. A finger is told first. */
function act(self, spot, finger) {
  if (spot.layer !== undefined && spot.layer !== self.focus && ["block", "stream"].includes(spot.kind)) return open(self, spot.layer)
  if (finger) return point(self, spot)
  follow(self, card(self, spot))
}

function open(self, layer, byHand = true) {
  if (layer === self.focus || layer < 0 || layer >= self.p.layers) return
  self.from = self.g
  self.focus = layer
  self.hover = self.hover?.kind === "head" ? { ...self.hover, layer } : null
  self.head = telling(self.p, layer, self.lane)
  if (byHand) keep(self, "home_block", layer)
  place_(self)
  if (!still()) self.movedAt = performance.now()
  drawHeads(self)
  refresh(self)
}

function stopAt(self, depth) {
  self.depth = depth
  keep(self, "home_depth", depth)
  open(self, Math.max(0, depth - 1))
  changed(self)
}

/** Temperature, top-k or depth is another. */
function changed(self) {
  keep(self, "home_temperature", self.temperature)
  keep(self, "home_top_k", self.topK)
  drawBars(self)
  refresh(self)
  clearTimeout(self.summing)
  self.summing = setTimeout(() => summarise(self), REST_MS) // who listens is told when the hand rests
}

const keep = (self, name, value) => self.keepers[name](name, value)

function tell(self) {
  const spot = self.hover ?? (self.part ? { kind: "part", part: self.part } : self.p.patterns ? { kind: "head", layer: self.focus, lane: self.lane } : { kind: "block", layer: self.focus })
  const found = card(self, spot), [title, code, text] = self.box.firstChild.children
  self.told = found
  write(title, found.title)
  write(code, [found.name, found.shape].filter(Boolean).join(" "))
  const counted = found.parameters ? fill(self.panel.parameters, { count: found.parameters }) : ""
  write(text, [found.text, counted].filter(Boolean).join(" "))
  self.box.style.setProperty("--part", `var(--gf-${self.parts[found.part]?.colour ?? "residual"})`)
  Object.assign(self.box.dataset, { part: found.part, kind: spot.kind })
  write(self.look, self.panel.look)
  self.look.setAttribute("aria-label", `${self.panel.look}: ${found.title}`)
}

/** All of it in a sentence: as it stands, with the step, the depth and the settings that are chosen. */
function summarise(self) {
  const { p, panel, model } = self, found = outlookAt(p, self.depth, self.temperature, self.topK)
  const guesses = found ? Array.from(found.tokens.subarray(0, 3), (id, i) => `“${p.words[id] ?? `#${id}`}” ${percent(found.p[i])}`).join(", ") : "–"
  const said = fill(panel.summary, {
    title: model.step === null ? model.title : fill(panel.at_step, { title: model.title, step: whole(model.step) }), count: whole(p.earlier + p.lanes), guesses, block: self.focus, head: self.head, word: p.words[p.ids[self.lane]],
    where: self.depth ? fill(panel.block, { block: self.depth - 1 }) : panel.embedding, temperature: self.temperature.toFixed(1), top_k: self.topK || panel.all,
  })
  write(self.summary, said)
  self.canvas.setAttribute("aria-label", panel.map)
}

// Asking: one thing at a time ---------------------------------------------------------------------------------------------

function ask(self, what) {
  if (self.waiting && performance.now() - self.waiting.since < PATIENCE_MS) { self.next = what; return }
  const id = `${self.client}-${++self.asks}`
  self.waiting = { id, what, since: performance.now() }
  clearTimeout(self.retry)
  self.retry = setTimeout(() => { if (self.waiting?.id === id) { self.waiting = null; goOn(self) } }, PATIENCE_MS)
  self.trigger("ask", { id, ...what })
}

function goOn(self) {
  const { next } = self
  self.next = null
  if (next) ask(self, next)
  else if (self.playing) self.again = setTimeout(() => writeOne(self), still() ? 300 : 60)
}

function typed(self) {
  clearTimeout(self.timer)
  const text = self.field.value.replaceAll("⏎", "\n")
  if (text !== self.text) { self.text = text; ask(self, { do: "type", text }) }
}

function writeOne(self) {
  if (self.depth !== self.p.layers) stopAt(self, self.p.layers)
  ask(self, { do: "write", temperature: self.temperature, top_k: self.topK })
}

function toggle(self) {
  self.playing = !self.playing
  self.written = 0
  playButton(self.play, self.playing, self.panel.on)
  if (self.playing) writeOne(self)
}

function halt(self) {
  self.playing = false
  clearTimeout(self.again)
  pause(self)
  playButton(self.play, false, self.panel.on)
}

const follow = (self, told) => { halt(self); ask(self, { do: "open", ...told.ask }) }

// What the server says ----------------------------------------------------------------------------------------------------

function fromLink(self, data) {
  const said = new URL(location.href).searchParams, index = (name, below) => (/^\d{1,4}$/.test(said.get(name) ?? "") && Number(said.get(name)) < below ? Number(said.get(name)) : null)
  const heat = Number(said.get("home_temperature") ?? data.start.temperature)
  self.temperature = heat >= 0.1 && heat <= 2 ? Math.round(heat * 10) / 10 : data.start.temperature
  self.topK = index("home_top_k", 51) ?? data.start.top_k
  return { block: index("home_block", self.p.layers), head: index("home_head", self.p.heads), depth: index("home_depth", self.p.layers + 1) }
}

function take(self, data, fresh) {
  if (self.p && !self.course.box.hidden && data.course?.on && data.picture.name !== self.p.name && data.text_id === self.course.textId) fade(self)
  const before = self.p, another = data.picture.name !== before?.name
  hold(self, { ...data.picture, ...(data.picture.whole ? {} : further(data.picture.name)) })
  const { p } = self, grew = Boolean(before) && before.ids.length > 0 && data.wrote && data.wrote.id === data.answered && data.wrote.id !== self.wrote
  const sizes = !before || before.layers !== p.layers || before.heads !== p.heads || data.model.title !== self.title
  self.title = data.model.title
  self.lane = another ? p.asked : Math.min(self.lane, p.lanes - 1)
  if (sizes) {
    const link = fresh ? fromLink(self, data) : { block: null, head: null, depth: null }
    const star = data.course?.on && data.course.star // a head that forms in this training
    self.focus = link.block ?? (star ? star[0] : decisive(p))
    self.depth = link.depth ?? p.layers
    self.head = link.head ?? (star && star[0] === self.focus ? star[1] : p.patterns ? telling(p, self.focus, self.lane) : 0)
    self.chosenBlock = link.block !== null
    sweep(self, 0)
  }
  place_(self)
  self.textures = textures(p, self.palette, sideOf(self.root))
  drawHeads(self)
  if (grew) {
    self.wrote = data.wrote.id
    sweep(self, p.lanes - 1)
    fly(self, data.wrote)
    if (++self.written >= MOST) halt(self)
  }
}

function hold(self, sent) {
  self.sent = sent
  self.p = unpack(sent)
  self.root.dataset.whole = String(sent.whole)
}

// What the server found out since it sent the picture: the other depths.
function more(self, found) {
  if (!self.p || found.name !== self.p.name || self.p.whole) return
  hold(self, { ...self.sent, ...found })
  if (self.course.on) self.course.cache.set(found.name, self.sent)
  drawBars(self)
  if (!self.playing && !self.course.playing) summarise(self)
  refresh(self)
}

// What is drawn now fades while the next step of a training is drawn below it.
function fade(self) {
  if (still() || !self.canvas.width || self.sweep < 1) return
  const ghost = document.createElement("canvas")
  Object.assign(ghost, { width: self.canvas.width, height: self.canvas.height })
  ghost.getContext("2d")?.drawImage(self.canvas, 0, 0)
  Object.assign(self, { ghost, fadedAt: performance.now() })
}

// Another step of the same training, which was here already.
function show(self, picture) {
  fade(self)
  hold(self, picture)
  place_(self)
  self.textures = textures(self.p, self.palette, sideOf(self.root))
  drawHeads(self)
  drawBars(self)
  refresh(self)
}

/**
 * @param {any} self
 * @param {any} data
 * @param {boolean} fresh
 */
function update(self, data, fresh) {
  const side = paintColours(self.root, data.palette), pick = (name) => data.palette[name][side]
  self.colours = {
    attention: pick("attention"), feedforward: pick("feedforward"), residual: pick("residual"), output: pick("output"), norm: pick("norm"), position: pick("position"), focus: themed(self.root, "primary-color", "#2F55A4"),
    text: themed(self.root, "text-color", "#18202c"), paper: themed(self.root, "background-color", "#fff"), panel: themed(self.root, "secondary-background-color", "#f0f2f6"),
    faint: side ? "#A4ADB9" : "#5B6472",
  }
  self.font = themed(self.root, "code-font", "monospace")
  Object.assign(self, { palette: data.palette, model: data.model, parts: data.parts, panel: data.panel, say: data.say })
  if (fresh && Object.hasOwn(data.parts, data.part ?? "")) self.part = data.part
  take(self, data, fresh)
  const answered = self.waiting && data.answered === self.waiting.id, newest = answered ? !self.next : !self.waiting
  if (newest) self.text = data.text // else another is written by now
  if (newest && (document.activeElement !== self.field || self.playing || data.wrote?.id === data.answered)) self.field.value = data.text.replaceAll("\n", "⏎")
  if (document.activeElement !== self.field) self.field.scrollLeft = self.field.scrollWidth // what was written last is seen
  self.field.setAttribute("aria-label", data.panel.writes)
  self.field.placeholder = data.panel.writes
  write(self.legend, data.panel.legend)
  write(self.notes, data.notes.join(" "))
  self.notes.hidden = !data.notes.length
  self.before = data.before
  drawBars(self)
  if (!self.playing && !self.course.playing) summarise(self) // who listens is not told of every token
  refresh(self)
  if (answered) { self.waiting = null; clearTimeout(self.retry) }
  if (!self.waiting) goOn(self)
  takeCourse(self, data)
  self.box.firstChild.setAttribute("aria-live", self.playing || self.course.playing ? "off" : "polite")
  self.root.dataset.answered = data.answered ?? ""
}

export default component({ create, update, remove: halt })
