// @ts-check
// Byte-pair encoding, played: all merges and a passage's falling borders come once, every frame is made here.
// See pages/input/tokens/bpe.py.

import { around, characters, element, within } from "../../../ui/assets/shared/dom.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { counted, whole } from "../../../ui/assets/shared/numbers.js"
import { saveTools } from "../../../ui/assets/shared/save.js"
import { createStepper } from "../../../ui/assets/shared/stepper.js"
import { createTrack, drawTrack } from "../../../ui/assets/shared/track.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {string} key what the frames are of
 * @property {string} frames JSON: merges, runners-up, tokens and the passage's falling borders
 * @property {string} name
 * @property {number} step at first
 * @property {number} token at first; -1 for none
 */

const HUES = ["#2B93DD", "#D97706", "#1FC983", "#C574AD", "#8f7bff", "#e0564a", "#c9a400", "#3fb6c6"]
const REST_MS = 400 // after the last move, where it came to rest goes into the link
const MOST_LEAVES = 32
const SHORT = 20 // characters of a token that stays on one line
const NEVER = -1, HIDDEN = -9, UNKNOWN = -1

const TEMPLATE = `
  <div class="gf-bpe-top"><div class="gf-bpe-now" aria-live="off"></div></div>
  <div class="gf-bpe-two gf-bpe-main">
    <div><p class="gf-bpe-title" data-is="after"></p><div class="gf-bpe-panel gf-text" data-is="panel1" tabindex="0" role="group" aria-label="The passage after the merge"></div><div class="gf-bpe-note" data-is="passage"></div></div>
    <div><p class="gf-bpe-title">The most frequent pair wins</p><div class="gf-bpe-pairs gf-text"></div><div class="gf-bpe-note" data-is="tie"></div></div>
  </div>
  <div class="gf-bpe-note" data-is="unknown"></div>
  <details class="gf-bpe-more"><summary>Before this merge, and how a token was built</summary><div data-is="inside" hidden>
    <div class="gf-bpe-two">
      <div><p class="gf-bpe-title" data-is="before"></p><div class="gf-bpe-panel gf-text" data-is="panel0" tabindex="0" role="group" aria-label="The passage before the merge"></div></div>
      <div><p class="gf-bpe-title" data-is="whose"></p><div class="gf-bpe-facts"></div></div>
    </div>
    <div class="gf-bpe-treehead"><p class="gf-bpe-title" data-is="treetitle" aria-live="polite"></p><select data-is="vocabulary" aria-label="Show how a token was built"></select></div>
    <div class="gf-bpe-tree" tabindex="0" role="group" aria-label="Tree of merges"></div></div></details>`

const times = (n) => counted(n, "time")

function create(place, _, signal) {
  const root = within(place, "div", "gf-bpe")
  root.innerHTML = TEMPLATE
  root.style.setProperty("--gf-hot", "#d9480f")
  /** @type {(name: string) => NodeListOf<HTMLElement>} */
  const all = (name) => root.querySelectorAll(name)
  const parts = {}
  all("[data-is]").forEach((node) => { parts[node.dataset.is] = node })
  const find = (name) => root.querySelector(name)
  /** @type {any} */
  const self = {
    root, parts, now: find(".gf-bpe-now"), pairs: find(".gf-bpe-pairs"), facts: find(".gf-bpe-facts"),
    tree: find(".gf-bpe-tree"), more: find("details"), key: null, token: -1, treeOf: null, timer: 0, send: null, panels: [], sent: "", count: 0,
  }
  const moved = () => { draw(self, !self.steps.playing()); tell(self) }
  self.track = createTrack("Merge")
  self.steps = createStepper({ unit: "merge", track: self.track, play: "Play", speeds: [1, 2, 5, 15, 60], ends: true, moved, rested: () => tell(self) }, signal)
  self.steps.speed.value = "2"
  root.prepend(self.steps.bar)
  for (const panel of [parts.panel0, parts.panel1]) {
    panel.addEventListener("click", (event) => {
      const cell = around(event, ".gf-bpe-t")
      if (cell && Number(cell.dataset.id) >= 0) pick(self, Number(cell.dataset.id))
    })
    panel.addEventListener("scroll", () => {
      const other = panel === parts.panel0 ? parts.panel1 : parts.panel0
      if (Math.abs(other.scrollTop - panel.scrollTop) > 1 && panel.matches(":hover, :focus")) other.scrollTop = panel.scrollTop
    }, { passive: true })
  }
  self.more.ontoggle = () => unfold(self, self.more.open)
  parts.vocabulary.onchange = () => pick(self, Number(parts.vocabulary.value))
  self.tree.addEventListener("click", (event) => {
    const node = around(event, ".gf-bpe-chip")
    if (node) pick(self, Number(node.dataset.id))
  })
  parts.tie.before(saveTools(root, () => "bpe-merges", () => table(self)))
  return self
}

