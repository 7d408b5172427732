// @ts-check
// What the reader's game and the room's have in common: characters of a text, and bars of mean losses.

import { visible } from "../../../ui/assets/shared/alphabet.js"
import { element, within } from "../../../ui/assets/shared/dom.js"

/** A character, spaces and line breaks visible; a line may break behind them. @param {string} character @param {string} name */
export function cell(character, name) {
  const blank = visible(character) !== character, made = element("span", blank ? `${name} gf-play-blank` : name, visible(character))
  if (blank) made.append(character === "\n" ? "\n" : element("wbr"))
  return made
}

/**
 * A list of bars, each as long as its loss.
 * @param {string} label
 * @param {{ name: string, title: string, nats: number }[]} losses
 */
export function lossBars(label, losses) {
  const list = element("ul", "gf-play-bars", "", { "aria-label": label }), most = Math.max(...losses.map(({ nats }) => nats))
  for (const { name, title, nats } of losses) {
    const row = within(list, "li", `gf-play-${name}`)
    within(row, "span", "gf-play-name", title)
    within(within(row, "div", "gf-play-track"), "div", "gf-play-length").style.width = `${(100 * nats) / most}%`
    within(row, "span", "gf-play-nats", nats.toFixed(2))
  }
  return list
}
