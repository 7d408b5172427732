// @ts-check
// Shannon's game: a reader guesses held-out text, character by character, against the clock. All of it happens here; no guess is
// sent anywhere, and what comes next is in no element of the page. See pages/output/sampling/guessing.py; the arithmetic is in
// guessing_state.js.

import { createKeyboard, visible } from "../../../ui/assets/shared/alphabet.js"
import { answerOver } from "../../../ui/assets/shared/answer.js"
import { alone, around, button, characters, element, within, write } from "../../../ui/assets/shared/dom.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { counted } from "../../../ui/assets/shared/numbers.js"
import { saveTools } from "../../../ui/assets/shared/save.js"
import { tab } from "../../../ui/assets/shared/shelf.js"
import { paint } from "../../../ui/assets/shared/theme.js"
import { cell, lossBars } from "./guessing_draw.js"
import { SURE, bounds, clock, filled, givenUp, guessed, guessesOf, mean, newGame, remembered, remembering, standardError, turnNats, turnsOf, verdict } from "./guessing_state.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {(string | number)[]} key model, step, text and seed
 * @property {string[]} alphabet by id
 * @property {string} lead
 * @property {number[]} ids to guess
 * @property {Record<string, number[]>} nats of each character, by predictor
 * @property {Record<string, number[]>} turns the number of the guess with which each would have been right; 0 for none
 * @property {number} seconds
 * @property {number} guesses
 * @property {Record<string, string>} words sentences with fields in braces
 * @property {import("../../../ui/assets/shared/colours.js").Palette} palette
 */

const TICK_MS = 250
const SHELF = "glassformer-passages" // of this tab: how far its games are
const SURPRISED = 3 // guesses, among which the character was not
const READY = "ready", PLAYING = "playing", OVER = "over"
const YOU = "you", MODEL = "model", NGRAMS = ["uniform", "unigram", "bigram", "trigram"]

function create(place, _, signal) {
  const root = within(place, "div", "gf-play")
  /** @type {any} */
  const self = { root, data: null, key: "", passage: "", state: READY, game: newGame(), ends: 0, left: 0, timer: 0, cells: [], keyboard: null }
  const bar = within(root, "div", "gf-play-bar")
  const main = button("", "", () => (self.state === PLAYING ? over(self) : start(self)))
  main.className = "gf-play-main"
  const time = within(bar, "output", "gf-play-clock"), count = within(bar, "span", "gf-play-count"), said = within(bar, "p", "gf-play-said", "", { "aria-live": "polite" })
  const another = button("", "", () => self.trigger("again", performance.now()))
  bar.prepend(main)
  bar.append(another)
  const text = within(root, "div", "gf-play-text", "", { tabindex: 0, role: "group", "aria-label": "The text so far" })
  const turn = within(root, "div", "gf-play-turn"), number = within(turn, "span", "gf-play-number"), tried = within(turn, "span", "gf-play-tried")
  const input = within(turn, "textarea", "gf-play-input", "", { rows: 1, autocomplete: "off", autocapitalize: "off", autocorrect: "off", spellcheck: "false" })
  if (!matchMedia("(pointer: fine)").matches) input.setAttribute("inputmode", "none") // the keys below are the phone's keyboard
  const skip = button("", "", () => act(self, givenUp(self.game, self.data.ids)))
  turn.append(skip)
  const keys = within(root, "div", "gf-play-keys"), result = within(root, "div", "gf-play-result")
  input.addEventListener("input", () => {
    const typed = input.value
    input.value = ""
    for (const character of characters(typed)) press(self, character)
  })
  for (const name of ["pointerover", "click"]) text.addEventListener(name, (event) => point(self, around(event, "[data-at]")))
  Object.assign(self, { main, time, count, said, another, text, turn, number, tried, input, skip, keys, result })
  another.before(saveTools(root, () => "you-are-the-model", () => table(self)))
  signal.addEventListener("abort", () => clearInterval(self.timer))
  return self
}

function start(self) {
  if (self.state === OVER) Object.assign(self, { game: newGame(), left: 1000 * self.data.seconds })
  Object.assign(self, { state: PLAYING, ends: performance.now() + self.left })
  answerOver(null)
  clearInterval(self.timer)
  self.timer = setInterval(() => { if (self.root.isConnected) tick(self) }, TICK_MS)
  draw(self)
  listen(self)
}

// What is typed next is a guess, whatever was pressed; a phone has the keys below.
function listen(self) {
  if (self.input.getAttribute("inputmode") !== "none") self.input.focus({ preventScroll: true })
}

function tick(self) {
  const left = self.ends - performance.now()
  write(self.time, clock(left))
  if (left <= 0) over(self)
}

function over(self) {
  clearInterval(self.timer)
  Object.assign(self, { state: self.game.turns.length ? OVER : READY, left: 1000 * self.data.seconds })
  if (self.state === READY) self.game = newGame()
  keep(self)
  draw(self)
  write(self.said, self.data.words[self.state === READY ? "nothing" : "point"])
}

