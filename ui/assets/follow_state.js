// @ts-check
// How long to wait before the next question: arithmetic alone.

const MOST = 16 // times the usual wait, where the server does not answer

/**
 * Milliseconds until the next question, after so many that were not answered.
 * @param {number} every seconds
 * @param {number} failed
 */
export const next = (every, failed) => 1000 * every * Math.min(MOST, 2 ** failed)
