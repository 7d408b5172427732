// Shannon's game in the browser against the library's numbers (guessing.json, which tests/studies/test_guessing_game.py holds to it).
import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"

import { bounds, clock, filled, givenUp, guessed, guessesOf, mean, newGame, remembered, remembering, standardError, turnNats, turnsOf, verdict } from "../../pages/output/sampling/guessing_state.js"
import { named, rowsOf, visible } from "../../ui/assets/shared/alphabet.js"

const cases = JSON.parse(readFileSync(new URL("./guessing.json", import.meta.url), "utf8")), MOST = 5
const near = (a, b, by = 1e-8) => assert.ok(Math.abs(a - b) <= by, `${a} is not ${b}`)

for (const { vocab, turns, nats, lower, upper } of cases) {
  test(`nats and bounds of a reader with ${vocab} characters`, () => {
    const found = bounds(turns, vocab, MOST), mine = turnNats(turns, vocab, MOST)
    assert.equal(mine.length, nats.length)
    mine.forEach((x, i) => near(x, nats[i]))
    near(found.lower, lower)
    near(found.upper, upper)
  })
}

/** The game after such guesses, each a character's id; -1 gives up. */
const played = (ids, guesses, most = MOST) => guesses.reduce((game, guess) => (guess < 0 ? givenUp(game, ids) : guessed(game, guess, ids, most)), newGame())

test("a right guess leads on, a wrong one counts once, and after the last the character is shown", () => {
  const ids = [3, 1, 4]
  assert.deepEqual(played(ids, [3]), { at: 1, tried: [], turns: [{ guesses: 1, right: true }] })
  assert.deepEqual(played(ids, [3, 0, 0, 2]), { at: 1, tried: [0, 2], turns: [{ guesses: 1, right: true }] })
  assert.deepEqual(played(ids, [3, 0, 2, 1]).turns.at(-1), { guesses: 3, right: true })
  assert.deepEqual(played(ids, [3, 0, 2, 4, 5, 6]), { at: 2, tried: [], turns: [{ guesses: 1, right: true }, { guesses: 5, right: false }] })
  assert.deepEqual(played(ids, [0, -1]), { at: 1, tried: [], turns: [{ guesses: 1, right: false }] })
})

test("behind the last character nothing counts", () => {
  const ids = [3], over = played(ids, [3])
  assert.equal(guessed(over, 3, ids, MOST), over)
  assert.equal(givenUp(over, ids), over)
})

test("of a small alphabet the last character needs no guess", () => {
  assert.deepEqual([65, 5, 2].map((vocab) => guessesOf(vocab, MOST)), [5, 4, 1])
  assert.deepEqual(played([1], [0], guessesOf(2, MOST)).turns, [{ guesses: 1, right: false }])
  near(turnNats([{ guesses: 1, right: false }], 2, MOST)[0], Math.LN2)
})

test("a predictor that would have guessed in another order is measured alike", () => {
  assert.deepEqual(turnsOf([1, 0, 5], MOST), [{ guesses: 1, right: true }, { guesses: 5, right: false }, { guesses: 5, right: true }])
})

test("the standard error is the sample's, and of a single number endless", () => {
  near(standardError([1, 2, 3, 6]), Math.sqrt((4 + 1 + 0 + 9) / 3 / 4))
  assert.equal(standardError([1]), Infinity)
  near(mean([1, 2, 6]), 3)
})

test("a reader is better, worse or even by two standard errors of the differences, and of few characters nothing is said", () => {
  const theirs = Array.from({ length: 40 }, (_, i) => 2 + (i % 2)), by = (/** @type {number} */ d) => theirs.map((x, i) => x + d + (i % 4 < 2 ? 0.5 : -0.5))
  assert.equal(verdict(by(-0.4), theirs).what, "better")
  assert.equal(verdict(by(0.4), theirs).what, "worse")
  assert.equal(verdict(by(0.1), theirs).what, "even")
  near(verdict(by(0.4), theirs).chance, 2 * Math.sqrt((40 * 0.25) / 39 / 40))
  assert.equal(verdict(by(-0.4).slice(0, 29), theirs.slice(0, 29)).what, "few")
})

test("a passage that was played is remembered, and of many those played last", () => {
  const ids = [3, 1, 4], game = played(ids, [3, 0]), one = { passage: "one", game, left: 7000 }
  let text = remembering("", one)
  assert.deepEqual(remembered(text, "one", ids, MOST), one)
  assert.equal(remembered(text, "another", ids, MOST), null)
  text = remembering(text, { ...one, left: 0 })
  assert.equal(remembered(text, "one", ids, MOST)?.left, 0)
  for (let i = 0; i < 8; i++) text = remembering(text, { ...one, passage: String(i) })
  assert.equal(remembered(text, "one", ids, MOST), null)
  for (let i = 0; i < 8; i++) assert.equal(remembered(text, String(i), ids, MOST)?.left, 7000)
})

test("what cannot have been played is not remembered", () => {
  const ids = [3, 1], turn = { guesses: 1, right: true }, kept = (/** @type {any} */ game, /** @type {any} */ left = 1) => remembered(JSON.stringify([{ passage: "p", game, left }]), "p", ids, MOST)
  assert.ok(kept({ at: 1, tried: [2], turns: [turn] }))
  for (const text of ["", "{", "7", "null", "[null, 3]", "{}"]) assert.equal(remembered(text, "p", ids, MOST), null)
  for (const game of [null, {}, { at: 0, tried: [], turns: [turn] }, { at: 3, tried: [], turns: [turn, turn, turn] }, { at: 1, tried: [], turns: [{ ...turn, guesses: 6 }] },
    { at: 1, tried: [], turns: [{ guesses: 1, right: 1 }] }, { at: 1, tried: ["a"], turns: [turn] }, { at: 1, tried: [0, 1, 2, 4, 5], turns: [turn] }]) assert.equal(kept(game), null)
  assert.equal(kept({ at: 1, tried: [], turns: [turn] }, "soon"), null)
})

test("sentences and the clock", () => {
  assert.equal(filled("“{a}” cost {b} nats, {a}", { a: "$&", b: 1.5 }), "“$&” cost 1.5 nats, $&")
  assert.deepEqual([120000, 95400, 1, 0, -5].map(clock), ["2:00", "1:36", "0:01", "0:00", "0:00"])
})

test("a keyboard holds each character of an alphabet, letters where a keyboard has them, white space last", () => {
  const alphabet = [..."\n !',.:3ABCTZabcdtz&"], rows = rowsOf(alphabet)
  assert.deepEqual([...new Set(rows.flat(2))].sort(), [...alphabet].sort())
  assert.deepEqual(rows[0], [["t", "T"]])
  assert.deepEqual(rows[1], [["a", "A"], ["d", "d"]])
  assert.deepEqual(rows.at(-1), [[" ", " "], ["\n", "\n"]])
  assert.deepEqual([" ", "\n", "a"].map((one) => [visible(one), named(one)]), [["␣", "space"], ["⏎", "line break"], ["a", "a"]])
  assert.deepEqual(rowsOf([..."αβ"]), [[["α", "α"], ["β", "β"]]])
})
