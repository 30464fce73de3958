import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Books } from '../../src/accounts/books.ts'
import { createCalendar, utc } from '../../src/accounts/calendar.ts'
import { bucketOf, encodeCounts } from '../../src/accounts/usage/histogram.ts'
import type { TrafficCell } from '../../src/accounts/usage/traffic.ts'
import { usageOperations } from '../../src/operations/usage.ts'

/** A question that people ask, and the longest time for its answer, in ms. */
export type Asking = { name: string; query: Record<string, string>; mostMs: number }

export const askings: readonly Asking[] = [
  {
    name: '24 h by hour × model, percentiles',
    query: { last: '24h', bucket: 'hour', by: 'model', measures: 'credits,requests,first_byte_ms,total_ms' },
    mostMs: 200,
  },
  {
    name: '7 d by hour × key',
    query: { last: '7d', bucket: 'hour', by: 'key', measures: 'credits,requests' },
    mostMs: 200,
  },
  {
    name: '30 d by day × key in +05:30',
    query: { last: '30d', bucket: 'day', by: 'key', tz: 'Asia/Kolkata', measures: 'credits' },
    mostMs: 200,
  },
  {
    name: '13 months by day',
    query: { last: '395d', bucket: 'day', measures: 'credits,requests,errors' },
    mostMs: 200,
  },
  {
    name: '13 months by month × model',
    query: { last: '395d', bucket: 'month', by: 'model', measures: 'credits,input_tokens,cache_share' },
    mostMs: 200,
  },
  {
    name: '13 months, top 10 keys',
    query: { last: '395d', bucket: 'all', by: 'key', top: '10', measures: 'credits' },
    mostMs: 500,
  },
  {
    name: '13 months by day, top 10 keys',
    query: { last: '395d', bucket: 'day', by: 'key', top: '10', measures: 'credits' },
    mostMs: 500,
  },
  {
    name: '13 months, p95 × model',
    query: { last: '395d', bucket: 'all', by: 'model', measures: 'total_ms' },
    mostMs: 500,
  },
  {
    name: '13 months by day, p95 × model',
    query: { last: '395d', bucket: 'day', by: 'model', measures: 'total_ms' },
    mostMs: 500,
  },
]

const [longMs, ofSession, models] = [395 * 86_400_000, 5, 20]

/** @property person the id of the person to whom the key's entries belong */
export type Owner = { accountId: string; keyId: string; person?: string }

/**
 * Makes entries like those of agents. A session has several entries in a quarter of an hour, of one key with one model.
 * A few keys have most of the entries. All engines get the same entries.
 */
export function sessions(count: number, keys: readonly Owner[], endMs: number, spanMs = longMs) {
  const total = Math.ceil(count / ofSession)
  const startMs = endMs - spanMs
  /** By account, the number of its last entry. */
  const seqs = new Map<string, number>()
  return { entries, traffic, seqs }

  function sessionOf(n: number) {
    // Pseudo-random, but the same in each run.
    const mixed = Math.imul(n + 1, 2_654_435_761) >>> 0
    const key = Math.floor(((mixed & 0xffff) / 0x10000) ** 2 * keys.length)
    const { accountId, keyId, person } = keys[key]!
    const model = `m-${(key + ((mixed >>> 16) & 3)) % models}`
    const outcome = mixed % 97 === 0 ? 'upstream_cut' : mixed % 31 === 0 ? 'client_abort' : 'ok'
    return {
      accountId,
      keyId,
      person,
      model,
      upstream: `u-${mixed % 2}`,
      outcome,
      atMs: startMs + Math.floor((n * spanMs) / total),
      mixed,
    }
  }

  function* entries() {
    for (let n = 0; n < count; n++) {
      const session = sessionOf(Math.floor(n / ofSession))
      const seq = (seqs.get(session.accountId) ?? 0) + 1
      seqs.set(session.accountId, seq)
      yield { ...session, seq, atMs: session.atMs + (n % ofSession) }
    }
  }

  function* traffic(size: number): Generator<TrafficCell[]> {
    for (let n = 0; n < total; n += size)
      yield Array.from({ length: Math.min(size, total - n) }, (_, at) => {
        const { accountId, keyId, model, upstream, outcome, atMs, mixed } = sessionOf(n + at)
        const place = {
          ...{ quarter: Math.floor(atMs / 900_000), account: accountId, key: keyId, model, wires: 'chat-to-messages' },
          ...{ upstream, outcome, code: '' },
        }
        const took = (ms: number) => {
          const counts: number[] = []
          for (let one = 0; one < ofSession; one++) {
            const bucket = bucketOf(ms * (1 + ((mixed >>> one) & 7)))
            for (let empty = counts.length; empty <= bucket; empty++) counts.push(0)
            counts[bucket]!++
          }
          return encodeCounts(counts)
        }
        return { place, requests: 0, moved: 0, first_byte: took(300), total: took(4_000) }
      })
  }
}

