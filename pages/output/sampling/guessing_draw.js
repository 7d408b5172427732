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
 * A list of bars, each as long as its loss; behind it, where there is one, the loss by guesses alone.
 * @param {string} label
 * @param {{ name: string, title: string, nats: number | null, guesses?: number | null }[]} losses
 */
export function lossBars(label, losses) {
  const list = element("ul", "gf-play-bars", "", { "aria-label": label }), most = Math.max(...losses.flatMap(({ nats, guesses }) => [nats ?? 0, guesses ?? 0]))
  for (const { name, title, nats, guesses } of losses) {
    const row = within(list, "li", `gf-play-${name}`)
    within(row, "span", "gf-play-name", title)
    const track = within(row, "div", "gf-play-track")
    for (const [of, value] of /** @type {[string, number | null | undefined][]} */ ([["gf-play-guesses", guesses], ["gf-play-length", nats]])) {
      if (typeof value === "number") within(track, "div", of).style.width = `${(100 * value) / most}%`
    }
    within(row, "span", "gf-play-nats", nats?.toFixed(2) ?? "")
    if (guesses !== undefined) within(row, "span", "gf-play-nats", guesses?.toFixed(2) ?? "")
  }
  return list
}
