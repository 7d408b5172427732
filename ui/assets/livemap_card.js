// @ts-check
// What is said about a place of the living map: its name in the vocabulary, its shape, its parameters, a sentence with its
// numbers, and the part of the model that it belongs to.

import { fill, guessed, outlookAt, target, weight } from "./livemap_state.js"
import { chance, whole } from "./shared/numbers.js"

/** @typedef {{ title: string, text: string, name: string, shape: string, parameters: string, part: string, ask: Record<string, any> }} Card */

const number = (x) => (Math.abs(x) >= 100 ? x.toFixed(0) : x.toPrecision(3)).replace("-", "−")

const counted = (part) => (part?.parameters && part.parameters !== "0" ? part.parameters : "")

/**
 * @param {any} self the component: its picture, its model, what is chosen
 * @param {any} place as livemap_state.hit has it, or { kind: "part" | "bar" }
 * @returns {Card}
 */
export function card(self, place) {
  const { p, say, model, parts } = self, { lane, layer } = place
  const word = lane >= 0 ? p.words[p.ids[lane]] : "", token = lane >= 0 ? p.earlier + lane : p.earlier + p.lanes - 1
  const pooled = p.pooled[0] === p.pooled[1] ? whole(p.pooled[0]) : `${p.pooled[0]} to ${p.pooled[1]}`
  const base = { word, block: layer, pooled, d_model: whole(model.d_model), d_ff: whole(model.d_ff ?? 0), layers: p.layers }
  const made = (kind, part, name, values = {}, ask = {}) => {
    const [title, text] = say[kind].map((one) => fill(one, { ...base, ...values }))
    const bare = name.split(".").at(-1)
    return { title, text, name, shape: p.shapes[bare] ?? "", parameters: counted(parts[part]), part, ask: { part, token, layer: layer ?? 0, ...ask } }
  }
  const sum = (kind) => (parts[kind] ? kind : "sum_both")
  switch (place.kind) {
    case "part": return { title: parts[place.part].title, text: parts[place.part].text, name: "", shape: "", parameters: counted(parts[place.part]), part: place.part, ask: { part: place.part, token, layer: self.focus, head: self.head } }
    case "earlier": return made("earlier", "tokens", "tokens", { count: whole(p.earlier), shown: p.lanes })
    case "token": return made("token", "tokens", "tokens", { id: whole(p.ids[lane]), vocab: whole(model.vocab), place: token })
    case "embedding": return made("embedding", "embedding", "embed")
    case "stream": {
      const [first] = guessed(p, place.depth, lane)
      const values = first ? { guess: p.words[first[0]], chance: chance(first[1]) } : {}
      return made(first ? "stream" : "unheard", sum("sum_feedforward"), `blocks.${layer}.resid_post`, values)
    }
    case "head": {
      const query = lane ?? self.lane, key = target(p, layer, self.head, query)
      const values = { head: self.head, query: p.words[p.ids[query]], key: key < 0 ? fill(self.panel.earlier, { count: p.earlier }) : p.words[p.ids[key]], weight: chance(weight(p, layer, self.head, query, key)) }
      return made("head", "attention", `blocks.${layer}.pattern`, values, { head: self.head, token: p.earlier + query })
    }
    case "attn_out": return made("attn_out", "attention", `blocks.${layer}.attn_out`, {}, { head: self.head })
    case "middle": return made("middle", sum("sum_attention"), `blocks.${layer}.resid_mid`)
    case "neuron": {
      const each = p.neurons.length / p.layers / p.lanes, at = (layer * p.lanes + lane) * each + place.rank
      const values = { neuron: whole(p.neurons[at]), value: number(p.active[at]), rank: place.rank + 1, count: each }
      return made("neuron", "feedforward", `blocks.${layer}.ffn_post`, values, { neuron: p.neurons[at] })
    }
    case "ffn_out": return made("ffn_out", "feedforward", `blocks.${layer}.ffn_out`)
    case "guess": {
      const [first, ...rest] = guessed(p, self.depth, lane)
      if (!first) return made("token", "tokens", "tokens", { id: whole(p.ids[lane]), vocab: whole(model.vocab), place: token })
      const others = rest.map(([id, q]) => `“${p.words[id]}” ${chance(q)}`).join(", ")
      return made("guess", "unembedding", "logits", { guess: p.words[first[0]], chance: chance(first[1]), others, where: self.depth ? fill(self.panel.block, { block: self.depth - 1 }) : self.panel.embedding }, { part: sum("sum_feedforward") })
    }
    case "bar": {
      const found = outlookAt(p, self.depth, self.temperature, self.topK), i = found ? found.tokens.indexOf(place.token) : -1
      return made("bar", "softmax", "logits", { word: p.words[place.token], chance: found ? chance(found.p[i]) : "", logit: found ? number(found.logits[i]) : "", temperature: self.temperature.toFixed(1) })
    }
    default: return { ...made("block", "block", `blocks.${layer}`), shape: "" }
  }
}
