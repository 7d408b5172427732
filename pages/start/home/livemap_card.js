// @ts-check
// What is said about a place of the living map: its name in the vocabulary, its shape, its parameters, a sentence with its
// numbers, and the part of the model that it belongs to.

import { fill, guessed, outlookAt, target, weight } from "./livemap_state.js"
import { minus, percent, whole } from "../../../ui/assets/shared/numbers.js"

/** @typedef {{ title: string, text: string, name: string, shape: string, parameters: string, part: string, ask: Record<string, any> }} Card */

const number = (x) => minus(Math.abs(x) >= 100 ? x.toFixed(0) : x.toPrecision(3))

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
    return { title, text, name, shape: p.shapes[bare] ?? "", parameters: counted(parts[part]), part, ask: { part, token, layer: layer ?? 0, name, ...ask } }
  }
  const titled = (part) => parts[part]?.title ?? part
  const sum = (kind) => (parts[kind] ? kind : "sum_both")
  switch (place.kind) {
    case "part": return { title: parts[place.part].title, text: parts[place.part].text, name: "", shape: "", parameters: counted(parts[place.part]), part: place.part, ask: { part: place.part, token, layer: self.focus, head: self.head } }
    case "earlier": return made("earlier", "tokens", "tokens", { count: whole(p.earlier), shown: p.lanes }, { token: 0 })
    case "token": return made("token", "tokens", "tokens", { id: whole(p.ids[lane]), vocab: whole(model.vocab), place: token })
    case "embed": return made("embedding", "embedding", "embed")
    case "pos_embed": return made("pos_embed", "position", "pos_embed", { place: token, size: number(p.entering_sizes[p.lanes + lane]), own: number(p.entering_sizes[lane]) })
    case "embedding": {
      const values = { size: number(p.sizes[lane]) }
      if (parts.norm_embed) return made("norm_embed", "norm_embed", "blocks.0.resid_pre", values)
      return p.entering ? made("entered", "sum_position", "blocks.0.resid_pre", values) : made("embedding", "embedding", "embed")
    }
    case "norm": {
      const first = place.of === "attention", at = layer * p.lanes + lane, given = !first && p.middle_sizes ? p.middle_sizes[at] : p.sizes[at]
      const which = first || model.ends_normed ? "norm1" : "norm2"
      return made("norm", which, `blocks.${layer}.${which}`, { norm: titled(which), before: number(given), after: number(p.norm_sizes[place.of][at]) })
    }
    case "norm_final": return made("norm_final", "norm_final", "norm_final", { norm: titled("norm_final"), before: number(p.sizes[p.layers * p.lanes + lane]), after: number(p.norm_sizes.final[lane]) }, { layer: p.layers - 1 })
    case "place": {
      if (p.turned) return made("turned", "position", `blocks.${layer}.q_rot`, { place: token, fast: p.turned[lane].toFixed(0), slow: number(p.turned[p.lanes + lane]) })
      const [near, far] = [0, 1].map((i) => number(p.added[(self.head * p.lanes + lane) * 2 + i]))
      return made("added", "position", `blocks.${layer}.scores`, { head: self.head, near, far }, { head: self.head })
    }
    case "stream": {
      const [first] = guessed(p, place.depth, lane)
      const values = first ? { guess: p.words[first[0]], chance: percent(first[1]) } : {}
      return made(first ? "stream" : "unheard", sum("sum_feedforward"), `blocks.${layer}.${model.ends_normed ? "norm2" : "resid_post"}`, values, { depth: place.depth })
    }
    case "head": {
      const query = lane ?? self.lane, key = target(p, layer, self.head, query)
      const values = { head: self.head, query: p.words[p.ids[query]], key: key < 0 ? fill(self.panel.earlier, { count: p.earlier }) : p.words[p.ids[key]], weight: percent(weight(p, layer, self.head, query, key)) }
      return made("head", "attention", `blocks.${layer}.pattern`, values, { head: self.head, token: p.earlier + query, row: lane >= 0 })
    }
    case "attn_out": return made("attn_out", "attention", `blocks.${layer}.attn_out`, {}, { head: self.head })
    case "middle": return made("middle", sum("sum_attention"), `blocks.${layer}.resid_mid`, {}, { depth: layer + 1 })
    case "neuron": {
      const each = p.neurons.length / p.layers / p.lanes, at = (layer * p.lanes + lane) * each + place.rank
      const values = { neuron: whole(p.neurons[at]), value: number(p.active[at]), rank: place.rank + 1, count: each }
      return made("neuron", "feedforward", `blocks.${layer}.ffn_post`, values, { neuron: p.neurons[at] })
    }
    case "ffn_out": return made("ffn_out", "feedforward", `blocks.${layer}.ffn_out`, {}, p.neurons ? { neuron: p.neurons[(layer * p.lanes + lane) * (p.neurons.length / p.layers / p.lanes)] } : {})
    case "guess": {
      const [first, ...rest] = guessed(p, self.depth, lane)
      if (!first) return made("token", "tokens", "tokens", { id: whole(p.ids[lane]), vocab: whole(model.vocab), place: token })
      const others = rest.map(([id, q]) => `“${p.words[id]}” ${percent(q)}`).join(", ")
      return made("guess", "unembedding", "logits", { guess: p.words[first[0]], chance: percent(first[1]), others, where: self.depth ? fill(self.panel.block, { block: self.depth - 1 }) : self.panel.embedding }, { part: sum("sum_feedforward"), depth: self.depth })
    }
    case "bar": {
      const found = outlookAt(p, self.depth, self.temperature, self.topK), i = found ? found.tokens.indexOf(place.token) : -1
      const ask = self.depth < p.layers ? { part: sum("sum_feedforward"), depth: self.depth } : { temperature: self.temperature, top_k: self.topK }
      return made("bar", "softmax", "logits", { word: p.words[place.token], chance: found ? percent(found.p[i]) : "", logit: found ? number(found.logits[i]) : "", temperature: self.temperature.toFixed(1) }, ask)
    }
    default: {
      const at = lane >= 0 ? lane : self.lane, [before, after] = [layer, layer + 1].map((depth) => number(p.sizes[depth * p.lanes + at]))
      const found = made(layer === self.focus ? "opened" : "block", "block", `blocks.${layer}.${model.ends_normed ? "norm2" : "resid_post"}`, { heads: p.heads, word: p.words[p.ids[at]], before, after })
      return { ...found, shape: `${p.shapes.resid_pre} → ${p.shapes.resid_post}` }
    }
  }
}