function table(self) {
  return [["merge", "left_id", "left", "right_id", "right", "id", "token", "count", "tokens_left"], ...Array.from({ length: self.count }, (_, rank) => {
    const { left, right, token, count, length } = merge(self, rank)
    return [rank + 1, left, text(self, left), right, text(self, right), token, text(self, token), count, length]
  })]
}

function tell(self) {
  clearTimeout(self.timer)
  if (self.steps.playing()) return
  self.timer = setTimeout(() => {
    const at = `${self.steps.at},${self.token}`
    if (at !== self.sent && !self.steps.playing()) self.trigger("at", (self.sent = at))
  }, REST_MS)
}

function unfold(self, open) {
  self.more.open = open
  self.parts.inside.hidden = !open
}

// A token that is pointed at opens the fold that shows how it was built; a link does, too.
function pick(self, id) {
  self.token = id
  unfold(self, true)
  draw(self)
  tell(self)
}

function merge(self, rank) {
  const [left, right, token, count, length] = self.data.merges.slice(5 * rank, 5 * rank + 5)
  return { left, right, token, count, length }
}

function text(self, id) {
  return self.data.tokens[id]
}

function dress(self, node, id) {
  const made = id >= self.data.base
  node.classList.toggle("gf-bpe-made", made)
  node.classList.toggle("gf-bpe-partial", self.partial.has(id))
  if (made) node.style.setProperty("--hue", HUES[((id - self.data.base) * 5) % HUES.length])
}

function chip(self, id) {
  const node = element("span", "gf-bpe-t", text(self, id))
  dress(self, node, id)
  return node
}

// A panel has one cell for each starting symbol; a token is shown by its first symbol's, the others are hidden.
// The cells lie in lines of their own, so that a change costs the layout of its line and not of all.
function fresh(self, panel) {
  const { symbols } = self.data
  const cells = symbols.map(() => element("span", "gf-bpe-t"))
  const lines = [element("div", "gf-bpe-line")]
  cells.forEach((cell, i) => {
    lines.at(-1).appendChild(cell)
    if (symbols[i] === self.data.newline && i < cells.length - 1) lines.push(element("div", "gf-bpe-line"))
  })
  panel.replaceChildren(...lines)
  return { panel, cells, ids: new Array(symbols.length).fill(NEVER - 5), hot: new Uint8Array(symbols.length), picked: new Uint8Array(symbols.length) }
}

function paint(self, view, merged, hotBefore) {
  const { symbols, fallen } = self.data
  const count = symbols.length
  let tokens = 0, places = 0, firstHot = null
  for (let head = 0; head < count;) {
    let newest = NEVER, next = head + 1
    while (next < count && fallen[next - 1] >= 0 && fallen[next - 1] < merged) {
      if (fallen[next - 1] > newest) newest = fallen[next - 1]
      next++
    }
    const id = newest < 0 ? symbols[head] : self.data.merges[5 * newest + 2]
    const left = head > 0 && fallen[head - 1] === merged, right = next < count && fallen[next - 1] === merged
    const hot = hotBefore ? left || right : newest === merged - 1 && newest >= 0
    if (hotBefore ? right : hot) places++
    const cell = view.cells[head]
    if (view.ids[head] !== id) {
      view.ids[head] = id
      cell.dataset.id = String(id)
      cell.className = "gf-bpe-t"
      view.hot[head] = view.picked[head] = 0
      if (id === UNKNOWN) {
        cell.textContent = self.missing.get(head)
        cell.classList.add("gf-bpe-unknown")
        cell.title = "This character is not in the training alphabet."
      } else {
        cell.textContent = text(self, id)
        cell.classList.toggle("gf-bpe-short", characters(text(self, id)).length <= SHORT)
        dress(self, cell, id)
        cell.title = title(self, id)
      }
    }
    if (view.hot[head] !== Number(hot)) { view.hot[head] = Number(hot); cell.classList.toggle("gf-bpe-hot", hot) }
    const picked = id === self.shownToken
    if (view.picked[head] !== Number(picked)) { view.picked[head] = Number(picked); cell.classList.toggle("gf-bpe-picked", picked) }
    if (hot && !firstHot) firstHot = cell
    for (let i = head + 1; i < next; i++) {
      if (view.ids[i] !== HIDDEN) { view.ids[i] = HIDDEN; view.cells[i].className = "gf-bpe-t gf-bpe-off" }
    }
    tokens++
    head = next
  }
  return { tokens, places, firstHot }
}

