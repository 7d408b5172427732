// @ts-check
// A dot for each exercise: full where this browser has solved it. Kept here only; the server never hears of it.

import { button, element, within } from "./shared/dom.js"
import { component } from "./shared/mount.js"
import { counted, noted, read, written } from "./solved_state.js"

const SHELF = "glassformer-solved"

/** @param {HTMLElement} place */
function create(place) {
  const root = element("div", "gf-solved")
  const rows = within(root, "div", "gf-solved-rows"), foot = within(root, "div", "gf-solved-foot")
  const count = within(foot, "span", "gf-solved-count")
  place.append(root)
  const self = { root, rows, count, data: null }
  foot.append(button("Forget", "Forget which exercises were solved in this browser", () => {
    keep("{}")
    draw(self, new Map())
  }))
  return self
}

/** Where a browser keeps nothing (a private window, a full disk), the dots hold until the page is left. */
let held = "{}"

function shelf() {
  try {
    return localStorage.getItem(SHELF)
  } catch {
    return held
  }
}

/** @param {string} text */
function keep(text) {
  held = text
  try {
    localStorage.setItem(SHELF, text)
  } catch {
    return
  }
}

function update(self, data) {
  self.data = data
  const before = read(shelf(), data.groups), after = noted(before, data.solved)
  if (after !== before) keep(written(after))
  draw(self, after)
}

/** @param {import("./solved_state.js").Kept} kept */
function draw(self, kept) {
  const { groups, now } = self.data
  self.rows.replaceChildren(...groups.map((/** @type {import("./solved_state.js").Group} */ group) => {
    const row = element("div", "gf-solved-row")
    const here = group.tasks.some((task) => task.id === now)
    within(row, "span", here ? "gf-solved-name gf-solved-here" : "gf-solved-name", group.title)
    const dots = within(row, "span", "gf-solved-dots")
    for (const task of group.tasks) {
      const times = kept.get(task.id)?.length ?? 0
      const said = `${task.title}: ${times ? `solved with ${times} ${times === 1 ? "seed" : "seeds"}` : "not solved yet"}`
      const dot = button("", said, () => self.trigger("chosen", task.id))
      dot.className = times ? "gf-solved-dot gf-solved-full" : "gf-solved-dot"
      dot.title = said
      if (task.id === now) dot.setAttribute("aria-current", "true")
      dots.append(dot)
    }
    return row
  }))
  self.count.textContent = `${counted(kept, groups)}, only in this browser`
}

export default component({ create, update })
