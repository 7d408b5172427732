// @ts-check
// Where the writer stands in its tree of tokens, and how tokens are read. Nothing is drawn here.

/**
 * @typedef {object} Node a token that was written; its number is its place in `nodes`
 * @property {number | null} parent the number of the token before it; null after the prompt
 * @property {number} token
 */

/**
 * The numbers of the tokens from the first to `leaf`.
 * @param {{ nodes: Node[] }} self
 * @param {number | null} leaf
 */
export function pathOf(self, leaf) {
  const found = []
  for (let i = leaf; i !== null && i >= 0; i = self.nodes[i].parent) found.push(i)
  return found.reverse()
}

const end = (self) => self.ends[self.leaf] ?? [self.path.length, self.length > 0 ? "" : "length"]

/** How many tokens of this branch may be shown. */
export const known = (self) => Math.min(end(self)[0], self.path.length)

/** Why this branch goes on no further: "stop", "end", "length", "full", or "" where it does. */
export const ended = (self) => end(self)[1]

/** The ends of all branches where no server writes on: of those that would go on, what has been written. */
export const sealed = (self, ends) => Object.fromEntries(self.leaves.map((leaf) => [leaf, ends[leaf] ?? [pathOf(self, leaf).length, "saved"]]))

/** A token as it is shown, with its blanks visible. */
export const shown = (self, token) => self.words[token]?.[0] ?? String(token)

/** The text of tokens, from their bytes in hex: a character may lie in several tokens. */
export function decode(self, tokens) {
  const bytes = []
  for (const token of tokens) for (const pair of self.words[token]?.[1].match(/../g) ?? []) bytes.push(parseInt(pair, 16))
  return new TextDecoder().decode(new Uint8Array(bytes))
}
