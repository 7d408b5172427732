// @ts-check
// What a browser notes of a person's progress, and when a question returns. Without a page, a clock or a store: a day is a
// number, and a text may be anybody's.

/**
 * An exercise or a guess. `day` is that of the last answer, `step` how many returns were answered right, `due` the day of the
 * next; `missed` stays from a wrong answer to the next return that is answered right. `seeds` are those that an exercise was
 * solved with, `last` the one that was answered last.
 * @typedef {{ right: number, wrong: number, day: number, step: number, due: number, missed: boolean, seeds: number[], last: number | null }} Item
 * @typedef {"exercises" | "guesses"} Kind
 * @typedef {{ exercises: Map<string, Item>, guesses: Map<string, Item>, views: Set<string>, scenes: Map<string, number[]> }} Progress
 *
 * What can return, as ui/returns.py has it: a guess by the exercise of its kind or by addresses of itself at other settings.
 * @typedef {{ id: string, title: string, set: string, group: string }} Task
 * @typedef {{ id: string, title: string, task?: string, settings?: string[] }} Guessed
 * @typedef {{ exercises: Task[], guesses: Guessed[] }} Catalogue
 * @typedef {{ title: string, why: string, address: string, guess: string }} Question `guess`: where it is one again
 */

export const DAYS = [1, 3, 7, 21] // from an answer to the return of its question, by its step
export const AT_ONCE = 3 // questions
const FORMAT = "glassformer-progress", VERSION = 1
const LARGEST_SEED = 9999
const MOST = { exercises: 300, guesses: 150, views: 400, courses: 60, scenes: 200, seeds: 50, answers: 99_999, day: 99_999 }
export const MOST_FILE = 262_144 // characters of a file that is read
const ID = /^[a-z0-9][a-z0-9-]{0,39}$/, VIEW = /^[a-z0-9-]{0,40}\/[a-z0-9-]{1,40}$/

/** A file that is not read; its message says what is wrong, and what would be right. */
export class Refused extends Error {}

/** @returns {Progress} */
export const nothing = () => ({ exercises: new Map(), guesses: new Map(), views: new Set(), scenes: new Map() })

/** @param {Progress} held */
export const isNothing = (held) => !(held.exercises.size || held.guesses.size || held.views.size || held.scenes.size)

const whole = (/** @type {any} */ value, /** @type {number} */ most) => Number.isInteger(value) && value >= 0 && value <= most
const table = (/** @type {any} */ value) => (value && typeof value === "object" && !Array.isArray(value) ? value : null)

/**
 * An item as far as it makes sense; null where it makes none. No clock is trusted: what claims to be of tomorrow is of today.
 * @param {any} value
 * @param {number} today
 * @returns {Item | null}
 */
function itemOf(value, today) {
  const { right, wrong, day, step, due, missed, seeds, last } = table(value) ?? {}
  const fits = whole(right, MOST.answers) && whole(wrong, MOST.answers) && whole(day, MOST.day) && whole(due, MOST.day) && whole(step, DAYS.length)
  if (!fits || typeof missed !== "boolean" || !(last === null || whole(last, LARGEST_SEED)) || !seedsOf(seeds)) return null
  const longest = DAYS[DAYS.length - 1]
  return { right, wrong, day: Math.min(day, today), step, due: Math.min(due, today + longest), missed, seeds: [...new Set(seeds)].slice(-MOST.seeds), last }
}

const seedsOf = (/** @type {any} */ seeds) => Array.isArray(seeds) && seeds.length <= 2 * MOST.seeds && seeds.every((seed) => whole(seed, LARGEST_SEED))

/**
 * Reads progress from what was parsed. What makes no sense is left out, and `fault` hears which part that was.
 * @param {any} value
 * @param {number} today
 * @param {(part: string) => void} [fault]
 * @returns {Progress}
 */
