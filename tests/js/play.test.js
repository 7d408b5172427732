// What plays: that a lecturer's freeze holds it, and that it goes on from where it stood.
import assert from "node:assert/strict"
import { test } from "node:test"

import { frames } from "../../ui/assets/shared/play.js"

/** A browser with a clock of its own: `pass` lets milliseconds pass, a frame at a time. */
function browser() {
  let time = performance.now(), next = null
  const held = { frozen: false }
  globalThis.document = { documentElement: { classList: { contains: (name) => name === "gf-frozen" && held.frozen } } }
  globalThis.requestAnimationFrame = (tick) => { next = tick; return 1 }
  globalThis.cancelAnimationFrame = () => { next = null }
  return { held, pass: (ms) => { time += ms; next?.(time) } }
}

for (const [words, rate] of [["ten a second", 10], ["as fast as frames come", 0]]) {
  test(`nothing moves while the screen is frozen: ${words}`, () => {
    const { held, pass } = browser()
    let done = 0
    const player = frames(() => rate, (steps) => { done += steps })
    pass(150)
    const before = done
    assert.ok(before > 0)
    held.frozen = true
    for (let i = 0; i < 20; i++) pass(500)
    assert.equal(done, before)
    held.frozen = false
    pass(150)
    assert.ok(done > before && done <= before + 8, "it goes on, and makes up for nothing")
    player.stop()
  })
}
