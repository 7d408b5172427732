// @ts-check
// A text by two writers: tokens of a draft, accepted or struck out, and those of the large model. See
// pages/output/generation/drafts.py.

import { element, within } from "../../../ui/assets/shared/dom.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { saveTools } from "../../../ui/assets/shared/save.js"
import { paint } from "../../../ui/assets/shared/theme.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {string} prompt
 * @property {{ text: string, who: "accepted" | "refused" | "large", hint: string }[]} tokens
 * @property {Record<string, string>} legend by who
 * @property {string} label
 * @property {(string | number)[][]} table
 * @property {import("../../../ui/assets/shared/colours.js").Palette} palette
 */

function create(place) {
  const root = within(place, "div", "gf-drafts"), text = within(root, "div", "gf-drafts-text", "", { tabindex: 0, role: "group" })
  const key = within(root, "div", "gf-drafts-key")
  /** @type {any} */
  const self = { root, text, key, data: null }
  root.append(saveTools(root, () => "drafts", () => self.data.table))
  return self
}

function update(self, /** @type {Data} */ data) {
  self.data = data
  paint(self.root, data.palette)
  self.text.setAttribute("aria-label", data.label)
  const tokens = data.tokens.map(({ text, who, hint }) => element("span", `gf-drafts-${who}`, text, { title: hint }))
  self.text.replaceChildren(element("span", "gf-drafts-prompt", data.prompt), ...tokens)
  self.key.replaceChildren(...Object.entries(data.legend).map(([who, words]) => element("span", `gf-drafts-${who}`, words)))
}

export default component({ create, update })