function progressOf(value, today, fault = () => {}) {
  const held = nothing(), parts = table(value)
  if (!parts) fault("progress")
  for (const kind of /** @type {Kind[]} */ (["exercises", "guesses"])) {
    for (const [id, each] of entries(parts?.[kind], MOST[kind], () => fault(kind))) {
      const item = ID.test(id) ? itemOf(each, today) : null
      if (item) held[kind].set(id, item)
      else fault(kind)
    }
  }
  for (const [course, each] of entries(parts?.scenes, MOST.courses, () => fault("scenes"))) {
    if (ID.test(course) && Array.isArray(each) && each.length <= MOST.scenes && each.every((at) => whole(at, MOST.scenes - 1))) held.scenes.set(course, [...new Set(each)])
    else fault("scenes")
  }
  const views = parts?.views
  if (!Array.isArray(views) || views.length > MOST.views) fault("views")
  for (const view of Array.isArray(views) ? views.slice(-MOST.views) : []) {
    if (typeof view === "string" && VIEW.test(view)) held.views.add(view)
    else fault("views")
  }
  return held
}

function entries(/** @type {any} */ value, /** @type {number} */ most, /** @type {() => void} */ fault) {
  const rows = Object.entries(table(value) ?? {})
  if (!table(value) || rows.length > most) fault()
  return rows.slice(-most)
}

