// @ts-check
// A phone in a room that guesses the next character: the text so far, and a keyboard of the alphabet. See pages/stage/room/room.py.

import { createKeyboard, visible } from "../../../ui/assets/shared/alphabet.js"
import { element, within } from "../../../ui/assets/shared/dom.js"
import { component } from "../../../ui/assets/shared/mount.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {string} text so far
 * @property {string[]} alphabet
 * @property {number | null} chosen
 * @property {boolean} open
 */

const SHOWN = 220 // characters before the next

function create(place) {
  const root = within(place, "div", "gf-letters"), text = within(root, "div", "gf-letters-text"), keys = within(root, "div", "gf-letters-keys")
  return { root, text, keys, alphabet: "", keyboard: /** @type {any} */ (null), trigger: /** @type {any} */ (undefined) }
}

function update(self, /** @type {Data} */ { text, alphabet, chosen, open }) {
  const written = JSON.stringify(alphabet), picked = chosen === null ? "" : alphabet[chosen]
  if (self.alphabet !== written) {
    self.alphabet = written
    self.keys.replaceChildren()
    self.keyboard = createKeyboard(self.keys, alphabet, (character) => self.trigger("chosen", alphabet.indexOf(character)))
  }
  const shown = Array.from(text).slice(-SHOWN).map((one) => (one === "\n" ? "⏎\n" : visible(one) === one ? one : `${visible(one)}\u200b`)).join("")
  self.text.replaceChildren(element("span", "", shown), element("span", "gf-letters-next", picked ? visible(picked) : "?"))
  self.text.scrollTop = self.text.scrollHeight
  self.keyboard.mark(picked ? { [picked]: "chosen" } : {}, !open)
}

export default component({ create, update })
