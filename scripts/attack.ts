/**
 * Attacks the real server for half an hour. Payers are a steady load. Each known attack runs beside them, alternating
 * with quiet times; at the end all attacks run together. Payers must get correct answers, about as fast as without an
 * attack. The server must stay the same process with bounded memory. Books and log must be right. Other work on the
 * machine affects all figures, so quiet times are measured before each attack. The time in which the server waited for
 * a processor is subtracted.
 *
 *     node bin/node.mjs scripts/attack.ts [--minutes 30] [--only name,…] [--report file] [--rss MB] [--keep]
 */
import { rmSync, writeFileSync } from 'node:fs'
import { platform, setPriority } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { type Attack, createAttacker } from './attack/attacker.ts'
import { auditBooks, auditLog, eventsOf } from './attack/audit.ts'
import { attacksByBodies } from './attack/by-bodies.ts'
import { attacksByConnections } from './attack/by-connections.ts'
import { attacksByModels } from './attack/by-models.ts'
import { attacksByOperator } from './attack/by-operator.ts'
import { type Gateway, type Ran, startGateway } from './attack/gateway.ts'
import type { PayerData, Window } from './attack/payer.ts'
import { formatTable, judge, type Row } from './attack/report.ts'
import { attackersNice, createSetting } from './attack/setting.ts'

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    only: { type: 'string' },
    report: { type: 'string' },
    /**
     * The most resident memory in MB. An idle server has about 130. The rest is for free memory of the heap, and for
     * attacks within the limits.
     */
    rss: { type: 'string', default: '700' },
    /** Whether to keep the store and the log, and to print where they are. */
    keep: { type: 'boolean', default: false },
  },
})

/** The requests per second of all payers. Each payer stays below the default rate limit of an account. */
const perSecond = 30
const calmWithinMs = 15_000
const warmUpMs = 5_000
/** The quiet share of an attack's time. With equal shares, percentiles are of the same number of requests. */
const quietShare = 0.5
/** The length of a turn, in ms. A shorter attack has only one turn. */
const turnMs = 20_000
/** The number of accounts of each attack, which have the default rate limits. */
const accountsEach = 6

const all = [...attacksByModels, ...attacksByBodies, ...attacksByConnections, ...attacksByOperator]
const wanted = options.only?.split(',')
const unknown = wanted?.filter((name) => name !== 'together' && !all.some((attack) => attack.name === name))
if (unknown?.length) {
  console.error(
    `no attack is named ${unknown.join(', ')}; there are: ${all.map(({ name }) => name).join(', ')}, together`,
  )
  process.exit(2)
}
const setting = await createSetting()
const gateway = await startGateway(setting)
const payer = startPayer()
// On Linux this sets only the priority of this thread and of threads that it starts later.
if (platform() === 'linux') setPriority(attackersNice)
const bounds = { rssMax: Number(options.rss) }
const answers: Window['answers'] = []
const rows: Row[] = []

await pause(warmUpMs)
await takeWindow()
const plan = planOf()
const eachMs = (Number(options.minutes) * 60_000) / plan.length
for (const attack of plan) {
  if (gateway.ended()) break
  rows.push(await tryAttack(attack, eachMs))
  const found = judge(rows.at(-1)!, bounds)
  console.log(
    `${found.length ? (attack.expectedOpen ? 'open' : 'FAIL') : 'ok  '} ${attack.name}: ${found.join('; ') || 'nothing found'}`,
  )
}
const failures = await finish()
const text = `${formatTable(rows, bounds)}\n\n${failures.length ? `FAIL\n${failures.join('\n')}` : 'PASS'}\n`
console.log(`\n${text}`)
if (options.report) writeFileSync(options.report, text)
if (options.keep) console.log(`files are in ${setting.folder}`)
else rmSync(setting.folder, { recursive: true })
process.exit(failures.length ? 1 : 0)

/** Lists the attacks to run. Those without a defence are last, because their effect on memory lasts longer. */
function planOf(): Attack[] {
  const single = all.filter(({ name }) => !wanted || wanted.includes(name))
  const held = single.filter(({ expectedOpen }) => !expectedOpen)
  const isTogether = !wanted || wanted.includes('together')
  const open = single.filter(({ expectedOpen }) => expectedOpen)
  return [...held, ...(isTogether ? [together()] : []), ...open]
}

