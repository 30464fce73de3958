import { createReadStream, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { lineBytesMax } from '../../src/log/loggable.ts'
import { openStore } from '../../src/store/sqlite/store.ts'
import { runProgram } from './gateway.ts'
import type { Setting } from './setting.ts'
import type { Told } from './wires.ts'

/* Checks of the books and the log after the server has ended. */

/** Checks that each complete answer of a payer is in the ledger once, with its figures. @returns findings in words */
export function auditBooks(setting: Setting, answers: readonly (readonly [id: string, told: Told])[]): string[] {
  const findings: string[] = []
  const store = openStore(setting.storePath, { create: false })
  const booked = new Map<string, { told: Told; count: number }>()
  for (const { bill } of store.atOnce.listEntries({ first: 'oldest', limit: Number.MAX_SAFE_INTEGER })) {
    if (!bill) continue
    const { usage } = bill
    const told = { input: usage.inputTokens, output: usage.outputTokens }
    booked.set(bill.requestId, { told, count: (booked.get(bill.requestId)?.count ?? 0) + 1 })
  }
  store.close()
  const say = (finding: string) => void (findings.length < 20 && findings.push(finding))
  for (const [id, { count }] of booked) if (count > 1) say(`${id} is booked ${count} times`)
  for (const [id, told] of answers) {
    const entry = booked.get(id)
    if (!entry) say(`${id} was answered and is not booked`)
    else if (entry.told.input !== told.input || entry.told.output !== told.output)
      say(`${id} had ${JSON.stringify(told)} in its answer and is booked as ${JSON.stringify(entry.told)}`)
  }
  const ids = new Set(answers.map(([id]) => id))
  if (ids.size < answers.length) say(`${answers.length - ids.size} ids were given twice`)
  const verified = runProgram(setting, ['--store', setting.storePath, 'ledger', 'verify', '--log', setting.logPath])
  if (!verified.isOk) say(`ledger verify: ${verified.text.slice(0, 1_000)}`)
  return findings
}

/** Texts of the trial that must not be in a log, beside keys. */
const secrets = ['upstream-secret-of-this-trial', 'nonce-', 'Repeat:', 'canary']
/** Control characters, raw or as JSON escapes. */
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]|\\u00(?:[01][0-9a-f]|[7][f]|[89][0-9a-f])|\\[bf]/i

/** Searches for whole keys, terminal controls, texts of requests, long lines and bugs. @returns findings in words */
export async function auditLog({ logPath, keys }: Setting): Promise<string[]> {
  const counted = new Map<string, { count: number; line: string }>()
  const found = (what: string, line: string) => {
    const known = counted.get(what)
    if (known) known.count++
    else counted.set(what, { count: 1, line })
  }
  // The first characters of a key may be logged, but no more of it.
  const all = Object.values(keys).flat()
  const parts = new Set(all.map((key) => key.slice(0, 24)))
  for await (const line of createInterface({ input: createReadStream(logPath), crlfDelay: Number.POSITIVE_INFINITY })) {
    if (/sk-tri-[0-9A-Za-z]{9}/.test(line)) found('a key', line)
    for (const [key] of line.matchAll(/sk-tri-[0-9A-Za-z]{17}/g)) if (parts.has(key)) found('a payer’s key', line)
    if (controls.test(line)) found('a control character', line)
    for (const secret of secrets) if (line.includes(secret)) found(secret, line)
    if (Buffer.byteLength(line) > lineBytesMax) found('a line that is too long', line)
    const { event } = parse(line)
    if (event === 'bug' || event === 'uncaught' || event?.startsWith('ledger_')) found(`event ${event}`, line)
    if (event === undefined && !line.startsWith('{')) found('a line that is no JSON', line)
  }
  return [...counted].map(
    ([what, { count, line }]) => `the log has ${count} × ${what}: ${JSON.stringify(line.slice(0, 400))}`,
  )
}

/** Names of events, with how often each was logged. */
export function eventsOf(logPath: string): string {
  const events = [...readFileSync(logPath, 'utf8').matchAll(/"event":"(\w+)"/g)].map(([, name]) => name!)
  return [...Map.groupBy(events, (name) => name)].map(([name, all]) => `${name} ${all.length}`).join(', ')
}

function parse(line: string): { event?: string } {
  try {
    return JSON.parse(line)
  } catch {
    return {}
  }
}
