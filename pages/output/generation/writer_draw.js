// @ts-check
// The writer on the screen: the text, what else could stand there, its numbers and its branches. What the person does with
// it is answered by `self.does`, which writer.js has.

import { shade } from "../../../ui/assets/shared/colours.js"
import { alone, beginning, characters, element, vector, write } from "../../../ui/assets/shared/dom.js"
import { percent, raised, whole } from "../../../ui/assets/shared/numbers.js"
import { playButton } from "../../../ui/assets/shared/play.js"
import { decode, ended, known, pathOf, shown } from "./writer_state.js"

const LANE = 38 // pixels of a branch

function cellFor(self, token, name) {
  /** @type {any} what it shows is kept on it */
  const cell = element("span", name, shown(self, token).replaceAll("␣", " ").replaceAll("⏎", "⏎\n"))
  cell.state = ""
  return cell
}

/** Everything, as the writer stands now. */
export function draw(self) {
  const held = self.promptCells ?? []
  if (self.promptOf !== String(self.prompt)) {
    held.forEach((cell) => cell.remove())
    self.promptCells = self.prompt.map((token) => cellFor(self, token, "gf-writer-given"))
    self.text.prepend(...self.promptCells)
    self.promptOf = String(self.prompt)
  }
  let same = 0
  while (same < self.cells.length && same < self.path.length && self.cells[same].index === self.path[same]) same++
  while (self.cells.length > same) self.cells.pop().remove()
  for (let i = same; i < self.path.length; i++) {
    const cell = cellFor(self, self.nodes[self.path[i]].token, "gf-writer-token")
    cell.index = self.path[i]
    self.cells.push(cell)
    self.text.append(cell)
  }
  const node = self.at ? self.nodes[self.path[self.at - 1]] : null, begin = node ? node.begin : 0
  self.promptCells.forEach((cell, i) => look(cell, `gf-writer-given${i < begin ? " gf-dropped" : ""}`, "", ""))
  const most = known(self)
  self.cells.forEach((cell, i) => {
    const it = self.nodes[self.path[i]]
    let name = "gf-writer-token"
    if (it.token !== it.drawn) name += " gf-picked"
    if (i >= self.at) return look(cell, name + (it.seen && i < most ? " gf-later" : " gf-hidden"), "", "")
    if (i === self.at - 1) name += " gf-here"
    if (self.prompt.length + i < begin) return look(cell, name + " gf-dropped", "", "")
    const { background, color } = shade(self.palette, it.p, self.side)
    look(cell, name, background, color)
  })
  self.text.classList.toggle("gf-long", self.path.slice(0, 40).some((i) => characters(shown(self, self.nodes[i].token)).length > 1)) // else a token is a character, and needs no border
  follow(self)
  self.line.stand(self.at, Math.max(most, 1), `${whole(self.at)} of ${whole(ended(self) ? most : self.length)} tokens`)
  self.line.slider.disabled = !most
  label(self)
  say(self, node, begin)
  facts(self)
  panel(self)
  tree(self)
}

function look(cell, name, background, colour) {
  const now = `${name}|${background}`
  if (cell.state === now) return
  cell.state = now
  cell.className = name
  cell.style.background = background
  cell.style.color = colour
}

function follow(self) {
  const cell = self.at ? self.cells[self.at - 1] : self.promptCells[0]
  if (!cell) return
  const box = self.text, top = cell.offsetTop // within the box: it is positioned
  if (top < box.scrollTop || top + 56 > box.scrollTop + box.clientHeight) box.scrollTop = Math.max(0, top - box.clientHeight / 2)
}

