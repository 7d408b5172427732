// @ts-check
// Another answer over that of the page, whose own nodes are Streamlit's: app.css hides these meanwhile.

import { element, within } from "./dom.js"

/**
 * Shows a sentence in place of the page's answer, or the page's own again; in a saved file, in a `place` of the caller's. What stands
 * between ** is bold.
 * @param {string | null} sentence
 * @param {Element | null} [place]
 */
export function answerOver(sentence, place = null) {
  const node = over(sentence !== null) ?? place
  const paragraph = node && sentence !== null ? within(node, "p") : null
  sentence?.split("**").forEach((part, i) => { if (paragraph) within(paragraph, i % 2 ? "strong" : "span", "", part) })
}

/** The same with HTML: Markdown that the server has made safe; "" for the page's own answer. @param {string} html */
export function htmlOver(html) {
  const node = over(html !== "")
  if (node) node.innerHTML = html
}

function over(/** @type {boolean} */ wanted) {
  document.querySelectorAll(".gf-answer-then").forEach((node) => node.remove())
  const answer = wanted && document.querySelector('[data-testid="stMain"] .st-key-answer')
  if (!answer) return null // there is none in a saved file
  const node = element("div", "gf-answer-then")
  answer.prepend(node) // what follows it is hidden
  return node
}
