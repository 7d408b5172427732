// @ts-check
// The notes for the speaker: beside the bar, or, on a stage, in a second window that the room does not see.

import { element, within, write } from "./shared/dom.js"

const NAME = "gf-notes", SIZE = "popup,width=520,height=420"

/** A key that is pressed in the notes' window acts on the stage. @param {KeyboardEvent} event */
function handOn(event) {
  const { key, code, ctrlKey, metaKey, altKey, shiftKey, repeat } = event
  const copy = new KeyboardEvent("keydown", { key, code, ctrlKey, metaKey, altKey, shiftKey, repeat, bubbles: true, cancelable: true })
  if (!document.dispatchEvent(copy)) event.preventDefault()
}

export function createNotes() {
  const root = element("aside", "gf-tour-notes", "", { "aria-label": "Notes for the speaker", hidden: "" })
  /** @type {Window | null} */
  let second = null
  let told = { where: "", title: "", notes: "" }
  const fill = () => {
    if (!second || second.closed) return
    const { document } = second, { body } = document
    if (!body.childElementCount) {
      document.title = "Notes for the speaker"
      Object.assign(body.style, { font: "20px/1.45 sans-serif", margin: "1.2em", colorScheme: "light dark", background: "Canvas", color: "CanvasText" })
      for (const tag of /** @type {const} */ (["p", "h1", "p"])) within(body, tag)
      second.addEventListener("keydown", handOn)
    }
    for (const [i, text] of [told.where, told.title, told.notes || "No notes for this scene."].entries()) write(body.children[i], text)
  }
  return {
    root,
    /** Opens or shuts them. On a stage they never lie on the screen; where the browser opens no second window, they stay shut. */
    press() {
      if (!document.documentElement.classList.contains("gf-stage")) { root.hidden = !root.hidden; return }
      second = window.open("", NAME, SIZE)
      fill()
    },
    /** @param {{ at: number, count: number, title: string, notes: string }} scene */
    write({ at, count, title, notes }) {
      told = { where: `${at + 1} of ${count}`, title, notes }
      root.textContent = notes
      fill()
    },
  }
}
