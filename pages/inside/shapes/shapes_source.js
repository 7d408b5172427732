// @ts-check
// Functions of the engine with the lines that just ran marked. See pages/inside/shapes/forward_pass.py.

import { element, within } from "../../../ui/assets/shared/dom.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { sideOf } from "../../../ui/assets/shared/theme.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {{ name: string, lines: [number, string, boolean][] }[]} functions number, code, whether it ran
 * @property {[string, string]} colour
 * @property {string} alt
 */

function create(place) {
  return { root: within(place, "div", "gf-source", "", { role: "region", tabindex: 0 }), text: "" } // a keyboard can scroll it
}

function update(self, /** @type {Data} */ data) {
  const { root } = self
  root.setAttribute("aria-label", data.alt)
  root.style.setProperty("--part", data.colour[sideOf(root)])
  const text = JSON.stringify(data.functions)
  if (text === self.text) return
  self.text = text
  root.replaceChildren(...data.functions.flatMap(listing))
  const first = root.querySelector(".gf-ran")
  root.scrollTop = first ? Math.max(0, first.offsetTop - root.offsetTop - root.clientHeight / 2) : 0
  root.scrollLeft = 0
}

function listing({ name, lines }) {
  const list = element("ol")
  for (const [number, code, ran] of lines) {
    const item = within(list, "li", ran ? "gf-ran" : "")
    item.append(element("span", "", String(number)), code || " ")
  }
  return [element("h3", "", name), list]
}

export default component({ create, update })