function say(self, node, begin) {
  const why = ended(self), most = known(self)
  let words
  if (self.todo) words = "Restoring the branches from the link …"
  else if (self.at < most || !most) {
    words = node ? `Token ${whole(self.at)}: “${shown(self, node.token)}”, probability ${percent(node.p)}${node.token === node.drawn ? "" : `, picked instead of “${shown(self, node.drawn)}”`}.`
      : self.length ? "Nothing is written yet: press play, or step." : "Nothing to write: the length is 0."
  } else if (why === "stop") words = `Stopped by the stop string: the text now contains “${self.stopAt.replaceAll("\n", "⏎").replaceAll(" ", "␣")}”. ${whole(most)} tokens.`
  else if (why === "end") words = `The model has finished: it wrote “${shown(self, self.nodes[self.path[most - 1]].token)}”. ${whole(most)} tokens.`
  else if (why === "length") words = `Stopped at the requested length of ${whole(self.length)} tokens.`
  else if (why === "saved") words = `Saved after ${whole(most)} tokens. The live view writes on.`
  else if (why === "full") words = "Stopped: the tree is full. Delete a branch to continue."
  else words = "The server is writing …"
  if (!self.playing) write(self.said, words)
  const seen = node ? self.prompt.length + self.at - 1 - begin : 0
  const dropped = characters(begin > 0 ? decode(self, [...self.prompt, ...self.path.slice(0, Math.max(0, begin - self.prompt.length)).map((i) => self.nodes[i].token)].slice(0, begin)).replaceAll("\n", "⏎") : "")
  const gone = begin > 0 ? `The window has moved: the context of ${whole(self.context)} tokens was full, so the model continued from its last half. “${shown(self, node.token)}” was written from the ${whole(seen)} tokens before it; the first ${whole(begin)} (grey), up to “${dropped.length > 30 ? "…" : ""}${dropped.slice(-30).join("")}”, are dropped, so they have no influence.`
    : node ? `The model sees all ${whole(seen)} tokens before it; the context holds ${whole(self.context)}.` : ""
  write(self.window, gone)
  self.window.classList.toggle("gf-moved", begin > 0)
}

function facts(self) {
  let total = 0
  for (let i = 0; i < self.at; i++) total += self.nodes[self.path[i]].log
  const n = self.at, nats = n ? -total / n : NaN, ten = total / Math.LN10, power = Math.floor(ten)
  const good = n > 0 && Number.isFinite(total)
  const cells = [
    ["Probability of the text", good ? `${(10 ** (ten - power)).toFixed(2)} × 10${raised(power)}` : "–", "p₁ · p₂ · …, each given all tokens before it"],
    ["Log-probability", good ? `${total.toFixed(2)} nats` : "–", "ln p₁ + ln p₂ + …"],
    ["Nats per token", good ? nats.toFixed(3) : "–", good ? `${(-total).toFixed(2)} / ${whole(n)}; a uniform guess: ln ${whole(self.vocab)} = ${Math.log(self.vocab).toFixed(2)}` : "the mean of −ln p"],
    ["Perplexity", good ? Math.exp(nats).toFixed(2) : "–", good ? `e to the ${nats.toFixed(3)}: as uncertain as a choice among that many equally likely tokens` : "e to the nats per token"],
  ]
  if (!self.facts.children.length) cells.forEach(() => { const box = element("div"); box.append(element("span"), element("b"), element("small")); self.facts.append(box) })
  cells.forEach((words, i) => [...self.facts.children[i].children].forEach((part, j) => write(part, words[j])))
  Object.assign(self.root.dataset, { at: n, total: good ? total.toFixed(6) : "", nats: good ? nats.toFixed(6) : "", known: known(self), ended: ended(self) })
}

/** Points at a token, or at none (-1). */
export function hover(self, i) {
  const at = i >= 0 && i < self.at ? i : -1
  if (at === self.hover) return
  self.hover = at
  panel(self)
}