/** Creates 250 accounts with four keys each, or other numbers of them. */
export async function makeOwners(
  books: Pick<Books, 'createAccount' | 'createKey'>,
  accounts = 250,
  keys = 4,
): Promise<void> {
  for (let n = 0; n < accounts; n++) {
    const { id } = await books.createAccount(`account ${n}`)
    for (let key = 0; key < keys; key++) await books.createKey(id)
  }
}

/** Returns the owners in an order that is the same in each run. */
export async function readOwners(books: Pick<Books, 'listKeys'>): Promise<Owner[]> {
  const keys = (await books.listKeys()).map(({ id, accountId }) => ({ accountId, keyId: id }))
  return keys.sort((a, b) => (a.keyId < b.keyId ? -1 : 1))
}

/** Keeps the state of a run in a file, so that it can be continued. @property counted the written cells of traffic */
export function keepProgress(path: string): { readonly endMs: number; counted: number } {
  const kept = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : { endMs: Date.now(), counted: 0 }
  const write = () => writeFileSync(path, JSON.stringify(kept))
  write()
  return {
    endMs: kept.endMs,
    get counted() {
      return kept.counted
    },
    set counted(value) {
      kept.counted = value
      write()
    },
  }
}

/** Measures the time of each step, and the processor time of this process in it. Prints progress twice a minute. */
export function startSteps(engine: string, entries: number) {
  let [startedMs, toldMs, before] = [performance.now(), performance.now(), process.cpuUsage()]
  const done: string[] = []
  return { tell, end, endCheck, said: () => done.join(', ') }

  function tell(count: number): void {
    if (performance.now() - toldMs < 30_000) return
    toldMs = performance.now()
    console.log(`${engine}, ${entries} entries: ${[...done, `at ${count} after ${took(0)}`].join(', ')}`)
  }

  /** @param count the number of parts, for the time of each */
  function end(what: string, count = 0): void {
    done.push(`${what} in ${took(count)}`)
    ;[startedMs, before] = [performance.now(), process.cpuUsage()]
  }

  function endCheck(findings: readonly string[]): void {
    end(`${findings.length} differences between figures and entries found`)
    for (const finding of findings.slice(0, 10)) console.log(finding)
    if (findings.length > 0) process.exitCode = 1
  }

  function took(count: number): string {
    const { user, system } = process.cpuUsage(before)
    const [wholeMs, ownMs] = [performance.now() - startedMs, (user + system) / 1_000]
    const each = (ms: number) => ((ms * 1_000) / count).toFixed(1)
    const ofEach = count > 0 ? `: ${each(wholeMs)} and ${each(ownMs)} µs an entry` : ''
    return `${Math.round(wholeMs / 1_000)} s (at work ${Math.round(ownMs / 1_000)} s${ofEach})`
  }
}

export async function ask(books: Books, { query }: Asking): Promise<void> {
  const [show] = usageOperations
  const context = {
    books,
    running: { writeTraffic: async () => {} } as never,
    requestId: '',
    openBooks: () => Promise.reject(),
    who: undefined,
    nowMs: Date.now(),
    version: '',
    calendar: createCalendar(utc),
  }
  await show!.run(context, show!.input.parse(query))
}

/** The time of an answer, and the processor time of this process in it, in ms. */
export type Took = { wholeMs: number; ownMs: number }

export async function measure(ask: () => Promise<void>, times: number): Promise<Took[]> {
  const found: Took[] = []
  for (let n = 0; n < times; n++) {
    const [beganMs, before] = [performance.now(), process.cpuUsage()]
    await ask()
    const { user, system } = process.cpuUsage(before)
    found.push({ wholeMs: performance.now() - beganMs, ownMs: (user + system) / 1_000 })
  }
  return found
}

/** Asks each question several times on a new connection. Prints the first time and the shortest later time. */
export async function printTimes(
  engine: string,
  askings: readonly Asking[],
  measureOf: (asking: Asking, times: number) => Promise<Took[]>,
): Promise<void> {
  console.log(`${engine}: ms, first / next, at work first / next, may take`)
  for (const asking of askings) {
    const [first, ...next] = await measureOf(asking, 4)
    const [whole, own] = [Math.min(...next.map(({ wholeMs }) => wholeMs)), Math.min(...next.map(({ ownMs }) => ownMs))]
    const isLate = whole > asking.mostMs
    const figures = [first!.wholeMs, whole, first!.ownMs, own].map((ms) => `${Math.round(ms)}`.padStart(6)).join('')
    console.log(`  ${asking.name.padEnd(40)}${figures}${`${asking.mostMs}`.padStart(6)}${isLate ? ' TOO LATE' : ''}`)
    if (isLate) process.exitCode = 1
  }
}
