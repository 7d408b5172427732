// @ts-check
// One position's logits on their way to a token. The arithmetic is engine/sample/stages.py's, done again here so that
// sliders answer at once; tests/js/sampler.test.js and tests/browser/test_output.py hold the two together.

/** @typedef {{ temperature: number, top_k: number, top_p: number, min_p: number, repetition_penalty: number, penalty_last: boolean }} Settings as engine.config.SampleConfig */
/** @typedef {{ name: string, logits: Float64Array, p: Float64Array, removed: Set<number>, kept: number, mass: number, entropy: number, choices: number }} Stage */

/** The settings that change nothing. @type {Record<string, number>} */
export const OFF = { repetition_penalty: 1, temperature: 1, top_k: 0, top_p: 1, min_p: 0 }

/** @param {ArrayLike<number>} logits */
export const softmax = (logits) => {
  let top = -Infinity
  for (let i = 0; i < logits.length; i++) if (logits[i] > top) top = logits[i]
  const raw = Float64Array.from(logits, (x) => Math.exp(x - top))
  let sum = 0
  for (const x of raw) sum += x
  return raw.map((x) => x / sum)
}

/** The indexes from the largest value down; of equals the lower one first. @param {Float64Array | Float32Array} values */
export const ranked = (values) => new Uint32Array(values.keys()).sort((a, b) => (values[b] > values[a] ? 1 : values[b] < values[a] ? -1 : a - b))

const largest = (values) => {
  let best = 0
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i
  return best
}

/** @type {Record<string, (logits: Float64Array<ArrayBuffer>, s: any, seen: Set<number>) => Float64Array<ArrayBuffer>>} */
const FUNCTIONS = {
  repetition_penalty: (logits, s, seen) => logits.map((x, i) => (seen.has(i) ? (x > 0 ? x / s.repetition_penalty : x * s.repetition_penalty) : x)),
  temperature: (logits, s) => {
    if (s.temperature === 0) {
      const best = largest(logits)
      return logits.map((x, i) => (i === best ? x : -Infinity))
    }
    // As in the engine: so near to 0 that numbers would overflow, a somewhat larger one does the same.
    let most = 0
    for (const x of logits) if (x !== -Infinity) most = Math.max(most, Math.abs(x))
    const by = s.temperature < 1e-3 ? Math.max(s.temperature, most / 1e30) : s.temperature
    return logits.map((x) => x / by)
  },
  top_k: (logits, s) => {
    const least = logits[ranked(logits)[Math.min(s.top_k, logits.length) - 1]]
    return logits.map((x) => (x < least ? -Infinity : x))
  },
  top_p: (logits, s) => {
    const p = softmax(logits), kept = Float64Array.from(logits)
    let before = 0
    ranked(logits).forEach((i, rank) => {
      if (rank > 0 && before >= s.top_p) kept[i] = -Infinity
      before += p[i]
    })
    return kept
  },
  min_p: (logits, s) => {
    const p = softmax(logits), top = p[largest(p)]
    return logits.map((x, i) => (p[i] < s.min_p * top ? -Infinity : x))
  },
}

/**
 * What each stage leaves of the logits, the first record being the logits themselves.
 * @param {ArrayLike<number>} logits (vocab,)
 * @param {Settings} settings
 * @param {Set<number>} seen ids so far, which the penalty is for
 * @returns {Stage[]}
 */
export function stages(logits, settings, seen) {
  const order = settings.penalty_last ? ["temperature", "top_k", "top_p", "min_p", "repetition_penalty"] : Object.keys(FUNCTIONS)
  let now = Float64Array.from(logits), last = record("logits", now, softmax(now), null)
  const made = [last]
  for (const name of order) {
    if (settings[name] === OFF[name]) { // nothing changes: over tens of thousands of tokens it is not computed again
      made.push({ ...last, name, removed: new Set(), mass: 1 })
      continue
    }
    const next = FUNCTIONS[name](now, settings, seen)
    last = record(name, next, last.p, now)
    made.push(last)
    now = next
  }
  return made
}

function record(name, logits, before, previous) {
  const p = softmax(logits)
  let kept = 0, mass = 1, entropy = 0
  const removed = new Set()
  for (let i = 0; i < logits.length; i++) {
    if (logits[i] === -Infinity) {
      if (previous && previous[i] !== -Infinity) { removed.add(i); mass -= before[i] }
    } else kept++
    if (p[i] > 0) entropy -= p[i] * Math.log(p[i])
  }
  return { name, logits, p, removed, kept, mass, entropy, choices: Math.exp(entropy) }
}

/**
 * The id that a number in [0, 1) draws from probabilities.
 * @param {Float64Array} p
 * @param {number} u
 */
export const draw = (p, u) => drawer(p)(u)

/**
 * The same for many numbers: where each token's stretch ends is summed up once.
 * @param {Float64Array} p
 * @returns {(u: number) => number}
 */
export function drawer(p) {
  const ends = new Float64Array(p.length)
  let end = 0, last = 0
  for (let i = 0; i < p.length; i++) {
    end += p[i]
    ends[i] = end
    if (p[i] > 0) last = i
  }
  return (u) => { // the first token whose stretch ends behind u
    let low = 0, high = p.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (ends[middle] > u * end) high = middle
      else low = middle + 1
    }
    return low < p.length ? low : last
  }
}

/**
 * Total variation distance between the shares of `n` draws and the probabilities: half the sum of their differences.
 * @param {Float64Array} p
 * @param {ArrayLike<number>} counts
 * @param {number} n
 */
export function distance(p, counts, n) {
  let sum = 0
  for (let i = 0; i < p.length; i++) sum += Math.abs(counts[i] / n - p[i])
  return sum / 2
}

/**
 * The total variation distance to expect after one draw; after n it is this over sqrt(n). The mean of |share - p| is near
 * sqrt(2 p (1 - p) / (pi n)) for each token.
 * @param {Float64Array} p
 */
export function expectedDistance(p) {
  let sum = 0
  for (const x of p) sum += Math.sqrt((2 * x * (1 - x)) / Math.PI) / 2
  return sum
}
