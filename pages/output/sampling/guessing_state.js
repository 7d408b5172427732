// @ts-check
// Shannon's game without a page: whose turn it is, and the nats of the guesses. studies/generation/guessing_game.py computes the
// same; tests/js/guessing.test.js holds the two together.

const PRIOR = 0.5 // added to the count of each outcome (Krichevsky and Trofimov, 1981)
const ENOUGH = 30 // characters, below which a mean says little
export const SURE = 2 // standard errors, beyond which chance is unlikely

/** @typedef {{ guesses: number, right: boolean }} Turn how one character was guessed */
/** @typedef {{ at: number, tried: number[], turns: Turn[] }} Game `tried` are the wrong guesses at the character `at` */

/** @returns {Game} */
export const newGame = () => ({ at: 0, tried: [], turns: [] })

/** The guesses that a character has, at most: of a small vocabulary the last token needs none. @param {number} vocab @param {number} most */
export const guessesOf = (vocab, most) => Math.min(most, vocab - 1)

/**
 * The game after a guess; the same where there is nothing to guess, or that was tried already.
 * @param {Game} game
 * @param {number} guess
 * @param {number[]} ids what is right
 * @param {number} most guesses
 * @returns {Game}
 */
export function guessed(game, guess, ids, most) {
  const { at, tried, turns } = game
  if (at >= ids.length || tried.includes(guess)) return game
  const now = [...tried, guess], right = guess === ids[at]
  if (!right && now.length < most) return { at, tried: now, turns }
  return { at: at + 1, tried: [], turns: [...turns, { guesses: now.length, right }] }
}

/** The game after a character was given up. @param {Game} game @param {number[]} ids @returns {Game} */
export function givenUp(game, ids) {
  const { at, tried, turns } = game
  return at >= ids.length ? game : { at: at + 1, tried: [], turns: [...turns, { guesses: tried.length, right: false }] }
}

/** The outcome of a turn, from 0: which guess was right, or none. @param {Turn} turn @param {number} outcomes */
const outcome = ({ guesses, right }, outcomes) => (right ? guesses - 1 : outcomes - 1)

/** p of the token that came, where the outcomes have these shares. @param {Turn} turn @param {number[]} shares @param {number} vocab */
function probability(turn, shares, vocab) {
  if (turn.right) return shares[outcome(turn, shares.length)]
  return sum(shares.slice(turn.guesses)) / (vocab - turn.guesses)
}

const sum = (/** @type {number[]} */ all) => all.reduce((total, x) => total + x, 0)

/** @param {number[]} all */
export const mean = (all) => sum(all) / all.length

/**
 * -ln p of each character by a reader's guesses, with p from the turns before alone: how often the guess of that number was right
 * so far, PRIOR added for each outcome. What is left after the last guess is spread evenly over the tokens that were not tried.
 * @param {Turn[]} turns
 * @param {number} vocab
 * @param {number} most guesses
 */
export function turnNats(turns, vocab, most) {
  const counts = Array(guessesOf(vocab, most) + 1).fill(PRIOR)
  return turns.map((turn) => {
    const all = sum(counts), nats = -Math.log(probability(turn, counts.map((count) => count / all), vocab))
    counts[outcome(turn, counts.length)]++
    return nats
  })
}

/**
 * Shannon's bounds (1951) of the text's entropy, from the shares of the outcomes of all turns at once.
 * @param {Turn[]} turns at least one
 * @param {number} vocab
 * @param {number} most guesses
 */
export function bounds(turns, vocab, most) {
  const shares = Array(guessesOf(vocab, most) + 1).fill(0)
  for (const turn of turns) shares[outcome(turn, shares.length)] += 1 / turns.length
  const steep = (/** @type {number} */ rank) => rank * Math.log(rank) - (rank - 1) * Math.log(Math.max(1, rank - 1))
  return { lower: mean(turns.map(({ guesses, right }) => steep(guesses + (right ? 0 : 1)))), upper: -mean(turns.map((turn) => Math.log(probability(turn, shares, vocab)))) }
}

/** How a predictor would have played, by the number of the guess that was right; 0 for none of `most`. @param {number[]} numbers @param {number} most @returns {Turn[]} */
export const turnsOf = (numbers, most) => numbers.map((number) => ({ guesses: number || most, right: number > 0 }))

/** The standard error of a mean; infinite for fewer than two numbers. @param {number[]} all */
export function standardError(all) {
  const centre = mean(all)
  return all.length > 1 ? Math.sqrt(sum(all.map((x) => (x - centre) ** 2)) / (all.length - 1) / all.length) : Infinity
}

/**
 * What may be said of a reader beside another predictor on the same characters: too "few" of them, "better", "worse", or no
 * difference that chance could not make ("even").
 * @param {number[]} yours nats
 * @param {number[]} theirs nats
 */
export function verdict(yours, theirs) {
  const differences = yours.map((nats, i) => nats - theirs[i])
  const by = mean(differences), chance = SURE * standardError(differences)
  if (yours.length < ENOUGH) return { what: "few", by, chance }
  return { what: Math.abs(by) <= chance ? "even" : by < 0 ? "better" : "worse", by, chance }
}

const PASSAGES = 8 // that a tab remembers

/**
 * What a tab remembers of a passage: the game, and the time that is left for it.
 * @typedef {{ passage: string, game: Game, left: number }} Played
 */

/**
 * The text to keep, once this is how far a passage is; the passages played longest ago give way.
 * @param {string} text that was kept before
 * @param {Played} played
 */
export const remembering = (text, played) => JSON.stringify([...listed(text).filter(({ passage }) => passage !== played.passage), played].slice(-PASSAGES))

/**
 * How far a passage is in what was kept; null where nothing of it was played, or it cannot have been played so.
 * @param {string} text
 * @param {string} passage
 * @param {number[]} ids what is right
 * @param {number} most guesses
 * @returns {Played | null}
 */
export function remembered(text, passage, ids, most) {
  const found = listed(text).find((/** @type {any} */ one) => one.passage === passage)
  if (!found || !Number.isFinite(found.left)) return null
  const { game } = found, number = (/** @type {any} */ x) => Number.isInteger(x) && x >= 0
  const played = Array.isArray(game?.turns) && game.turns.length <= ids.length && game.turns.every((/** @type {any} */ one) => number(one?.guesses) && one.guesses <= most && typeof one.right === "boolean")
  return played && game.at === game.turns.length && Array.isArray(game.tried) && game.tried.length < most && game.tried.every(number) ? found : null
}

/** @param {string} text @returns {Played[]} */
function listed(text) {
  try {
    const found = JSON.parse(text || "[]")
    return Array.isArray(found) ? found.filter((one) => typeof one?.passage === "string") : []
  } catch {
    return []
  }
}

/**
 * Fills a sentence in: "{you} nats" with { you: 1.9 } is "1.9 nats".
 * @param {string} words
 * @param {Record<string, string | number>} fields
 */
export const filled = (words, fields) => words.replace(/\{(\w+)\}/g, (_, name) => String(fields[name]))

/** Minutes and seconds of a clock: 95000 -> "1:35". @param {number} ms */
export function clock(ms) {
  const seconds = Math.ceil(Math.max(0, ms) / 1000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`
}
