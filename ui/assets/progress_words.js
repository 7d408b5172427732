// @ts-check
// What is said of a person's progress.

import { AT_ONCE } from "./shared/progress_state.js"

const NUMBERS = ["no", "one", "two", "three"]
const counted = (/** @type {number} */ count, /** @type {string} */ word, many = `${word}s`) => `${count} ${count === 1 ? word : many}`

/**
 * The heading of the questions that are due: at most three are asked at once.
 * @param {number} due
 */
export function heading(due) {
  const asked = Math.min(due, AT_ONCE)
  return `From last time: ${NUMBERS[asked]} question${asked === 1 ? "" : "s"}${due > asked ? ` of ${due}` : ""}`
}

/**
 * What is noted.
 * @param {import("./shared/progress_state.js").Progress} held
 * @param {number} all how many exercises there are
 */
export function ledger(held, all) {
  const solved = [...held.exercises.values()].filter((item) => item.seeds.length).length
  const guesses = [...held.guesses.values()], right = guesses.reduce((sum, { right: each }) => sum + each, 0)
  const made = guesses.reduce((sum, { wrong }) => sum + wrong, right)
  const parts = [`${solved} of ${counted(all, "exercise")} solved`, made ? `${right} of ${counted(made, "guess", "guesses")} right` : "", `${counted(held.views.size, "view")} seen`]
  return `Noted in this browser only: ${parts.filter(Boolean).join(", ")}.`
}

/**
 * When the next question returns; nothing where none does.
 * @param {number | null} next
 * @param {number} day
 */
export function upcoming(next, day) {
  if (next === null) return ""
  return next - day === 1 ? "The next question returns tomorrow." : `The next question returns in ${next - day} days.`
}
