import { closeSync, openSync, readFileSync } from 'node:fs'
import { devNull } from 'node:os'
import { every } from './timers.ts'

const everyMs = 1_000

/** File descriptors besides those of connections: the store's files, the log, Node's own. */
const ownMax = 100

/**
 * The descriptors of one request: the client's connection, the upstream's connection, and perhaps an idle connection
 * (Y14).
 */
const perConnection = 3

/** The sources to watch; a test passes its own. */
type DescriptorSources = {
  /** Opens something and closes it again. @throws with the error code of the system */
  tryOpen: () => void
  every: typeof every
}

/**
 * Logs when the process has no free file descriptor, and when descriptors are free again (faults F-P11). Without a free
 * descriptor, the system closes new connections unnoticed. So this function tries to open a file once a second.
 * @param clockMs monotonic
 * @returns a function that stops it
 */
export function watchDescriptors(
  tell: (level: 'info' | 'error', event: string, fields: Record<string, unknown>) => void,
  clockMs: () => number,
  sources: DescriptorSources = ofThisProcess,
): () => void {
  let sinceMs: number | undefined
  let failed = 0
  return sources.every(everyMs, () => {
    try {
      sources.tryOpen()
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'EMFILE' && code !== 'ENFILE') return
      failed++
      if (sinceMs === undefined) tell('error', 'descriptors_exhausted', { code, limit: readDescriptorLimit() })
      sinceMs ??= clockMs()
      return
    }
    if (sinceMs === undefined) return
    tell('info', 'descriptors_back', { failed, for_ms: Math.round(clockMs() - sinceMs) })
    sinceMs = undefined
    failed = 0
  })
}

/** Returns the limit, and how many descriptors the connections need; undefined if the limit suffices or is unknown. */
export function missingDescriptors(
  connectionsMax: number,
  limit = readDescriptorLimit(),
): { limit: number; needed: number } | undefined {
  const needed = connectionsMax * perConnection + ownMax
  return limit !== undefined && limit < needed ? { limit, needed } : undefined
}

/**
 * Reads the soft limit of open descriptors. At its start, Node raises this limit to the hard limit.
 * @returns undefined if there is no limit, or if it is unknown
 */
function readDescriptorLimit(): number | undefined {
  limitAtStart ??= readLimit()
  return limitAtStart.limit
}

let limitAtStart: { limit: number | undefined } | undefined

function readLimit(): { limit: number | undefined } {
  try {
    const soft = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    return { limit: soft === undefined ? undefined : Number(soft) }
  } catch {
    return { limit: undefined }
  }
}

const ofThisProcess: DescriptorSources = {
  tryOpen: () => closeSync(openSync(devNull, 'r')),
  every,
}