/** What was typed or pressed. @param {any} self @param {string} character */
function press(self, character) {
  const { alphabet, ids, words } = self.data, id = alphabet.indexOf(character)
  if (self.state !== PLAYING) return
  if (id < 0) write(self.said, filled(words["not in alphabet"], { character: visible(character) }))
  else act(self, guessed(self.game, id, ids, self.most), id)
}

/** Goes on to what a guess, or giving up, has made of the game. */
function act(self, /** @type {import("./guessing_state.js").Game} */ game, guess = -1) {
  const { alphabet, ids, words } = self.data, before = self.game
  if (self.state !== PLAYING || game === before) return
  self.game = game
  const character = visible(alphabet[game.at > before.at ? ids[before.at] : guess])
  const last = game.turns.at(-1), what = game.at === before.at ? "not it" : last?.right ? "right" : "was"
  const number = what === "right" ? last?.guesses ?? 0 : game.tried.length + 1
  if (game.at >= ids.length) return over(self)
  keep(self)
  draw(self)
  listen(self)
  write(self.said, filled(words[what], { character, number, most: self.most }))
}

/** Remembers how far the game is, for another view and back, and a reload. */
function keep(self) {
  if (self.state === PLAYING) self.left = Math.max(0, self.ends - performance.now())
  tab.put(SHELF, remembering(tab.get(SHELF), { passage: self.passage, game: self.game, left: self.state === OVER ? 0 : self.left }))
}

/** A passage as it was left: over, or at its character with the time that is left; one that is new, at its beginning. */
function open(self, /** @type {string} */ passage) {
  clearInterval(self.timer)
  if (self.state === PLAYING) keep(self)
  const { alphabet, guesses, ids, seconds } = self.data, most = guessesOf(alphabet.length, guesses)
  const { game = newGame(), left = 1000 * seconds } = remembered(tab.get(SHELF), passage, ids, most) ?? {}, ended = left <= 0 && game.turns.length > 0
  Object.assign(self, { passage, most, game, state: ended ? OVER : READY, left: left > 0 ? left : 1000 * seconds })
}

// What is seen --------------------------------------------------------------------------------------------------------

function update(self, /** @type {Data} */ data) {
  const key = JSON.stringify(data.key), { words } = data
  self.data = data
  paint(self.root, data.palette)
  if (key === self.key) return
  self.key = key
  const passage = JSON.stringify([data.alphabet.join(""), data.lead, data.ids])
  if (passage === self.passage) return anew(self) // of another model: the game goes on
  open(self, passage)
  for (const [node, name] of [[self.another, "again"], [self.skip, "give up"]]) {
    write(node, words[name])
    for (const label of ["aria-label", "title"]) node.setAttribute(label, words[`${name} hint`])
  }
  self.another.hidden = alone()
  self.input.setAttribute("aria-label", words["guess hint"])
  self.input.setAttribute("placeholder", words.guess)
  self.keys.replaceChildren()
  self.keyboard = createKeyboard(self.keys, data.alphabet, (character) => press(self, character))
  anew(self)
  write(self.said, words[self.state === OVER ? "point" : self.game.turns.length || self.game.tried.length ? "left" : "ready"])
}

function anew(self) {
  if (self.state !== OVER) answerOver(null)
  draw(self)
}

function draw(self) {
  const { data, game, state } = self, { words } = data, plays = state === PLAYING
  self.root.dataset.state = state
  write(self.main, words[plays ? "end" : game.turns.length || game.tried.length ? "go on" : "start"])
  self.main.hidden = state === OVER && !alone() // who has seen the passage guesses another
  self.another.classList.toggle("gf-play-main", state === OVER)
  for (const label of ["aria-label", "title"]) self.main.setAttribute(label, words[plays ? "end hint" : "start hint"])
  write(self.time, clock(plays ? self.ends - performance.now() : self.left))
  self.time.hidden = state === OVER
  write(self.count, counted(game.turns.length, "character"))
  self.turn.hidden = state === OVER
  write(self.number, filled(words.turn, { number: game.tried.length + 1, most: self.most }))
  self.input.disabled = self.skip.disabled = !plays
  self.keys.hidden = state === OVER
  self.keyboard.mark(Object.fromEntries(game.tried.map((/** @type {number} */ id) => [data.alphabet[id], "tried"])), !plays)
  self.tried.replaceChildren(...game.tried.map((/** @type {number} */ id) => element("s", "", visible(data.alphabet[id]))))
  drawText(self)
  self.result.hidden = state !== OVER
  if (state === OVER) drawResult(self)
}