function title(self, id) {
  const rank = self.maker.get(id)
  return rank === undefined ? `${text(self, id)} · id ${id}, a starting symbol` : `${text(self, id)} · id ${id}, made by merge ${rank + 1}`
}

function draw(self, follow) {
  const { data, parts } = self, step = self.steps.at
  const now = merge(self, step)
  const lengthBefore = step ? self.data.merges[5 * (step - 1) + 4] : data.start
  self.shownToken = self.token >= 0 ? self.token : now.token
  self.steps.paint("")
  drawTrack(self.track, self.tokens, step)
  self.steps.slider.setAttribute("aria-valuetext", `merge ${step + 1} of ${self.count}`)
  self.now.replaceChildren(
    element("b", "", `Merge ${whole(step + 1)} of ${whole(self.count)}: `), chip(self, now.left), document.createTextNode(" + "), chip(self, now.right),
    document.createTextNode(" → "), chip(self, now.token), document.createTextNode(`  occurs ${times(now.count)}, becomes id ${now.token}`),
  )
  drawPairs(self, now)
  const facts = [
    ["tokens left", `${whole(lengthBefore)} → ${whole(now.length)}`], ["of the original", `${((100 * now.length) / data.start).toFixed(1)}%`],
    ["characters per token", (data.characters / now.length).toFixed(3)], ["bytes per token", (data.bytes / now.length).toFixed(3)],
  ]
  self.facts.querySelectorAll("b").forEach((node, i) => { node.textContent = facts[i][1] })
  const before = paint(self, self.panels[0], step, true), after = paint(self, self.panels[1], step + 1, false)
  parts.before.textContent = `Before: ${whole(before.tokens)} tokens`
  parts.after.textContent = data.same
    ? `Now ${whole(after.tokens)} tokens; at the end ${whole(merge(self, self.count - 1).length)}`
    : `Now ${whole(after.tokens)} tokens`
  const places = after.places
  const where = places ? `Outlined ${places === 1 ? "once" : `${whole(places)} times`} in the passage.` : "This pair does not occur in the passage shown."
  parts.passage.textContent = data.same ? where : `${where} The passage: ${whole(before.tokens)} → ${whole(after.tokens)} tokens, ${(data.shown / after.tokens).toFixed(2)} characters each.`
  if (follow) for (const [view, seen] of [[self.panels[0], before], [self.panels[1], after]]) reveal(view.panel, seen.firstHot)
  drawTree(self)
}

function reveal(panel, cell) {
  if (!cell) return
  const top = cell.getBoundingClientRect().top - panel.getBoundingClientRect().top
  if (top < 0 || top > panel.clientHeight - 28) panel.scrollTop = Math.max(0, panel.scrollTop + top - panel.clientHeight / 3)
}

function drawPairs(self, now) {
  const rows = [[now.left, now.right, now.count]]
  for (let i = 0; i < self.kept; i++) {
    const at = 3 * (self.kept * self.steps.at + i)
    if (self.data.runners[at] >= 0) rows.push(self.data.runners.slice(at, at + 3))
  }
  self.pairs.replaceChildren(...rows.flatMap(([left, right, count], i) => {
    const pair = element("span", "gf-bpe-pair")
    pair.append(chip(self, left), document.createTextNode(" + "), chip(self, right))
    pair.title = `${text(self, left)} + ${text(self, right)}`
    const rail = element("span", i ? "gf-bpe-rail" : "gf-bpe-rail gf-bpe-first")
    within(rail, "i").style.width = `${(100 * count) / now.count}%`
    return [pair, rail, element("span", "", whole(count))]
  }))
  const ties = rows.filter((row, i) => i && row[2] === now.count).length
  self.parts.tie.textContent = ties ? `A tie: the smaller ids win (${now.left} and ${now.right} here).` : rows.length < 2 ? "No other pair is left." : ""
}

