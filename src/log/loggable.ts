/** The most bytes of a line, including its line end (ruling X11). */
export const lineBytesMax = 8_192

/** The most characters of a path that are logged. */
const pathCharactersMax = 200

/** The lengths to which each text of a line is cut if the line is too long. They are tried in this order. */
const charactersTried = [2_000, 500, 100, 20]

/** A line that is too long keeps at most this many members of each object, and elements of each array. */
const membersMax = 50

/**
 * Characters that control a terminal (escapes, line ends, changes of direction), and characters that it does not show.
 * Tabs and line feeds are missing here, because JSON escapes them and `textLine` replaces them.
 */
const unprintable = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g

/**
 * Matches a key of any vendor or a token of ours, even if it is damaged. A match ends at the next character that cannot
 * be part of a key; unprintable characters do not end it. After a letter, `sk-` may be the end of a word (`task-`), so
 * a match then requires at least 32 more characters.
 */
const keys =
  /sk-tri-[^ \n\t/"'`,;()<>…]*|tri-(?:op|at|rt)-[^ \n\t/"'`,;()<>…]{7,}|(?<![A-Za-z0-9])sk-[^ \n\t/"'`,;()<>…]{8,}|sk-[^ \n\t/"'`,;()<>…]{32,}|[0-9A-Za-z]{46,}/g

/** The beginning of a key or a token of ours. It may be logged, so that people can distinguish keys. */
const visible = /^(?:sk-tri-[0-9A-Za-z]{8}|tri-(?:op|at|rt)-[0-9A-Za-z]{6})[.:]?$/

/**
 * A line of `jsonLineOfNames` with one of these patterns must be cleaned. One search for each pattern is faster than
 * one search for all.
 */
const suspicious = [
  /[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/,
  /\\[bfru]/,
  /sk-(?!tri-[0-9A-Za-z]{8}")/,
  /tri-(?:op|at|rt)-(?![0-9A-Za-z]{6}")/,
]

/**
 * Matches a path that is too short to contain a key. Keys that begin with `sk-` may be shorter, and are searched for
 * separately.
 */
const plainPath = /^[/\w-]{1,45}$/

/** Returns the text as it may be logged: printable, and without keys (ruling U5). */
export function loggable(text: string): string {
  return text
    .replace(keys, (key) => (visible.test(key) ? key : `${key.startsWith('sk-') ? 'sk-' : ''}…`))
    .replace(unprintable, '?')
}

/** Returns the path as it may be logged: ASCII, of limited length, and without keys. */
export function loggablePath(path: string): string {
  if (plainPath.test(path) && !path.includes('sk-')) return path
  return loggable(path.slice(0, pathCharactersMax)).replace(/[^\x20-\x7e…]/g, '?')
}

/** Returns an event as a line of JSON. Its texts may come from clients, so they are always cleaned. */
export function jsonLine(fields: Record<string, unknown>): string {
  return cleanLine(JSON.stringify(fields, replaceBigint))
}

/**
 * Returns the log line of a request as JSON. Its fields are names, numbers and a cleaned path. So the line is cleaned
 * only if it is too long or has a suspicious pattern.
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

/** Returns a line for people, cleaned and cut to the limit. Every line of the log that is for people is made here. */
export function textLine(text: string): string {
  const lines = loggable(text).replaceAll('\t', ' ').split('\n')
  const line = lines.map((one) => one.trim()).join(' | ')
  if (fits(line)) return line
  // If the cut splits a character, the rest of that character is removed. Eight bytes are left for the mark `…`.
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

/** Returns the data with all texts made loggable and cut to `charactersMax`. A finite limit also cuts lists. */
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