/** The text up to where one guesses; nothing of it beyond. */
function drawText(self) {
  const { data: { lead, ids, alphabet }, game, state, text } = self, all = state === OVER ? players(self) : {}
  text.replaceChildren(...Array.from(lead, (/** @type {string} */ character) => cell(character, "gf-play-lead")))
  self.cells = game.turns.map((/** @type {import("./guessing_state.js").Turn} */ turn, /** @type {number} */ i) => {
    const kinds = state === OVER ? [YOU, MODEL].filter((name) => surprised(all[name][i])).map((name) => `gf-play-by-${name}`) : turn.right ? [] : ["gf-play-missed"]
    const made = cell(alphabet[ids[i]], kinds.join(" "))
    made.dataset.at = String(i)
    return made
  })
  text.append(...self.cells)
  if (state !== OVER) within(text, "span", "gf-play-cursor", "?")
  text.scrollTop = text.scrollHeight
}

const surprised = (/** @type {import("./guessing_state.js").Turn} */ { guesses, right }) => !right || guesses > SURPRISED

/** How each predictor would have guessed the characters that the reader did, who comes last. @returns {Record<string, import("./guessing_state.js").Turn[]>} */
function players({ data, game: { turns }, most }) {
  const all = Object.entries(data.turns).map(([name, numbers]) => [name, turnsOf(/** @type {number[]} */ (numbers).slice(0, turns.length), most)])
  return { ...Object.fromEntries(all), [YOU]: turns }
}

function drawResult(self) {
  const { data, game, result, most } = self, { words } = data, two = (/** @type {number} */ x) => x.toFixed(2), all = byGuesses(self), you = all[YOU]
  const ngram = NGRAMS.filter((name) => name in all).at(-1) ?? MODEL, many = counted(you.length, "character")
  const { what } = verdict(you, all[ngram]), chance = SURE * standardError(you), second = what === "few" && !Number.isFinite(chance) ? "single" : what
  const legend = element("p", "gf-play-legend", filled(words.mark, { number: SURPRISED })), { lower, upper } = bounds(game.turns, data.alphabet.length, most)
  for (const name of [YOU, MODEL]) within(legend, "span", `gf-play-by-${name}`, words[name])
  const title = element("p", "gf-play-title", filled(words.bars, { characters: many }))
  for (const name of ["length", "guesses"]) within(title, "span", `gf-play-key gf-play-${name}`, words[`by ${name}`])
  const list = lossBars(title.textContent ?? "", [...NGRAMS, MODEL, YOU].filter((name) => name in data.nats || name in all).map((name) => ({
    name, title: words[name], nats: name in data.nats ? mean(data.nats[name].slice(0, you.length)) : null, guesses: name in all ? mean(all[name]) : null,
  })))
  const more = element("p", "gf-play-note", filled(words.bounds, { perplexity: Math.exp(mean(you)).toFixed(1), lower: two(lower), upper: two(upper) }))
  result.replaceChildren(legend, title, list, more)
  self.claim = [
    filled(words.claim, { you: mean(you).toFixed(1), ngram: words[ngram], reference: mean(all[ngram]).toFixed(1), model: mean(all[MODEL]).toFixed(1), characters: many }),
    filled(words[second], { ngram: words[ngram], chance: chance.toFixed(1) }),
  ].join(" ")
  answerOver(self.claim, result)
  clearInterval(self.timer)
  if (!alone()) self.timer = setInterval(() => claimed(self), TICK_MS)
}

// The page's answer may come, or come anew, after the result of a game that was played before.
function claimed({ root, claim }) {
  if (root.isConnected && !document.querySelector(".gf-answer-then")) answerOver(claim)
}

/** Nats of each character by guesses alone, by predictor. @returns {Record<string, number[]>} */
function byGuesses(self) {
  return Object.fromEntries(Object.entries(players(self)).map(([name, turns]) => [name, turnNats(turns, self.data.alphabet.length, self.most)]))
}

/** Says with which guess one character was found. */
function point(self, /** @type {HTMLElement | null} */ at) {
  if (!at || self.state !== OVER) return
  const i = Number(at.dataset.at), { data, most } = self, { words } = data, all = players(self), ngram = NGRAMS.filter((name) => name in all).at(-1) ?? MODEL
  const number = (/** @type {string} */ name) => { const { guesses, right } = all[name][i]; return filled(words[right ? "number" : "no number"], { number: guesses, most }) }
  write(self.said, filled(words.at, { character: visible(data.alphabet[data.ids[i]]), you: number(YOU), ngram: words[ngram], reference: number(ngram), model: number(MODEL) }))
}

function table(self) {
  const { data, game: { turns } } = self, all = turns.length ? byGuesses(self) : {}, names = Object.keys(all), given = Object.keys(data.nats)
  const head = ["character", "guesses", "right", ...given, ...names.map((name) => `${name}_by_guesses`)]
  return [head, ...turns.map((/** @type {import("./guessing_state.js").Turn} */ { guesses, right }, /** @type {number} */ i) =>
    [data.alphabet[data.ids[i]], guesses, right, ...given.map((name) => data.nats[name][i]), ...names.map((name) => all[name][i])])]
}

function remove(self) {
  clearInterval(self.timer)
  if (self.state === PLAYING) keep(self)
  answerOver(null)
}

export default component({ create, update, remove })
