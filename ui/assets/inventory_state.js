// @ts-check
// A test in two forms, as far as it needs no page: what a browser has answered, what comes next, and what it came to. What is kept
// is a text, and may be anybody's.

/**
 * @typedef {{ text: string, belief?: string }} Option its misconception comes with the key
 * @typedef {{ id: string, title: string, text: string, options: Option[], right?: number, reason?: string, address?: string, page?: string }} Question
 * @typedef {(number | null)[]} Answers of a form: an option of each question, null for one that was left out
 * @typedef {object} Taken
 * @property {Answers[]} answers of both forms
 * @property {boolean[]} begun
 * @property {boolean[]} done
 * @property {boolean} ended without a second form
 * @typedef {"start" | "form" | "done" | "between" | "wait" | "results"} Screen
 */

export const SHELF = "glassformer-before-after"
const MOST = 5 // tests and rooms, the newest, that a browser keeps answers to

/** @param {number[][]} sizes options of each question, of both forms @returns {Taken} */
export const fresh = (sizes) => ({ answers: sizes.map((form) => form.map(() => null)), begun: [false, false], done: [false, false], ended: false })

/** @param {string} text @returns {Record<string, any>} */
function entries(text) {
  try {
    const found = JSON.parse(text)
    return found && typeof found === "object" && !Array.isArray(found) ? found : {}
  } catch {
    return {}
  }
}

/**
 * What was kept of a test, as far as it makes sense.
 * @param {string} text
 * @param {string} who the test, or the room
 * @param {number[][]} sizes
 */
export function read(text, who, sizes) {
  const held = entries(text), taken = fresh(sizes)
  const one = Object.hasOwn(held, who) && held[who] && typeof held[who] === "object" ? held[who] : {}
  const flags = (/** @type {any} */ values) => [0, 1].map((form) => Array.isArray(values) && values[form] === true)
  sizes.forEach((form, which) => form.forEach((size, at) => {
    const given = one.answers?.[which]?.[at]
    if (Number.isInteger(given) && given >= 0 && given < size) taken.answers[which][at] = given
  }))
  return { ...taken, begun: flags(one.begun), done: flags(one.done), ended: one.ended === true }
}

/**
 * The text with this test as its newest.
 * @param {string} text
 * @param {string} who
 * @param {Taken} taken
 */
export function written(text, who, taken) {
  const others = Object.entries(entries(text)).filter(([name]) => name !== who)
  return JSON.stringify(Object.fromEntries([...others.slice(-(MOST - 1)), [who, taken]]))
}

/**
 * The answers with one more, or another; the same option again takes it back.
 * @param {Taken} taken
 * @param {number} form
 * @param {number} at
 * @param {number} option
 */
export function chosen(taken, form, at, option) {
  const answers = taken.answers.map((each) => [...each])
  answers[form][at] = answers[form][at] === option ? null : option
  return { ...taken, answers }
}

/** @param {boolean[]} flags @param {number} form */
export const flagged = (flags, form) => flags.map((each, at) => each || at === form)

/** The first question that is not answered yet, where somebody who comes back goes on. @param {Answers} answers */
export const firstOpen = (answers) => Math.max(0, answers.indexOf(null))

/** @param {Answers} answers */
export const answered = (answers) => answers.filter((each) => each !== null).length

/**
 * Which screen comes, and of which form. Alone nothing is told before the second form, or the end; in a room the lecturer leads.
 * @param {Taken} taken
 * @param {{ form: number | null, open: boolean } | null} [room]
 * @returns {{ screen: Screen, form: number }}
 */
export function next(taken, room = null) {
  if (room) {
    if (room.form === null) return { screen: "wait", form: 0 }
    if (room.open) return { screen: taken.done[room.form] ? "done" : "form", form: room.form }
    return { screen: room.form === 1 ? "results" : "wait", form: room.form }
  }
  if (taken.ended || taken.done[1]) return { screen: "results", form: 1 }
  if (taken.begun[1]) return { screen: "form", form: 1 }
  if (taken.done[0]) return { screen: "between", form: 0 }
  return { screen: taken.begun[0] ? "form" : "start", form: 0 }
}

/**
 * Right, wrong or "" for each question; nothing but "" without the key.
 * @param {Question[]} questions
 * @param {Answers} answers
 * @returns {("right" | "wrong" | "")[]}
 */
export const marks = (questions, answers) => questions.map(({ right }, at) => (answers[at] === null || right === undefined ? "" : answers[at] === right ? "right" : "wrong"))

/** @param {Question[]} questions @param {Answers} answers */
export const points = (questions, answers) => marks(questions, answers).filter((mark) => mark === "right").length

/**
 * The part of what could be gained that was (Hake's g); NaN where nothing was left to gain.
 * @param {number} before right answers
 * @param {number} after
 * @param {number} all
 */
export const gained = (before, after, all) => (before < all ? (after - before) / (all - before) : NaN)

/**
 * The misconceptions that both forms show; of somebody who took only the first, those that it shows.
 * @param {Question[][]} forms
 * @param {Taken} taken
 */
export function stayed(forms, taken) {
  const last = answered(taken.answers[1]) ? 1 : 0
  const belief = (/** @type {number} */ form, /** @type {number} */ at) => forms[form][at].options[taken.answers[form][at] ?? -1]?.belief ?? ""
  const found = forms[last].map((question, at) => ({ question, belief: belief(last, at), twice: last === 1 && !!belief(1, at) && belief(0, at) === belief(1, at) }))
  return found.filter((each) => each.belief && (last === 0 || each.twice))
}
