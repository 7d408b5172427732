// @ts-check
// Which moments of a training a film shows: arithmetic alone.

/**
 * At most so many of the steps: the first, the last and the marked ones, and of the others every second, third ... so that
 * what is left is spread as the steps are.
 * @param {number[]} steps ascending
 * @param {number[]} marks
 * @param {number} most
 */
export function chosen(steps, marks, most) {
  if (steps.length <= most) return [...steps]
  const must = new Set([steps[0], steps[steps.length - 1], ...marks.filter((step) => steps.includes(step)).slice(0, Math.floor(most / 2))])
  const others = steps.filter((step) => !must.has(step)), room = most - must.size
  for (let i = 0; i < room; i++) must.add(others[Math.floor(((i + 0.5) * others.length) / room)])
  return steps.filter((step) => must.has(step))
}