function parsed(/** @type {string} */ text) {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/**
 * Progress as a browser kept it: whatever stands there, as far as it makes sense.
 * @param {string} text
 * @param {number} today
 */
export const read = (text, today) => progressOf(table(parsed(text)) ?? {}, today)

const plain = (/** @type {Progress} */ held) => ({
  exercises: Object.fromEntries(held.exercises), guesses: Object.fromEntries(held.guesses), views: [...held.views], scenes: Object.fromEntries(held.scenes),
})

/** @param {Progress} held */
export const written = (held) => JSON.stringify(plain(held))

// What happens ------------------------------------------------------------------------------------

/**
 * Notes an answer to an exercise or a guess. A wrong one returns after the shortest time, and so does one that was `helped` by
 * the solution, which solves nothing. A right one moves on only when it was due: who practises the same thing twice a day has not kept it longer.
 * @param {Progress} held
 * @param {Kind} kind
 * @param {string} id
 * @param {{ right: boolean, seed?: number | null, helped?: boolean }} answer
 * @param {number} today
 */
export function answered(held, kind, id, { right, seed = null, helped = false }, today) {
  const before = held[kind].get(id)
  const item = before ?? { right: 0, wrong: 0, day: today, step: 0, due: today + DAYS[0], missed: false, seeds: [], last: null }
  const returned = !!before && isDue(item, today) && !item.seeds.includes(seed) // numbers that were solved before show nothing
  Object.assign(item, { day: today, last: seed })
  const count = !right ? "wrong" : helped ? null : "right"
  if (count) item[count] = Math.min(item[count] + 1, MOST.answers)
  if (count === "right" && seed !== null) item.seeds = [...item.seeds.filter((each) => each !== seed), seed].slice(-MOST.seeds)
  if (!right || helped) Object.assign(item, { step: 0, due: today + DAYS[0], missed: !right || item.missed })
  else if (returned) {
    item.step++
    Object.assign(item, { missed: false, due: today + (DAYS[item.step] ?? 0) })
  }
  held[kind].delete(id) // the last answer stands last: where there are too many, the oldest go
  held[kind].set(id, item)
  for (const oldest of [...held[kind].keys()].slice(0, -MOST[kind])) held[kind].delete(oldest)
}

/**
 * Notes an answer to an exercise, and with it the guesses that were due and return as this exercise.
 * @param {Progress} held
 * @param {{ id: string, seed: number, right: boolean, helped: boolean }} answer
 * @param {string[]} kin ids of guesses
 * @param {number} today
 */
export function solved(held, answer, kin, today) {
  const known = held.exercises.get(answer.id)?.seeds.includes(answer.seed)
  for (const guess of known ? [] : kin) {
    const item = held.guesses.get(guess)
    if (item && isDue(item, today)) answered(held, "guesses", guess, { right: answer.right, helped: answer.helped }, today)
  }
  answered(held, "exercises", answer.id, answer, today)
}

/** Notes a view, such as attention/heads; whether it is new. @param {Progress} held @param {string} view */
export function seen(held, view) {
  if (!VIEW.test(view) || held.views.has(view)) return false
  held.views.add(view)
  for (const oldest of [...held.views].slice(0, -MOST.views)) held.views.delete(oldest)
  return true
}

/** Notes a scene of a course, counted from 0; whether it is new. @param {Progress} held @param {string} course @param {number} at */
export function visited(held, course, at) {
  const scenes = held.scenes.get(course) ?? []
  if (!ID.test(course) || !whole(at, MOST.scenes - 1) || scenes.includes(at)) return false
  held.scenes.set(course, [...scenes, at])
  for (const oldest of [...held.scenes.keys()].slice(0, -MOST.courses)) held.scenes.delete(oldest)
  return true
}

/**
 * How many scenes of a course were seen, and the first that was not after the last that was, counted from 0; -1 where there is
 * none.
 * @param {Progress} held
 * @param {string} course
 * @param {number} count
 */
export function howFar(held, course, count) {
  const scenes = (held.scenes.get(course) ?? []).filter((at) => at < count) // the course may have become shorter
  const next = Math.max(-1, ...scenes) + 1
  return { seen: scenes.length, next: next < count ? next : -1 }
}

// What returns ------------------------------------------------------------------------------------

/** @param {Item} item @param {number} today */
export const isDue = (item, today) => item.step < DAYS.length && item.due <= today

/**
 * How often a question is to be answered right when it returns: a guess at its settings once each, since its answer is known
 * by then.
 * @param {Guessed | Task} entry
 */
const returnsOf = (entry) => Math.min(DAYS.length, "settings" in entry && entry.settings ? entry.settings.length : DAYS.length)

/**
 * What is still to return, due or not.
 * @param {Progress} held
 * @param {Catalogue} catalogue
 */
function* returning(held, catalogue) {
  for (const kind of /** @type {Kind[]} */ (["guesses", "exercises"])) {
    for (const entry of catalogue[kind]) {
      const item = held[kind].get(entry.id)
      if (item && item.step < returnsOf(entry)) yield { kind, entry, item }
    }
  }
}

/**
 * The day of the next return that is not due yet; null where nothing is to return.
 * @param {Progress} held
 * @param {Catalogue} catalogue
 * @param {number} today
 */
export function nextDay(held, catalogue, today) {
  const days = [...returning(held, catalogue)].map(({ item }) => item.due).filter((due) => due > today)
  return days.length ? Math.min(...days) : null
}

/**
 * The questions that are due: wrong guesses, then wrong answers, then the longest overdue. Each once, though a guess may return
 * as an exercise that is due itself.
 * @param {Progress} held
 * @param {Catalogue} catalogue
 * @param {number} today
 * @returns {Question[]}
 */
export function questions(held, catalogue, today) {
  const rows = []
  for (const { kind, entry, item } of returning(held, catalogue)) {
    if (!isDue(item, today)) continue
    const rank = !item.missed ? 2 : kind === "guesses" ? 0 : 1
    rows.push({ entry, item, rank, to: target(held, catalogue, kind, entry.id, today) })
  }
  rows.sort((a, b) => a.rank - b.rank || a.item.due - b.item.due)
  const taken = new Set()
  return rows.flatMap(({ entry, item, to }) => {
    if (!to || taken.has(to.about)) return []
    taken.add(to.about)
    const days = DAYS[item.step]
    return [{ title: entry.title, address: to.address, guess: to.guess, why: item.missed ? "wrong last time" : days === 1 ? "after a day" : `after ${days} days` }]
  })
}

/**
 * Where a question of the same kind with other numbers stands: an exercise with a seed that was not met, or a guess at another
 * setting; null for what the catalogue does not have.
 * @param {Progress} held
 * @param {Catalogue} catalogue
 * @param {Kind} kind
 * @param {string} id
 * @param {number} today
 * @returns {{ about: string, title: string, address: string, guess: string } | null}
 */
export function target(held, catalogue, kind, id, today) {
  const guess = kind === "guesses" ? catalogue.guesses.find((one) => one.id === id) : null
  const task = catalogue.exercises.find((one) => one.id === (kind === "guesses" ? guess?.task : id))
  if (task) {
    const seed = freshSeed(task.id, held.exercises.get(task.id), today)
    const query = new URLSearchParams({ exercises_view: "practise", exercises_on: "screen", set: task.set, exercise: task.id, set_seed: String(seed) })
    return { about: task.id, title: task.title, address: `./exercises?${query}`, guess: "" }
  }
  if (!guess?.settings?.length) return null
  const { right = 0, wrong = 0 } = held.guesses.get(id) ?? {}
  const at = Math.max(0, right + wrong - 1) % guess.settings.length
  return { about: `guess ${id}`, title: guess.title, address: `./${guess.settings[at]}`, guess: id }
}

/**
 * A seed that an exercise was neither solved with nor tried last: the same until it is answered, another each day.
 * @param {string} id
 * @param {Item | undefined} item
 * @param {number} today
 */
export function freshSeed(id, item, today) {
  let hash = 2166136261 // FNV-1a
  for (const sign of `${id}/${today}/${item ? item.right + item.wrong : 0}`) hash = Math.imul(hash ^ sign.charCodeAt(0), 16777619) >>> 0
  let seed = (hash % LARGEST_SEED) + 1
  while (item && (item.last === seed || item.seeds.includes(seed))) seed = (seed % LARGEST_SEED) + 1
  return seed
}

// From elsewhere ----------------------------------------------------------------------------------

/**
 * Takes over what a version before this one kept, an exercise's id -> the seeds that it was solved with: solved today, for all
 * that is known.
 * @param {Progress} held
 * @param {string} text
 * @param {number} today
 */
export function migrate(held, text, today) {
  for (const [id, seeds] of Object.entries(table(parsed(text)) ?? {}).slice(0, MOST.exercises)) {
    if (!ID.test(id) || !Array.isArray(seeds)) continue
    const known = held.exercises.get(id)?.seeds ?? []
    for (const seed of seeds.slice(0, MOST.seeds)) {
      if (whole(seed, LARGEST_SEED) && !known.includes(seed)) answered(held, "exercises", id, { right: true, seed }, today)
    }
  }
}

/**
 * Both together, with nothing lost; the same twice changes nothing. When an item returns is as its later answer has it.
 * @param {Progress} mine
 * @param {Progress} theirs
 * @returns {Progress}
 */
export function merged(mine, theirs) {
  const held = nothing()
  for (const kind of /** @type {Kind[]} */ (["exercises", "guesses"])) {
    const both = [...theirs[kind], ...mine[kind]].sort((a, b) => a[1].day - b[1].day || b[1].due - a[1].due)
    for (const [id, item] of both) {
      const before = held[kind].get(id)
      held[kind].delete(id)
      held[kind].set(id, before ? joined(before, item) : item)
    }
    for (const oldest of [...held[kind].keys()].slice(0, -MOST[kind])) held[kind].delete(oldest)
  }
  for (const view of [...theirs.views, ...mine.views]) seen(held, view)
  for (const [course, scenes] of [...theirs.scenes, ...mine.scenes]) for (const at of scenes) visited(held, course, at)
  return held
}

const joined = (/** @type {Item} */ earlier, /** @type {Item} */ later) => ({
  ...later, right: Math.max(earlier.right, later.right), wrong: Math.max(earlier.wrong, later.wrong),
  seeds: [...new Set([...earlier.seeds, ...later.seeds])].slice(-MOST.seeds),
})

/**
 * Progress and what other shelves hold, as the text of a file.
 * @param {Progress} held
 * @param {Record<string, string>} shelves
 */
export const fileOf = (held, shelves) => `${JSON.stringify({ format: FORMAT, version: VERSION, progress: plain(held), shelves }, null, 1)}\n`

/**
 * Reads a file strictly: it is whole, or it is refused. `limits` are the names of the shelves that there are, with the most
 * characters that each takes.
 * @param {string} text
 * @param {number} today
 * @param {Record<string, number>} limits
 * @returns {{ progress: Progress, shelves: Record<string, string> }}
 */
export function fileRead(text, today, limits) {
  if (text.length > MOST_FILE) throw new Refused(`This file is too large: progress has at most ${MOST_FILE / 1024} KB.`)
  const file = table(parsed(text))
  if (file?.format !== FORMAT) throw new Refused("This file holds no progress of Glassformer. Choose one that Export has saved.")
  if (file.version !== VERSION) throw new Refused(`This file is of another version of Glassformer. This one reads version ${VERSION}.`)
  const damaged = (/** @type {string} */ part) => new Refused(`This file is damaged: its ${part} cannot be read. Nothing was imported.`)
  const strange = Object.keys(file).some((name) => !["format", "version", "progress", "shelves"].includes(name))
  if (strange || !table(file.shelves)) throw damaged("list of parts")
  const progress = progressOf(file.progress, today, (part) => { throw damaged(part) })
  const shelves = Object.entries(file.shelves).filter(([name]) => Object.hasOwn(limits, name))
  if (!shelves.every(([name, held]) => typeof held === "string" && held.length <= limits[name])) throw damaged("settings")
  return { progress, shelves: Object.fromEntries(shelves) }
}
