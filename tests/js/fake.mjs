// A page for a component that is tested without a browser: what an element has not, it takes and forgets.

/** @returns {any} an element; `classes` are those that were toggled on, `heard` its listeners by event */
function element() {
  const held = {
    style: { setProperty() {} }, dataset: {}, classes: new Set(), heard: {}, isConnected: true, parentElement: { toggleAttribute() {} }, getContext: () => ({}),
    classList: { add() {}, toggle: (name, on) => held.classes[on ? "add" : "delete"](name) },
    setAttribute: (name, value) => { held[name] = value },
    addEventListener: (name, listener) => { held.heard[name] = listener },
  }
  return new Proxy(held, { get: (_, name) => (name in held ? held[name] : (first) => first ?? element()) })
}

/**
 * Puts a component on a page whose server rests. `answer` is the server's; `made` are the elements, `sent` what the server was
 * told, `heard` the window's listeners by event.
 * @param {(message: any) => void} draw
 */
export function onPage(draw) {
  const made = [], sent = [], heard = {}, place = element()
  Object.assign(globalThis, {
    location: { pathname: "/", href: "http://here/" }, Element: class {}, ResizeObserver: element, MutationObserver: element,
    requestAnimationFrame: () => 1, getComputedStyle: () => ({ getPropertyValue: () => "" }),
    addEventListener: (name, listener) => { heard[name] = listener },
    document: {
      createElement: () => { made.push(element()); return made.at(-1) },
      querySelector: (what) => (what.startsWith("a[") ? globalThis.location : { getAttribute: () => "notRunning" }),
    },
  })
  const palette = new Proxy({}, { get: () => ["", ""] })
  const answer = (data) => draw({ data: { palette, ...data }, parentElement: place, key: "k", setStateValue() {}, setTriggerValue: (_, value) => sent.push(value) })
  return { made, sent, heard, answer }
}
