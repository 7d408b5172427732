// @ts-check
// The room as a model, on the lecturer's screen: the text so far, the room's guesses beside the model's, and the losses. See
// pages/output/sampling/class_guessing.py.

import { visible } from "../../../ui/assets/shared/alphabet.js"
import { element, within } from "../../../ui/assets/shared/dom.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { saveTools } from "../../../ui/assets/shared/save.js"
import { paint } from "../../../ui/assets/shared/theme.js"
import { squares } from "../../../ui/assets/stage_room.js"
import { cell, lossBars } from "./guessing_draw.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {string} text so far
 * @property {string} next the character that came, once it is revealed
 * @property {string} voted how many have chosen, while they do
 * @property {{ character: string, class: number, model: number, right: boolean }[]} rows
 * @property {{ name: string, title: string, nats: number }[]} losses
 * @property {string} head
 * @property {string} loss_head
 * @property {string[]} names of the class and the model
 * @property {{ room: string, address: string, note: string, code: { size: number, path: string } } | null} way
 * @property {(string | number)[][]} table
 * @property {import("../../../ui/assets/shared/colours.js").Palette} palette
 */

function create(place) {
  const root = within(place, "div", "gf-play gf-class"), text = within(root, "div", "gf-play-text", "", { tabindex: 0, role: "group", "aria-label": "The text so far" })
  const body = within(root, "div", "gf-class-body"), guesses = within(body, "div", "gf-class-guesses"), losses = within(body, "div", "gf-class-losses"), way = within(body, "div", "gf-class-way")
  /** @type {any} */
  const self = { root, text, guesses, losses, way, data: null }
  root.append(saveTools(root, () => "the-room-as-a-model", () => self.data.table))
  return self
}

function update(self, /** @type {Data} */ data) {
  self.data = data
  paint(self.root, data.palette)
  self.text.replaceChildren(...Array.from(data.text, (character) => cell(character, "")), element("span", "gf-play-cursor", data.next ? visible(data.next) : "?"))
  self.text.scrollTop = self.text.scrollHeight
  drawGuesses(self)
  self.losses.replaceChildren(...(data.losses.length ? [element("p", "gf-play-title", data.loss_head), lossBars(data.loss_head, data.losses)] : []))
  drawWay(self)
}

function drawGuesses({ guesses, data }) {
  if (!data.rows.length) { guesses.replaceChildren(...(data.voted ? [element("p", "gf-class-voted", data.voted)] : [])); return }
  const head = element("p", "gf-play-title", data.head), list = element("ul", "gf-class-rows", "", { "aria-label": data.head })
  data.names.forEach((/** @type {string} */ name, /** @type {number} */ i) => within(head, "span", `gf-class-key gf-class-${i ? "model" : "room"}`, name))
  for (const row of data.rows) {
    const item = within(list, "li", row.right ? "gf-class-right" : "")
    within(item, "span", "gf-class-character", `${visible(row.character)}${row.right ? " ✓" : ""}`)
    for (const name of ["room", "model"]) {
      const p = name === "room" ? row.class : row.model, line = within(item, "div", `gf-class-line gf-class-${name}`)
      within(line, "div", "gf-class-bar").style.width = `${100 * p}%`
      within(line, "span", "", `${Math.round(100 * p)}%`)
    }
  }
  guesses.replaceChildren(head, list)
}

function drawWay({ way, data }) {
  const { room = "", address = "", note = "", code } = data.way ?? {}
  if (way.dataset.room === room) return
  way.dataset.room = room
  way.replaceChildren(...(code?.path ? [squares(code, "To the room's question")] : []), ...[address, note].filter(Boolean).map((words) => element("p", "", words)))
}

export default component({ create, update })
