// Whether a reader is asked to guess, and what is said to a guess.

import assert from "node:assert/strict"
import { beforeEach, test } from "node:test"

import { ASKS, asks, declined, postpone, postponed, verdict } from "../../ui/assets/guess_state.js"

const CHOICES = [{ text: "more", said: "More it is." }, { text: "less", said: "Less was the thought." }]

/** @param {boolean} [broken] */
function browser(broken = false) {
  const shelf = () => {
    const kept = new Map()
    const fail = () => { if (broken) throw new Error("blocked") }
    return {
      getItem: (name) => (fail(), kept.get(name) ?? null),
      setItem: (name, value) => (fail(), kept.set(name, value)),
      removeItem: (name) => (fail(), kept.delete(name)),
    }
  }
  globalThis.localStorage = shelf()
  globalThis.sessionStorage = shelf()
  globalThis.document = new EventTarget()
}

beforeEach(() => browser())

test("a choice that holds has its own sentence, another one its thought and what holds", () => {
  assert.deepEqual(verdict(CHOICES, 0, 0), { word: "Correct.", text: "More it is." })
  const wrong = verdict(CHOICES, 0, 1)
  assert.equal(wrong.word, "Not quite.")
  assert.equal(wrong.text, "Less was the thought. The answer: more.")
})

test("who declines is not asked, until they want to be, and it is said", () => {
  let said = 0
  globalThis.document.addEventListener(ASKS, () => said++)
  assert.equal(asks(), true)
  declined(true)
  assert.equal(asks(), false)
  declined(false)
  assert.equal(asks(), true)
  assert.equal(said, 2)
})

test("not now is for one view and one tab, and forgotten with the wish to be asked", () => {
  postpone("mask")
  postpone("width")
  assert.deepEqual(postponed(), ["mask", "width"])
  assert.equal(asks(), true)
  declined(false)
  assert.deepEqual(postponed(), [])
})

test("a browser that keeps nothing still knows it while the page stands", () => {
  browser(true)
  declined(false)
  assert.equal(asks(), true)
  postpone("mask")
  assert.deepEqual(postponed(), ["mask"])
  declined(true)
  assert.equal(asks(), false)
})
