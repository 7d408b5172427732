// @ts-check
// A dot for each exercise: full where this browser has solved it. Kept here only; the server never hears of it.

import { button, element, within } from "../../../ui/assets/shared/dom.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { browser } from "../../../ui/assets/shared/shelf.js"
import { counted, noted, read, written } from "./solved_state.js"

const SHELF = "glassformer-solved"

function create(place) {
  const root = within(place, "div", "gf-solved")
  const rows = within(root, "div", "gf-solved-rows"), foot = within(root, "div", "gf-solved-foot")
  const count = within(foot, "span", "gf-solved-count")
  const self = { root, rows, count, data: null }
  foot.append(button("Forget", "Forget which exercises were solved in this browser", () => {
    browser.put(SHELF, "{}")
    draw(self, new Map())
  }))
  return self
}

function update(self, data) {
  self.data = data
  const before = read(browser.get(SHELF), data.groups), after = noted(before, data.solved)
  if (after !== before) browser.put(SHELF, written(after))
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