function panel(self) {
  const i = self.hover >= 0 && self.hover < self.at ? self.hover : self.at - 1
  const node = i >= 0 ? self.nodes[self.path[i]] : null
  self.form.classList.toggle("gf-hidden", !node || i !== self.at - 1 || alone())
  const of = `${self.session} ${node ? self.path[i] : -1}`
  if (of === self.panelOf) return
  self.panelOf = of
  if (!node) {
    self.which.textContent = "Alternatives"
    self.list.replaceChildren(element("p", "gf-writer-note", "As soon as a token is written, its alternatives are listed here."))
    return
  }
  self.which.textContent = `Candidates for token ${whole(i + 1)}`
  const top = Math.max(...node.others.map((o) => Math.max(o.p, o.q)), 1e-9)
  const rows = node.others.map((other) => {
    const row = element(alone() ? "div" : "button", "gf-writer-row" + (other.token === node.token ? " gf-here" : ""))
    const name = shown(self, other.token), bars = element("span", "gf-writer-bars"), p = element("i"), q = element("u")
    p.style.width = `${(100 * other.p) / top}%`
    q.style.width = `${(100 * other.q) / top}%`
    bars.append(p, q)
    const drawn = other.token === node.drawn ? (node.token === node.drawn ? "drawn" : "would be drawn") : other.token === node.token ? "picked" : ""
    const removed = other.q === 0
    const share = `${percent(other.p)} → ${removed ? "removed" : percent(other.q)}`
    row.append(element("code", "", name), bars, element("span", "gf-writer-share", ` ${share} `), element("small", "", drawn))
    row.title = `${name}: p = ${other.p.toPrecision(4)} by the model, ${removed ? "removed" : other.q.toPrecision(4)} with the settings`
    if (alone()) return row
    row.setAttribute("aria-label", `${name} ${share} ${drawn}: by the model, then with the settings. Continue with it.`)
    row.onclick = () => {
      if (other.token === node.token) self.does.step(i + 1)
      else self.does.pick(i ? self.path[i - 1] : null, other.token)
    }
    return row
  })
  const longest = Math.max(...node.others.map((o) => characters(shown(self, o.token)).length))
  self.list.style.setProperty("--gf-word", `${Math.min(112, Math.max(28, 6 + 9.2 * longest))}px`)
  const focused = self.list.contains(document.activeElement)
  self.list.replaceChildren(...rows)
  if (focused) (rows.find((row) => row.classList.contains("gf-here")) ?? rows[0]).focus({ preventScroll: true })
}

function tree(self) {
  const wide = self.root.clientWidth > 640 ? 190 : 96
  const of = JSON.stringify([self.leaves, self.ends, wide, self.session])
  const paths = () => self.leaves.map((leaf) => pathOf(self, leaf).slice(0, self.ends[leaf]?.[0]))
  if (of !== self.treeOf) {
    self.treeOf = of
    if (self.leaves.length > 1) self.more.open = true // a branch that was begun is to be seen
    self.forks = []
    const found = paths()
    self.lengths = found.map((path) => path.length)
    self.rows.replaceChildren(...found.map((path, i) => {
      let parent = -1, fork = 0
      for (let j = 0; j < i; j++) {
        let same = 0
        while (same < path.length && same < found[j].length && path[same] === found[j][same]) same++
        if (same > fork || parent < 0) { parent = j; fork = same }
      }
      self.forks.push([parent, fork])
      return branchRow(self, path, i, parent, fork)
    }))
    self.branches.textContent = self.leaves.length > 1 ? `${self.leaves.length} branches, each named by its own text` : `One branch so far.${alone() ? "" : " Select a token and choose a different one: a new branch begins there."}`
  }
  ;[...self.rows.children].forEach((row, i) => {
    const here = self.leaves[i] === self.leaf
    row.classList.toggle("gf-here", here)
    row.firstChild.setAttribute("aria-current", String(here))
    const box = self.rows.parentElement, top = i * LANE
    if (here && self.scrolled !== self.leaf && (top < box.scrollTop || top + LANE > box.scrollTop + box.clientHeight)) box.scrollTop = top - LANE
  })
  self.scrolled = self.leaf
  lanes(self, wide)
}

function branchRow(self, path, i, parent, fork) {
  const row = element("li"), go = element("button", "gf-writer-branch"), drop = element("button", "gf-writer-drop", "✕")
  const own = decode(self, path.slice(fork, fork + 90).map((index) => self.nodes[index].token)).replaceAll("\n", "⏎")
  let total = 0
  for (const index of path) total += self.nodes[index].log
  const fact = `${parent < 0 ? "" : `from token ${whole(fork + 1)} · `}${whole(path.length)} tokens · ${path.length && Number.isFinite(total) ? (-total / path.length).toFixed(2) : "–"} nats each`
  go.append(element("span", "gf-writer-name", own || "(nothing yet)"), element("small", "", fact))
  go.onclick = () => self.does.visit(self.leaves[i])
  drop.setAttribute("aria-label", `Delete the branch “${beginning(own, 30)}”`)
  drop.title = "Delete this branch"
  drop.hidden = self.leaves.length < 2 || alone()
  drop.dataset.unsaved = ""
  drop.onclick = () => self.does.drop(self.leaves[i])
  row.append(go, drop)
  return row
}

