// @ts-check
// A dot for each exercise: full where this browser has solved it, broken where the last answer was wrong. Kept here only; the
// server never hears of it.

import { button, element, within, write } from "../../../ui/assets/shared/dom.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { note, progress, today, watch } from "../../../ui/assets/shared/progress_store.js"
import { isDue, solved } from "../../../ui/assets/shared/progress_state.js"

/** @typedef {{ id: string, title: string, tasks: { id: string, title: string }[] }} Group */

let noted = "" // the answer that was noted last: its message may come again, also to another component after this one

function create(place, _, signal) {
  const root = within(place, "div", "gf-solved")
  const rows = within(root, "div", "gf-solved-rows"), count = within(root, "div", "gf-solved-count")
  const self = { root, rows, count, data: null }
  watch(() => draw(self), signal)
  return self
}

function update(self, data) {
  self.data = data
  const { answer } = data
  if (answer && answer.token !== noted) {
    noted = answer.token
    note((held, day) => solved(held, answer, data.kin, day)) // which draws
  } else draw(self)
}

function draw(self) {
  if (!self.data) return
  const { groups, now } = self.data, { exercises } = progress(), day = today()
  let full = 0
  self.rows.replaceChildren(...groups.map((/** @type {Group} */ group) => {
    const row = element("div", "gf-solved-row")
    const here = group.tasks.some((task) => task.id === now)
    within(row, "span", here ? "gf-solved-name gf-solved-here" : "gf-solved-name", group.title)
    const dots = within(row, "span", "gf-solved-dots")
    for (const task of group.tasks) {
      const item = exercises.get(task.id), times = item?.seeds.length ?? 0
      const marks = [times ? `solved with ${times} ${times === 1 ? "seed" : "seeds"}` : "not solved yet", item?.missed ? "wrong last time" : "", item && isDue(item, day) ? "due today" : ""]
      const said = `${task.title}: ${marks.filter(Boolean).join(", ")}`
      const dot = button("", said, () => self.trigger("chosen", task.id))
      dot.className = "gf-solved-dot"
      dot.classList.toggle("gf-solved-full", times > 0)
      dot.classList.toggle("gf-solved-missed", !!item?.missed)
      dot.title = said
      if (task.id === now) dot.setAttribute("aria-current", "true")
      dots.append(dot)
      if (times) full++
    }
    return row
  }))
  const all = groups.reduce((/** @type {number} */ sum, /** @type {Group} */ group) => sum + group.tasks.length, 0)
  write(self.count, `${full} of ${all} solved, only in this browser`)
}

export default component({ create, update })
