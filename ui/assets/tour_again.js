// @ts-check
// Before the first scene of a course: questions from last time, where some are due. A small panel above the bar, never on a stage.

import { button, element, within, write } from "./shared/dom.js"
import { progress, today } from "./shared/progress_store.js"
import { AT_ONCE, questions } from "./shared/progress_state.js"
import { item } from "./progress.js"
import { heading } from "./progress_words.js"

export function createAgain() {
  const root = element("aside", "gf-tour-again", "", { "aria-label": "Questions from last time", hidden: "" })
  const top = within(root, "div", "gf-tour-again-head"), head = within(top, "strong"), list = within(root, "ol", "gf-progress-list")
  let now = "", later = "" // courses
  top.append(button("Not now", "Not now: begin the course", () => { later = now; root.hidden = true }))
  return {
    root,
    /**
     * Shows them, or nothing: before another scene, on a stage, where none is due, and after "Not now".
     * @param {string} course
     * @param {import("./shared/progress_state.js").Catalogue | null} catalogue
     */
    write(course, catalogue) {
      now = course
      const staged = document.documentElement.classList.contains("gf-stage")
      const due = catalogue && !staged && later !== course ? questions(progress(), catalogue, today()) : []
      root.hidden = !due.length
      if (root.hidden) return
      write(head, heading(due.length))
      list.replaceChildren(...due.slice(0, AT_ONCE).map(item))
    },
  }
}
