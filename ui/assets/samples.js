// The samples of one run behind a slider. All of them are here, so moving it asks nothing of the server. See ui/samples.py.
const instances = new WeakMap()

function create(parentElement) {
  const root = document.createElement("div")
  root.className = "gf-samples"
  const bar = document.createElement("div")
  bar.className = "gf-samples-bar"
  const slider = document.createElement("input")
  slider.type = "range"
  slider.min = "0"
  slider.step = "1"
  slider.setAttribute("aria-label", "Go back through the samples")
  const where = document.createElement("output")
  const text = document.createElement("pre")
  text.tabIndex = 0 // so that a keyboard can scroll it
  const prompt = document.createElement("b")
  const own = document.createElement("span")
  text.append(prompt, own)
  bar.append(where, slider)
  root.append(bar, text)
  parentElement.appendChild(root)
  const self = { root, slider, where, text, prompt, own, samples: [], run: null, kept: null }
  slider.oninput = () => {
    const index = Number(slider.value)
    // At the right end it follows the newest; anywhere else it stays where the reader put it.
    self.kept = index === self.samples.length - 1 ? null : self.samples[index].step
    show(self)
  }
  return self
}

function show(self) {
  const { samples, slider, kept } = self
  const last = samples.length - 1
  let index = last
  if (kept !== null) {
    index = samples.findIndex((s) => s.step >= kept)
    if (index < 0) index = last
  }
  slider.max = String(Math.max(last, 0))
  slider.value = String(Math.max(index, 0))
  slider.disabled = last < 1
  const sample = samples[index]
  const said = sample ? `The model's own text after step ${sample.step.toLocaleString("en")}${index === last ? " (newest)" : ""}` : "The model's own text: none yet"
  if (self.where.textContent !== said) self.where.textContent = said
  slider.setAttribute("aria-valuetext", said)
  const [prompt, own] = sample ? [sample.prompt, sample.text] : ["", ""]
  if (self.prompt.textContent !== prompt) self.prompt.textContent = prompt
  if (self.own.textContent !== own) self.own.textContent = own
}

export default function (component) {
  const { data, parentElement } = component
  if (!data) return
  let self = instances.get(parentElement)
  if (!self) instances.set(parentElement, (self = create(parentElement)))
  if (data.run !== self.run) self.kept = null
  self.run = data.run
  self.samples = data.samples
  self.text.setAttribute("aria-label", data.alt)
  self.root.style.height = `${data.height}px`
  show(self)
  return () => {
    self.root.remove()
    instances.delete(parentElement)
  }
}
