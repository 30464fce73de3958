/** The most bytes of a line, its end included (ruling X11). */
export const lineBytesMax = 8_192

/** The most characters of a path that are logged. */
const pathCharactersMax = 200

/** The lengths to which the texts of a line that is too long are cut, tried one after the other. */
const charactersTried = [2_000, 500, 100, 20]

/** The most members or elements that are kept in a line that is too long. */
const membersMax = 50

/**
 * Characters that a terminal obeys instead of printing (escapes, line ends, changes of direction), or does not show. Tabs and
 * line feeds are not among them: JSON escapes them, and `textLine` removes them.
 */
const unprintable = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g

/**
 * A key of any vendor, a token of ours, or a garbled one, up to the next character that keys do not have. Unprintable characters do not end
 * it. After a letter, `sk-` may be the end of a word (`task-`), and counts only if the text is long.
 */
const keys =
  /sk-tri-[^ \n\t/"'`,;()<>…]*|tri-(?:op|at|rt)-[^ \n\t/"'`,;()<>…]{7,}|(?<![A-Za-z0-9])sk-[^ \n\t/"'`,;()<>…]{8,}|sk-[^ \n\t/"'`,;()<>…]{32,}|[0-9A-Za-z]{46,}/g

/** The beginning of a key or a token that may be shown, by which people tell them apart. */
const visible = /^(?:sk-tri-[0-9A-Za-z]{8}|tri-(?:op|at|rt)-[0-9A-Za-z]{6})[.:]?$/

/** Parts of a line of names and numbers that need a closer look. Separate searches are the fastest. */
const suspicious = [
  /[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/,
  /\\[bfru]/,
  /sk-(?!tri-[0-9A-Za-z]{8}")/,
  /tri-(?:op|at|rt)-(?![0-9A-Za-z]{6}")/,
]

/** A path too short for a key without `sk-`, as nearly all are. It needs no closer look. */
const plainPath = /^[/\w-]{1,45}$/

/** Returns a text that may be logged: printable, and without a key (ruling U5). */
export function loggable(text: string): string {
  return text
    .replace(keys, (key) => (visible.test(key) ? key : `${key.startsWith('sk-') ? 'sk-' : ''}…`))
    .replace(unprintable, '?')
}

/** Returns a path that may be logged: ASCII, and of limited length. */
export function loggablePath(path: string): string {
  if (plainPath.test(path) && !path.includes('sk-')) return path
  return loggable(path.slice(0, pathCharactersMax)).replace(/[^\x20-\x7e…]/g, '?')
}

/** Returns an event as a line of JSON. Its texts may come from anyone. */
export function jsonLine(fields: Record<string, unknown>): string {
  return cleanLine(JSON.stringify(fields, replaceBigint))
}

/**
 * Returns a request as a line of JSON. Its fields are names, numbers and a path that is already loggable, so most lines only
 * need a search. A line with something suspicious is cleaned like any other line.
 */
export function jsonLineOfNames(fields: Record<string, unknown>): string {
  const line = JSON.stringify(fields)
  return fits(line) && !suspicious.some((pattern) => pattern.test(line)) ? line : cleanLine(line)
}

function cleanLine(line: string): string {
  const plain = JSON.parse(line) as Record<string, unknown>
  const cleaned = JSON.stringify(clean(plain, Number.POSITIVE_INFINITY))
  if (fits(cleaned)) return cleaned
  for (const charactersMax of charactersTried) {
    const short = JSON.stringify(clean(plain, charactersMax))
    if (fits(short)) return short
  }
  const { time, level, event, id } = plain
  return JSON.stringify(clean({ time, level, event, id, cut: true }, 100))
}

/** Returns a line for people. Every line of the log in that format comes from here. */
export function textLine(text: string): string {
  const lines = loggable(text).replaceAll('\t', ' ').split('\n')
  const line = lines.map((one) => one.trim()).join(' | ')
  if (fits(line)) return line
  // The cut must not split a character, and leaves room for the mark.
  return `${Buffer.from(line)
    .toString('utf8', 0, lineBytesMax - 8)
    .replace(/\ufffd$/, '')}…`
}

export function replaceBigint(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value
}

function fits(line: string): boolean {
  return line.length * 3 < lineBytesMax || Buffer.byteLength(line) < lineBytesMax
}

/** Returns the same data with texts that may be logged, each cut to `charactersMax`. */
function clean(value: unknown, charactersMax: number): unknown {
  if (typeof value === 'string') return shorten(loggable(value), charactersMax)
  if (typeof value !== 'object' || value === null) return value
  const isShort = Number.isFinite(charactersMax)
  if (Array.isArray(value))
    return (isShort ? value.slice(0, membersMax) : value).map((one) => clean(one, charactersMax))
  const members = Object.entries(value)
  const kept = isShort ? members.slice(0, membersMax) : members
  return Object.fromEntries(
    kept.map(([name, one]) => [shorten(loggable(name), charactersMax), clean(one, charactersMax)]),
  )
}

function shorten(text: string, charactersMax: number): string {
  return text.length <= charactersMax ? text : `${text.slice(0, charactersMax)}…`
}
