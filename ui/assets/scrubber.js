// The training-time scrubber: a slider over a run's snapshots, with its training loss drawn behind. See ui/players/scrubber.py.
const instances = new WeakMap()
const ANSWER_MS = 1500 // a picture that has not come by then is not waited for any longer

function create(parentElement) {
  const root = document.createElement("div")
  root.className = "gf-scrubber"
  root.innerHTML = `
    <button type="button" class="gf-scrub-play"></button>
    <div class="gf-scrub-track"><svg preserveAspectRatio="none" viewBox="0 0 1000 100" aria-hidden="true"><polyline class="gf-scrub-line"/><polyline class="gf-scrub-done"/></svg>
      <input type="range" min="0" step="1"></div>
    <output class="gf-scrub-where"></output>`
  parentElement.appendChild(root)
  const find = (name) => root.querySelector(name)
  const self = {
    root, button: find("button"), slider: find("input"), line: find(".gf-scrub-line"), done: find(".gf-scrub-done"), where: find("output"),
    steps: [], losses: [], index: 0, asked: null, waitingSince: 0, playing: false, send: null, timer: 0,
  }
  self.slider.setAttribute("aria-label", "Training time: the step whose model is shown")
  self.slider.oninput = () => { stop(self); go(self, Number(self.slider.value)) }
  self.button.onclick = () => (self.playing ? stop(self) : play(self))
  stop(self)
  return self
}

function play(self) {
  self.playing = true
  self.button.textContent = "❚❚"
  self.button.setAttribute("aria-label", "Pause")
  if (self.index >= self.steps.length - 1) go(self, 0)
  else advance(self)
}

function stop(self) {
  self.playing = false
  self.button.textContent = "▶"
  self.button.setAttribute("aria-label", "Play through the training")
}

function advance(self) {
  if (!self.playing) return
  if (self.index >= self.steps.length - 1) return stop(self)
  go(self, self.index + 1)
}

function go(self, index) {
  self.index = index
  draw(self)
  ask(self)
}

function ask(self) {
  // One question at a time: a drag faster than the pictures would otherwise interrupt each of them.
  const step = wanted(self)
  if (self.waitingSince && performance.now() - self.waitingSince < ANSWER_MS) return
  if (step === self.asked) return
  self.asked = step
  self.waitingSince = performance.now()
  clearTimeout(self.timer)
  self.timer = setTimeout(() => { self.waitingSince = 0; ask(self) }, ANSWER_MS)
  self.send("step", step)
}

function wanted(self) {
  return self.index === self.steps.length - 1 ? -1 : self.steps[self.index] // -1: follow the newest
}

function answered(self, shown) {
  if (!self.waitingSince || shown !== self.asked) return
  self.waitingSince = 0
  clearTimeout(self.timer)
  if (wanted(self) !== self.asked) ask(self)
  else if (self.playing) setTimeout(() => advance(self), 120)
}

function draw(self) {
  const { steps, losses, index, slider } = self
  const last = steps.length - 1
  slider.max = String(Math.max(last, 0))
  slider.value = String(index)
  slider.disabled = last < 1
  self.button.disabled = last < 1
  const said = `step ${steps[index].toLocaleString("en")}${index === last ? " (newest)" : ""}` + (losses[index] === null ? "" : ` · training loss ${losses[index].toFixed(2)}`)
  self.where.textContent = said
  slider.setAttribute("aria-valuetext", said)
  const known = losses.filter((v) => v !== null)
  const low = Math.min(...known), span = Math.max(Math.max(...known) - low, 1e-9)
  const points = losses.map((v, i) => (v === null ? null : [(1000 * i) / Math.max(last, 1), 92 - (84 * (v - low)) / span])).filter(Boolean)
  const text = (some) => some.map((p) => p.map((n) => n.toFixed(1)).join(",")).join(" ")
  self.line.setAttribute("points", text(points))
  self.done.setAttribute("points", text(points.filter(([x]) => x <= (1000 * index) / Math.max(last, 1) + 0.01)))
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component
  if (!data) return
  let self = instances.get(parentElement)
  const fresh = !self
  if (fresh) instances.set(parentElement, (self = create(parentElement)))
  self.send = setTriggerValue // an event: the server keeps the step (ui/step.py), and asking twice for the same one counts twice
  const following = !fresh && self.run === data.run && self.index === self.steps.length - 1
  const kept = self.steps[self.index]
  const moving = !fresh && self.run === data.run && self.waitingSince > 0
  self.run = data.run
  self.steps = data.steps
  self.losses = data.losses
  const place = (step) => {
    const found = data.steps.findIndex((s) => s >= step)
    return found < 0 ? data.steps.length - 1 : found
  }
  // While the hand is on it, the slider stays where the hand is; else it shows what the server shows.
  if (moving) self.index = following ? data.steps.length - 1 : place(kept)
  else { self.index = data.shown < 0 ? data.steps.length - 1 : place(data.shown); self.asked = data.shown }
  answered(self, data.shown)
  draw(self)
  return () => {
    clearTimeout(self.timer)
    self.playing = false
    self.root.remove()
    instances.delete(parentElement)
  }
}
