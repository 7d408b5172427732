// @ts-check
// Which exercises this browser has solved. Without a page: what is kept is a text, and may be anybody's.

/** @typedef {{ id: string, title: string, tasks: { id: string, title: string }[] }} Group */
/** @typedef {Map<string, number[]>} Kept an exercise's id -> the seeds that it was solved for */

const SEEDS = 50 // of one exercise: more of them say nothing new

/**
 * What was kept, as far as it makes sense.
 * @param {string} text
 * @param {Group[]} groups
 * @returns {Kept}
 */
export function read(text, groups) {
  let held
  try {
    held = JSON.parse(text)
  } catch {
    held = {}
  }
  const known = groups.flatMap((group) => group.tasks.map((task) => task.id))
  const found = new Map()
  for (const id of known) {
    const seeds = held && Object.hasOwn(held, id) && Array.isArray(held[id]) ? held[id].filter(Number.isSafeInteger) : []
    if (seeds.length) found.set(id, [...new Set(seeds)].slice(0, SEEDS))
  }
  return found
}

/**
 * The same with one more, where it is new.
 * @param {Kept} kept
 * @param {{ id: string, seed: number } | null} solved
 */
export function noted(kept, solved) {
  const seeds = solved ? (kept.get(solved.id) ?? []) : []
  if (!solved || seeds.includes(solved.seed) || seeds.length >= SEEDS) return kept
  return new Map(kept).set(solved.id, [...seeds, solved.seed])
}

/** @param {Kept} kept */
export const written = (kept) => JSON.stringify(Object.fromEntries(kept))

/**
 * The count, in words.
 * @param {Kept} kept
 * @param {Group[]} groups
 */
export function counted(kept, groups) {
  const all = groups.reduce((sum, group) => sum + group.tasks.length, 0)
  return `${kept.size} of ${all} solved`
}
