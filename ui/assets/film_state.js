// @ts-check
// The words below a film: arithmetic alone.

/**
 * A text in lines that are at most so wide.
 * @param {string} text
 * @param {number} most
 * @param {(text: string) => number} wide
 */
export function lines(text, most, wide) {
  /** @type {string[]} */
  const found = []
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const longer = found.length ? `${found[found.length - 1]} ${word}` : ""
    if (longer && wide(longer) <= most) found[found.length - 1] = longer
    else found.push(word)
  }
  return found
}
