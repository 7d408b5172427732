// @ts-check
// What this browser has noted: questions from last time, and a line with all of it, to export, import and forget. See
// ui/returns.py.

import { button, element, within, write } from "./shared/dom.js"
import { component } from "./shared/mount.js"
import { empty, exported, follow, forget, imported, progress, today, watch } from "./shared/progress_store.js"
import { AT_ONCE, MOST_FILE, nextDay, questions, Refused } from "./shared/progress_state.js"
import { download } from "./shared/save.js"
import { heading, ledger, upcoming } from "./progress_words.js"

function create(place, _, signal) {
  const root = within(place, "section", "gf-progress", "", { "aria-label": "Progress in this browser" })
  const head = within(root, "h3", "gf-progress-head"), list = within(root, "ol", "gf-progress-list")
  const line = within(root, "div", "gf-progress-line"), said = within(line, "span", "gf-progress-said")
  const state = within(root, "p", "gf-progress-state", "", { role: "status" }), note = within(state, "span")
  const file = within(root, "input", "", "", { type: "file", accept: ".json,application/json", hidden: "", "aria-label": "A file that Export has saved" })
  const self = { root, head, list, said, note, data: null, forgotten: "" }
  const exports = button("Export", "Export progress as a file", () => download("glassformer-progress.json", new Blob([exported()], { type: "application/json" })))
  const imports = button("Import", "Import progress from a file that Export has saved", () => file.click())
  const forgets = button("Forget everything", "Forget everything that this browser has noted", () => {
    const forgotten = exported()
    forget()
    tell(self, "Everything is forgotten.", forgotten)
  })
  const undo = button("Undo", "Undo: remember it again", () => {
    imported(self.forgotten)
    tell(self, "")
  })
  file.onchange = () => take(self, file)
  line.append(exports, imports, forgets)
  state.append(undo)
  Object.assign(self, { exports, forgets, undo })
  watch(() => draw(self), signal)
  return self
}

function tell(self, text, forgotten = "") {
  self.forgotten = forgotten
  write(self.note, text)
  draw(self)
}

async function take(self, file) {
  const [chosen] = file.files
  file.value = "" // the same file may be chosen again
  if (!chosen) return
  try {
    if (chosen.size > 4 * MOST_FILE) throw new Refused(`This file is too large: progress has at most ${MOST_FILE / 1024} KB.`)
    imported(await chosen.text())
    tell(self, "Imported: what was here before has stayed.")
  } catch (error) {
    tell(self, error instanceof Refused ? error.message : "This file cannot be read.")
  }
}

function update(self, data) {
  self.data = data
  draw(self)
}

function draw(self) {
  if (!self.data) return
  const held = progress(), { catalogue, count, returns } = self.data, day = today()
  const due = returns ? questions(held, catalogue, day) : []
  write(self.head, returns ? heading(due.length) : "")
  self.head.hidden = !due.length
  self.list.hidden = !due.length
  self.list.replaceChildren(...due.slice(0, AT_ONCE).map(item))
  write(self.said, [ledger(held, count), returns && !due.length ? upcoming(nextDay(held, catalogue, day), day) : ""].filter(Boolean).join(" "))
  const none = empty()
  self.exports.disabled = self.forgets.disabled = none
  self.undo.hidden = !self.forgotten
}

/** @param {import("./shared/progress_state.js").Question} question */
export function item({ title, why, address, guess }) {
  const made = element("li"), link = button(title, `${title}, ${why}`, () => follow(address, guess))
  made.append(link, element("span", "gf-progress-why", why))
  return made
}

export default component({ create, update })