function together(): Attack {
  const held = all.filter(({ expectedOpen }) => !expectedOpen)
  const parts = held.filter(({ isAlone }) => !isAlone)
  return {
    name: 'together',
    finding: 'all',
    isOverload: true,
    run: async (attacker) => void (await Promise.all(parts.map((attack) => attack.run(attacker)))),
  }
}

/** Alternates quiet turns and attack, so that both include other work on the machine. */
async function tryAttack(attack: Attack, forMs: number): Promise<Row> {
  const turns = Math.max(1, Math.floor(forMs / turnMs))
  const row: Row = {
    attack,
    requests: 0,
    quiet: emptyWindow(),
    beside: emptyWindow(),
    quietRan: noTime(),
    besideRan: noTime(),
    rssPeak: 0,
  }
  for (let turn = 0; turn < turns && !gateway.ended(); turn++) {
    await untilCalm(gateway)
    await takeWindow()
    const before = gateway.ran()
    await pause((forMs / turns) * quietShare)
    add(row.quiet, await takeWindow())
    const between = gateway.ran()
    addTime(row.quietRan, before, between)
    gateway.resetPeak()
    const control = new AbortController()
    const attacker = createAttacker(gateway, setting, accountsOf(attack), control.signal)
    const running = attack.run(attacker).catch((error) => console.error(`${attack.name} itself failed: ${error.stack}`))
    await pause((forMs / turns) * (1 - quietShare))
    addTime(row.besideRan, between, gateway.ran())
    // Requests that began during the attack may end after it.
    const beside = takeWindow()
    control.abort()
    await running
    attacker.close()
    add(row.beside, await beside)
    row.requests += attacker.counted
    row.rssPeak = Math.max(row.rssPeak, gateway.rssPeak())
  }
  return row
}

function accountsOf(attack: Attack): string[] {
  const { attackers } = setting.keys
  const first = (all.indexOf(attack) * accountsEach) % attackers.length
  return attack.name === 'together' ? attackers : attackers.slice(first, first + accountsEach)
}

/** Waits until the after-effects of an attack are over, so that they do not affect the next quiet turn. */
async function untilCalm({ url, ended }: Gateway): Promise<void> {
  const deadline = performance.now() + calmWithinMs
  for (let calm = 0; calm < 5 && performance.now() < deadline && !ended(); ) {
    const started = performance.now()
    await fetch(`${url}/v1/models`, { signal: AbortSignal.timeout(5_000) }).then(
      (response) => response.text(),
      () => {},
    )
    calm = performance.now() - started < 100 ? calm + 1 : 0
    await pause(100)
  }
}

function startPayer(): Worker {
  const keys = setting.keys.payers
  const workerData: PayerData = {
    url: gateway.url,
    honestUrl: setting.honestUrl,
    keys: keys.slice(1),
    probeKey: keys[0]!,
    perSecond,
  }
  return new Worker(new URL('./attack/payer.ts', import.meta.url), { workerData })
}

/** Returns the results of the payers since the last call, after all their requests have ended. */
async function takeWindow(): Promise<Window> {
  const taken = new Promise<Window>((resolve) => payer.once('message', resolve))
  payer.postMessage('take')
  const window = await taken
  for (const answer of window.answers) answers.push(answer)
  return window
}

function emptyWindow(): Window {
  return { times: [], directTimes: [], faults: [], answers: [] }
}

function noTime(): Ran {
  return { seconds: 0, waitedSeconds: 0 }
}

function addTime(to: Ran, from: Ran, until: Ran): void {
  to.seconds += until.seconds - from.seconds
  to.waitedSeconds += until.waitedSeconds - from.waitedSeconds
}

function add(to: Window, more: Window): void {
  to.times.push(...more.times)
  to.directTimes.push(...more.directTimes)
  to.faults.push(...more.faults)
}

/** Stops everything. @returns the reasons why the trial failed, as sentences */
async function finish(): Promise<string[]> {
  await takeWindow()
  await payer.terminate()
  const failures = rows
    .filter(({ attack }) => !attack.expectedOpen)
    .flatMap((row) => judge(row, bounds).map((found) => `${row.attack.name}: ${found}`))
  const early = gateway.ended()
  if (early) failures.push(`the server ended: ${early}`)
  const how = early ?? (await gateway.stop())
  if (how !== 'code 0' && !early) failures.push(`the server ended with ${how}`)
  await setting.close()
  failures.push(...auditBooks(setting, answers), ...(await auditLog(setting)))
  console.log(
    `\n${answers.length} whole answers of payers compared with the ledger; events: ${eventsOf(setting.logPath)}`,
  )
  return failures
}
