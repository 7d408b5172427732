// @ts-check
// Texts that a browser keeps by itself, each under a name. One that keeps nothing (a private window, a full disk) has them until
// the page is left.

/** @param {() => Storage} storage asked for at each use: where it is forbidden, that fails already */
function shelf(storage) {
  /** @type {Map<string, string>} */
  const held = new Map()
  return {
    /** @param {string} name */
    get(name) {
      try {
        return held.get(name) ?? storage().getItem(name) ?? ""
      } catch {
        return held.get(name) ?? ""
      }
    },
    /** @param {string} name @param {string} text */
    put(name, text) {
      try {
        storage().setItem(name, text)
        held.delete(name) // another tab may change it, or forget it
      } catch {
        held.set(name, text)
      }
    },
    /** @param {string} name */
    drop(name) {
      held.delete(name)
      try {
        storage().removeItem(name)
      } catch {
        // nothing was kept
      }
    },
  }
}

/** Of all tabs, for years; and of this tab. */
export const browser = shelf(() => localStorage), tab = shelf(() => sessionStorage)