function drawTree(self) {
  const id = self.shownToken
  const wanted = `${self.key} ${id}`
  if (self.treeOf === wanted) return
  self.treeOf = wanted
  self.parts.vocabulary.value = String(id)
  self.parts.treetitle.textContent = id >= self.data.base ? "How this token was built" : "This token is a starting symbol"
  // Breadth first, so that what does not fit is what lies deepest.
  const top = { id, kids: [] }
  let leaves = 1
  for (const queue = [top]; queue.length && leaves < MOST_LEAVES;) {
    const node = queue.shift(), rank = self.maker.get(node.id)
    if (rank === undefined) continue
    const { left, right } = merge(self, rank)
    node.kids = [{ id: left, kids: [] }, { id: right, kids: [] }]
    queue.push(...node.kids)
    leaves++
  }
  self.tree.replaceChildren(branch(self, top))
}

function branch(self, { id, kids }) {
  const node = element("div", "gf-bpe-node"), rank = self.maker.get(id)
  const button = within(node, "button", "gf-bpe-chip", "", { "data-id": id })
  button.append(element("b", "", text(self, id)), element("small", "", rank === undefined ? `id ${id}` : `merge ${whole(rank + 1)} · ${times(self.data.merges[5 * rank + 3])}${kids.length ? "" : " …"}`))
  dress(self, button, id)
  if (kids.length) within(node, "div", "gf-bpe-kids").append(...kids.map((kid) => branch(self, kid)))
  return node
}

function load(self, data) {
  self.data = data
  self.count = data.merges.length / 5
  self.kept = data.runners.length / 3 / self.count
  self.partial = new Set(data.partial)
  self.maker = new Map()
  for (let rank = self.count - 1; rank >= 0; rank--) self.maker.set(data.merges[5 * rank + 2], rank)
  self.panels = [fresh(self, self.parts.panel0), fresh(self, self.parts.panel1)]
  const merges = [...Array(self.count).keys()]
  self.tokens = { steps: merges, losses: merges.map((rank) => merge(self, rank).length), marks: [] } // how many are left, drawn behind the slider
  self.facts.replaceChildren(...["tokens left", "of the original", "characters per token", "bytes per token"].map((name) => {
    const fact = element("div")
    fact.append(element("span", "", name), element("b", "", ""))
    return fact
  }))
  self.parts.vocabulary.replaceChildren(...data.tokens.map((token, id) => {
    const rank = self.maker.get(id), option = element("option", "", rank === undefined ? `${token}  (id ${id})` : `${token}  (merge ${rank + 1})`)
    option.value = String(id)
    return [rank ?? -1, option]
  }).sort((a, b) => Number(a[0] < 0) - Number(b[0] < 0) || a[0] - b[0]).map(([, option]) => option))
  self.missing = new Map()
  data.symbols.forEach((id, i) => { if (id === UNKNOWN) self.missing.set(i, data.unknown[self.missing.size]) })
  const kinds = [...new Set(data.unknown)], some = kinds.slice(0, 12).join(" ")
  self.parts.unknown.textContent = kinds.length ? `Not in the training alphabet, so they have no id: ${some}${kinds.length > 12 ? " …" : ""}. Each counts as one token here.` : ""
}

function update(self, /** @type {Data} */ data, first) {
  if (self.key === data.key) return
  self.key = data.key
  load(self, JSON.parse(data.frames))
  self.parts.whose.textContent = `All of ${data.name}`
  if (first) { self.token = data.token; unfold(self, data.token >= 0) }
  self.steps.update({ step: data.step, last: self.count - 1 })
  if (self.token >= self.data.tokens.length) self.token = -1
  if (first) self.sent = `${self.steps.at},${self.token}`
  draw(self, true)
}

export default component({ create, update })
