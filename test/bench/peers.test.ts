import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { mark, marksOf } from '../../bench/answers.ts'
import type { Figures } from '../../bench/measure.ts'
import { rowNames } from '../../bench/peers/measure.ts'
import { formatRun, putIntoPage, type Run, type ServerTold } from '../../bench/peers/page.ts'
import type { Setting } from '../../bench/peers/peer.ts'
import { peers } from '../../bench/peers/peers.ts'
import { judge } from '../../bench/peers/probe.ts'
import { tellLog } from '../../bench/peers/start.ts'
import { askOf } from '../../bench/request.ts'
import { workloads } from '../../bench/workloads.ts'
import { testFolder } from '../support/folder.ts'

const page = join(import.meta.dirname, '../../docs/benchmarks.md')

test('the rows that peers run are rows of the benchmark', () => {
  const known = workloads.map(({ name }) => name)
  assert.deepEqual(
    rowNames.filter((name) => !known.includes(name)),
    [],
  )
})

for (const peer of peers)
  test(`${peer.name} is pinned, starts from its installation, and knows only its port and its upstream`, () => {
    const { setting, written } = settingOf(peer.name)
    const { command, env = {} } = peer.start(setting)
    const said = [...command, ...Object.values(env), ...written.values()].join('\n')
    assert.match(peer.source.version, /^v?\d+\.\d+\.\d+$/)
    assert.ok(said.includes(setting.home))
    assert.ok(said.includes(String(setting.port)))
    const addresses = new Set(said.match(/\d+\.\d+\.\d+\.\d+(?::\d+)?|https?:\/\/[^\s"'/]+/g))
    const allowed = new Set(['127.0.0.1', 'http://127.0.0.1:4000', '127.0.0.1:4000'])
    assert.deepEqual([...addresses.difference(allowed)], [])
  })

test('a peer is asked for its own model with its own headers, at the path of the wire', () => {
  const row = workloads.find(({ name }) => name === '1 KB, messages → chat, 32 conn.')!
  const peer = { modelOf: () => 'bench', headers: { authorization: 'Bearer one' }, streamsMax: 8 }
  const { path, headers, body } = askOf(row, { name: 'some', port: 4001, pid: 1, key: 'one', peer })
  assert.equal(path, '/v1/messages')
  assert.equal(headers['authorization'], 'Bearer one')
  assert.equal(JSON.parse(body.toString()).model, 'bench')
})

test('an answer is valid if it has each expected word; otherwise the peer reports the reason in its own words', () => {
  const row = workloads.find(({ name }) => name === rowNames[0])!
  const words = `{"choices":" ${` word${mark}`.repeat(marksOf('short', 'chat'))}"}`
  const translated = workloads.find(({ name }) => name === rowNames[4])!
  assert.equal(judge({ name: 'some' }, row, 200, words), undefined)
  assert.equal(judge({ name: 'bare' }, translated, 200, words), undefined)
  assert.match(judge({ name: 'some' }, translated, 200, words)!, /^its answer is none of the messages wire: /)
  assert.equal(judge({ name: 'some' }, row, 404, '{"error":\n "no such path"}'), '404 {"error": "no such path"}')
  assert.match(judge({ name: 'some' }, row, 200, words + mark)!, /^its answer has 11 of 10 words: /)
  const mixed = workloads.find(({ name }) => name === "LiteLLM's profile, chat, 64 conn.")!
  const [whole, streamed] = ['{"choices":""}', 'data: [DONE]\n'].map((text) => text + mark.repeat(64))
  const verdicts = [whole!, streamed!].flatMap((text) =>
    [0, 1].map((at) => judge({ name: 'some' }, mixed, 200, text, at)),
  )
  assert.deepEqual(
    verdicts.map((why) => why === undefined),
    [true, false, false, true],
  )
})

test('the log line that explains a failure is reported, without paths of the machine', () => {
  const log = 'starting\n\n#  /home/some/node[12]: Assertion failed: (env) != nullptr\n 1: 0x931db0\n'
  assert.equal(tellLog(log), '#  node[12]: Assertion failed: (env) != nullptr')
  assert.equal(tellLog('starting\nlistening soon\n'), 'listening soon')
  assert.equal(tellLog(''), 'it said nothing')
})

test('the tables have every server, the lowest figure of the gateways in bold, and a reason for each dash', () => {
  const text = formatRun(run)
  assert.match(text, /^\| nginx \| 18 \| \(19\) \|$/m)
  assert.match(text, /^\| triwire \| 140 \| \*\*211\*\* \|$/m)
  assert.match(text, /^\| quick \| \*\*71\*\* \| – \|$/m)
  assert.match(text, /^\| slow \| 11,000 \| 15,500 \|$/m)
  assert.doesNotMatch(text, /^\| broken \|/m)
  assert.match(text, /^- \*\*quick\*\*, 1 KB, messages → chat: 404 \\<b\\> a \\\| b$/m)
  assert.match(text, /^- \*\*broken\*\* 1\.0\.0 \(Go, from Go\): it ended with 1$/m)
  assert.match(text, /^- Others used the machine\.$/m)
})

test('a newly written table replaces the previous one, and nothing else of the page', () => {
  const before = readFileSync(page, 'utf8')
  const once = putIntoPage(before, 'the tables')
  assert.equal(putIntoPage(putIntoPage(before, 'other tables'), 'the tables'), once)
  const [head, tail] = once.split('\n\nthe tables\n\n')
  assert.ok(before.startsWith(head!) && before.endsWith(tail!))
  assert.throws(() => putIntoPage('# A page', 'the tables'), /has no place/)
})

function settingOf(name: string): { setting: Setting; written: Map<string, string> } {
  const place = testFolder('peer')
  const written = new Map<string, string>()
  const write = (file: string, text: string) => {
    written.set(file, text)
    writeFileSync(join(place, file), text)
    return join(place, file)
  }
  const secret = 'sk-0123456789abcdef0123456789abcdef'
  const [origin, streamed] = ['http://127.0.0.1:4000/short', 'http://127.0.0.1:4000/stream-short']
  return { setting: { home: `/peers/${name}`, place, port: 4001, origin, streamed, secret, write }, written }
}

const rows: Run['rows'] = [
  { name: '1 KB, chat', unit: 'request', wire: 'chat', modelWire: 'chat' },
  { name: '1 KB, messages → chat', unit: 'request', wire: 'messages', modelWire: 'chat' },
]
const run: Run = {
  about: 'Measured on a machine.',
  rows,
  servers: [
    told('nginx', [18, 19], true),
    told('triwire', [140, 211]),
    told('quick', [71, '404 <b>\n a | b']),
    told('slow', [11_000, 15_500]),
    told('broken', ['it ended with 1', 'it ended with 1']),
  ],
  remarks: ['Others used the machine.'],
}

function told(name: string, cells: readonly (number | string)[], isPipe = false): ServerTold {
  const found = cells.map((cell, i) => [rows[i]!.name, typeof cell === 'string' ? cell : figuresOf(cell)] as const)
  return { name, what: '1.0.0 (Go, from Go)', has: 'a key', isPipe, cells: Object.fromEntries(found) }
}

function figuresOf(usAll: number): Figures {
  const times = { p50Ms: 1, p99Ms: 2, firstMs: 1, tookMs: 1 }
  return { usAll, usMain: 0, perSecond: 1e6 / usAll, rssMb: 20, heated: 100, requests: 100, ...times }
}
