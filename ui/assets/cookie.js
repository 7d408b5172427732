// @ts-check
// Gives this browser its key, unless it has one already: then the server hears which. See ui/state.py.

/** @param {import("./shared/mount.js").Message} message data: { name of the cookie, value: the server's key } */
export default function ({ data, setTriggerValue }) {
  if (!data) return
  const found = document.cookie.split("; ").find((part) => part.startsWith(data.name + "="))?.slice(data.name.length + 1)
  if (found && found !== data.value && /^[A-Za-z0-9_-]{43}$/.test(found)) {
    setTriggerValue("found", found)
  } else if (!found) {
    const path = new URL("./", document.baseURI).pathname
    const secure = location.protocol === "https:" ? "; Secure" : ""
    document.cookie = `${data.name}=${data.value}; Path=${path}; Max-Age=31536000; SameSite=Lax${secure}`
  }
}
