import assert from "node:assert/strict"
import test from "node:test"
import { asked, bars, fitting, forTheRoom, nextGrown, putStage, rightAnswer, shifted, stageZoom } from "../../ui/assets/stage_state.js"

const AT = "http://a:8501/attention?attention_view=mask"

test("a page is drawn larger as far as both sides of the screen allow, and never smaller", () => {
  assert.equal(stageZoom(1280, 720), 1)
  assert.equal(stageZoom(1920, 1080), 1.5)
  assert.equal(stageZoom(3840, 2160), 3)
  assert.equal(stageZoom(1180, 2160), 1)
  assert.equal(stageZoom(390, 844), 1)
})

test("a figure takes what is free below it, or gives what is missing", () => {
  assert.equal(nextGrown(1, 100, 400), 1.25)
  assert.equal(nextGrown(1.25, -50, 500), 1.125)
  assert.equal(nextGrown(1, 9000, 400), 3)
  assert.equal(nextGrown(1, -399, 400), 0.7)
  assert.equal(nextGrown(1.1, 50, 0), 1.1)
})

test("what fills a screen fits it", () => {
  assert.equal(fitting({ width: 640, height: 240 }, { width: 1280, height: 720 }), 2)
  assert.equal(fitting({ width: 100, height: 360 }, { width: 1280, height: 720 }), 2)
  assert.equal(fitting({ width: 10, height: 10 }, { width: 1280, height: 720 }), 4)
})

function withStage(address, on) {
  const made = new URL(address)
  putStage(made, on)
  return made.href
}

test("stage mode stands in the address, the rest of which stays", () => {
  assert.equal(withStage(AT, true), `${AT}&stage=1`)
  assert.equal(withStage(`${AT}&stage=1`, true), `${AT}&stage=1`)
  assert.equal(withStage(`${AT}&stage=1`, false), AT)
  assert.equal(withStage(AT, false), AT)
  assert.equal(withStage(`${AT}&stage=zebra`, true), `${AT}&stage=1`)
  assert.equal(forTheRoom(`${AT}&stage=1`), AT)
})

test("keys that are somebody else's are left alone", () => {
  assert.equal(asked({ key: "p" }, false), "stage")
  assert.equal(asked({ key: "f" }, false), "full")
  assert.equal(asked({ key: "z" }, false), "freeze")
  assert.equal(asked({ key: "Escape" }, true), "leave")
  for (const key of ["ArrowRight", "PageDown", "a", " "]) assert.equal(asked({ key }, false), undefined)
  assert.equal(asked({ key: "p" }, true), undefined)
  assert.equal(asked({ key: "p", ctrlKey: true }, false), undefined)
  assert.equal(asked({ key: "f", metaKey: true }, false), undefined)
  assert.equal(asked({ key: "f", repeat: true }, false), undefined)
})

test("over a question of a course only the stage is turned on: the figure would tell the answer", () => {
  assert.equal(asked({ key: "p" }, false, true), "stage")
  for (const key of ["f", "z", "Escape"]) assert.equal(asked({ key }, false, true), undefined)
})

test("bars are as long as their share of all answers", () => {
  assert.deepEqual(bars([2, 1, 0]), [{ count: 2, share: 2 / 3 }, { count: 1, share: 1 / 3 }, { count: 0, share: 0 }])
  assert.deepEqual(bars([0, 0]), [{ count: 0, share: 0 }, { count: 0, share: 0 }])
})

test("the right answer is marked once no more answers come", () => {
  const given = { text: "Why?", answers: ["a", "b"], right: 1 }, room = { text: "Why?", answers: ["a", "b"], open: false }
  assert.equal(rightAnswer(room, given), 1)
  assert.equal(rightAnswer({ ...room, open: true }, given), -1)
  assert.equal(rightAnswer({ ...room, text: "Who?" }, given), -1)
  assert.equal(rightAnswer({ ...room, answers: ["b", "a"] }, given), -1)
  assert.equal(rightAnswer(room, null), -1)
})

test("a second vote says how far the right answer has moved, or else the one that moved most", () => {
  const room = { answers: ["a", "b", "c"], before: [2, 2, 0], counts: [1, 1, 6], open: false }
  for (const right of [0, 1]) assert.equal(shifted(room, right), "Right: 50% before, 13% after (4 and 8 answers).")
  assert.equal(shifted(room, -1), "Largest shift, “c”: 0% before, 75% after (4 and 8 answers).")
  assert.equal(shifted({ ...room, counts: [4, 4, 0] }, -1), "No shift, “a”: 50% before, 50% after (4 and 8 answers).")
  assert.equal(shifted({ ...room, open: true }, -1), "")
  assert.equal(shifted({ ...room, before: [] }, 1), "")
  for (const votes of [{ before: [0, 0, 0] }, { counts: [0, 0, 0] }]) assert.match(shifted({ ...room, ...votes }, 1), /nothing to compare/)
})
