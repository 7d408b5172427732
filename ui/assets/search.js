// @ts-check
// Search: a dialog that key / opens, or the event gf-search, which may name a kind of entry. What can be found is fetched when it
// is opened first (ui/search/route.py); the page that is chosen is drawn by the server (ui/search/panel.py).

import { button, element, ROOT, within, write } from "./shared/dom.js"
import { visit } from "./shared/history.js"
import { component } from "./shared/mount.js"
import { isHere, next, opens } from "./search_state.js"

/** @typedef {import("./search_state.js").Row} Row */
/** @typedef {{ find: (query: string, kind?: string) => Row[], first: (kind: string) => Row[] }} Shelf */


function create(place, _, signal) {
  const root = within(place, "div", "gf-search")
  const box = within(root, "dialog", "gf-search-box"), head = within(box, "div", "gf-search-head"), input = within(head, "input", "", "", {
    type: "search", autocomplete: "off", spellcheck: "false", maxlength: 120, role: "combobox", "aria-expanded": "true", "aria-controls": "gf-search-list", "aria-autocomplete": "list",
  })
  head.append(button("Close", "Close the search", () => box.close()))
  const list = within(box, "div", "gf-search-list", "", { id: "gf-search-list", role: "listbox", "aria-label": "Results" })
  const state = within(box, "p", "gf-search-state", "", { role: "status" })
  const foot = within(box, "p", "gf-search-foot")
  within(foot, "a", "", "All questions, to print", { href: new URL("questions", ROOT).href, target: "_blank" })
  foot.append(" · key / on every page")
  const self = { root, box, input, list, state, kind: "", rows: [], at: 0, visited: [], answered: /** @type {string | null} */ (null), entered: false }
  root.append(button("Search", "Search views, terms and exercises (key /)", () => open(self)))
  input.oninput = () => {
    self.entered = false // Enter was for what stood there
    ask(self)
  }
  input.onkeydown = (event) => pressed(self, event)
  box.onclose = () => emptied(self)
  box.onclick = (event) => { if (event.target === box) box.close() } // beside it
  document.addEventListener("gf-search", (event) => open(self, /** @type {CustomEvent} */ (event).detail ?? ""), { signal })
  document.addEventListener("keydown", (event) => {
    if (!opens(event)) return
    event.preventDefault() // a browser's own search begins by it
    open(self)
  }, { signal, capture: true })
  return self
}

function open(self, kind = "") {
  const name = kind ? "Find a term" : "Search views, terms and exercises"
  Object.assign(self, { kind, answered: null, entered: false })
  Object.assign(self.input, { value: "", placeholder: name, ariaLabel: name })
  self.box.setAttribute("aria-label", kind ? "Glossary" : "Search")
  fill(self, [])
  self.box.showModal()
  ask(self)
}

/** Nothing of a search stays on the page behind it. */
function emptied(self) {
  Object.assign(self, { entered: false, rows: [] })
  self.input.value = ""
  self.list.replaceChildren()
  write(self.state, "")
}

/** @type {Promise<Shelf> | null} */
let shelf = null

/** @returns {Promise<Shelf>} */
async function fetched() {
  const [{ finder }, answer] = await Promise.all([import("./search_find.js"), fetch(new URL("search", ROOT))])
  if (!answer.ok) throw Error(answer.statusText)
  const { entries, starts, most } = await answer.json()
  const begin = starts.map((/** @type {number} */ at) => entries[at])
  return { find: finder(entries, most), first: (kind) => (kind ? entries.filter((/** @type {Row} */ one) => one.kind === kind) : begin) }
}

async function ask(self) {
  const { kind } = self, wanted = self.input.value
  if (self.answered === null) write(self.state, "Searching …")
  try {
    const { find, first } = await (shelf ??= fetched())
    if (wanted !== self.input.value || !self.box.open) return // another letter has come meanwhile
    const rows = wanted.trim() ? find(wanted, kind) : first(kind)
    self.answered = wanted
    fill(self, rows)
    write(self.state, rows.length ? "" : "Nothing matches. Try another word, or fewer words.")
  } catch {
    shelf = null
    write(self.state, "The server did not answer. Try again.")
  }
  if (self.entered && self.answered === self.input.value) choose(self, self.rows[self.at])
}

/** @param {Row[]} rows */
function fill(self, rows) {
  const first = !self.kind && !self.input.value.trim()
  const before = first ? self.visited.filter((/** @type {Row} */ row) => !isHere(row, ROOT, location.href)).slice(0, 6) : []
  const others = rows.filter((row) => !before.some((/** @type {Row} */ one) => one.address === row.address))
  const groups = first ? { "Last views": before, "To begin with": others } : { Results: others }
  self.rows = [...before, ...others]
  self.list.replaceChildren(...Object.entries(groups).filter(([, some]) => some.length).map(([title, some]) => {
    const group = element("div", first ? "gf-search-titled" : "", "", { role: "group", "aria-label": title })
    group.append(...some.map((/** @type {Row} */ row) => option(self, row)))
    return group
  }))
  move(self, 0)
}

/** @param {Row} row */
function option(self, row) {
  const index = self.rows.indexOf(row)
  const link = element("a", "", "", { id: `gf-search-${index}`, role: "option", tabindex: -1, href: new URL(row.address || ".", ROOT).href })
  link.append(element("strong", "", row.title), element("span", "gf-search-kind", row.kind), element("span", "gf-search-detail", row.detail))
  link.onpointermove = () => move(self, index)
  link.onclick = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return // into another tab or window
    event.preventDefault()
    choose(self, row)
  }
  return link
}

function move(self, at) {
  self.at = at
  for (const link of self.list.querySelectorAll("a")) {
    const chosen = link.id === `gf-search-${at}`
    link.setAttribute("aria-selected", String(chosen))
    if (chosen && document.activeElement === self.input) link.scrollIntoView({ block: "nearest" })
  }
  self.input.setAttribute("aria-activedescendant", self.rows.length ? `gf-search-${at}` : "")
}

/** @param {KeyboardEvent} event */
function pressed(self, event) {
  if (event.key === "Escape") { // a browser would only empty the field by it
    event.preventDefault()
    self.box.close()
    return
  }
  if (event.key === "Enter") {
    if (self.answered === self.input.value) choose(self, self.rows[self.at])
    else self.entered = true // its results are on their way
    return
  }
  const at = next(event.key, self.at, self.rows.length)
  if (at === undefined) return
  event.preventDefault()
  move(self, at)
}

/** @param {Row | undefined} row */
function choose(self, row) {
  if (!row) return
  self.box.close()
  document.dispatchEvent(new Event("gf-release")) // what lies over the page: ./stage.js
  // A scene says all that its page shows, as for Back; a view opens with what is looked into and read.
  if (new URLSearchParams(row.address.split("?")[1]).has("course")) visit(new URL(row.address, ROOT))
  else self.trigger("opened", row.address)
}

export default component({ create, update: (self, data) => { self.visited = data.visited } })