function lanes(self, wide) {
  const many = self.leaves.length
  self.lanes.style.display = many > 1 ? "" : "none"
  self.rows.style.paddingLeft = many > 1 ? `${wide}px` : "0"
  if (many < 2) return
  self.lanes.setAttribute("width", String(wide))
  self.lanes.setAttribute("height", String(many * LANE))
  const longest = Math.max(...self.lengths, 1), x = (depth) => 8 + (depth / longest) * (wide - 24), y = (i) => i * LANE + LANE / 2
  const mine = self.leaves.indexOf(self.leaf), way = new Map() // row -> up to which depth our branch runs along it
  for (let i = mine, upTo = self.lengths[mine]; i >= 0; [i, upTo] = self.forks[i]) way.set(i, upTo)
  const lines = []
  const line = (kind, ...at) => lines.push([kind, at])
  self.forks.forEach(([parent, fork], i) => {
    const name = (on) => (on ? "gf-mine" : "")
    if (parent >= 0) line(name(way.has(i)), x(fork), y(parent), x(fork), y(i))
    line("", x(fork), y(i), x(self.lengths[i]), y(i))
    if (way.has(i)) line("gf-mine", x(fork), y(i), x(way.get(i)), y(i))
  })
  lines.sort((a, b) => a[0].localeCompare(b[0]))
  const made = lines.map(([name, [x1, y1, x2, y2]]) => vector("line", { x1: x1.toFixed(1), y1: y1.toFixed(1), x2: x2.toFixed(1), y2: y2.toFixed(1), class: name }))
  let row = mine
  while (row >= 0 && self.forks[row][0] >= 0 && self.forks[row][1] >= self.at) row = self.forks[row][0]
  self.lanes.replaceChildren(...made, vector("circle", { cx: x(self.at), cy: y(row), r: 6 }))
}

/** What the colours mean, once for each side. */
export function legend(self) {
  const of = String(self.side)
  if (self.legendOf === of) return
  self.legendOf = of
  const scale = element("span", "gf-writer-scale")
  scale.append(element("span", "", "probability 0"), ...[0, 1, 2, 3, 4, 5, 6].map((i) => { const box = element("i"); box.style.background = self.palette[`seq${i}`][self.side]; return box }), element("span", "", "1"))
  const picked = element("span", "gf-writer-token gf-picked", "picked by you"), grey = element("span", "gf-writer-given gf-dropped", "dropped")
  self.legend.replaceChildren(scale, element("span", "gf-writer-given", "the prompt"), picked, grey)
}

// Taking it home --------------------------------------------------------------------------------------------------------

/** The text up to here into the clipboard. */
export function copy(self, button) {
  const text = decode(self, [...self.prompt, ...self.path.slice(0, self.at).map((i) => self.nodes[i].token)])
  const done = (words) => { button.textContent = words; setTimeout(() => { button.textContent = "Copy the text" }, 1500) }
  const old = () => {
    const area = element("textarea")
    area.value = text
    document.body.append(area)
    area.select()
    done(document.execCommand("copy") ? "Copied" : "The browser blocked copying")
    area.remove()
  }
  navigator.clipboard ? navigator.clipboard.writeText(text).then(() => done("Copied"), old) : old()
}

/** The rows behind the picture. */
export function table(self) {
  const head = "token_written,position,id,token,p,q_with_settings,log_probability,drawn_id,picked,sees_from_position,alternatives".split(",")
  return [head, ...self.path.slice(0, known(self)).map((index, i) => {
    const it = self.nodes[index], others = it.others.map((o) => `${shown(self, o.token)} ${o.p} ${o.q}`).join("; ")
    return [i + 1, self.prompt.length + i, it.token, shown(self, it.token), it.p, it.q, it.log, it.drawn, it.token !== it.drawn, it.begin, others]
  })]
}

/** Says whether it plays. */
export const label = (self) => playButton(self.line.buttons.play, !!self.playing || self.toEnd)
