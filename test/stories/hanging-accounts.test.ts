import assert from 'node:assert/strict'
import test from 'node:test'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { startTestGateway } from '../support/gateway.ts'
import { answers, asks, frames, paths } from '../support/native.ts'
import { type Answer, head, startRawUpstream, stream, whole, writeChunk } from '../support/raw-upstream.ts'
import { isNightly } from '../support/runs.ts'

/*
 * Y25 over a whole gateway: two of eight accounts hang, each in its way, as requests come. Clients leave after
 * 70 s. The clock is the test's.
 */

const silent: Answer = () => {}
const headOnly =
  (type: string): Answer =>
  (socket) =>
    void socket.write(head(200, { 'content-type': type, 'transfer-encoding': 'chunked' }))
const onlySigns =
  (type: string, sign: string): Answer =>
  (socket) => {
    socket.write(head(200, { 'content-type': type, 'transfer-encoding': 'chunked' }))
    writeChunk(socket, sign)
  }

const events = 'text/event-stream'
const ways: {
  name: string
  wire: ClientWire
  isStream: boolean
  bad: [Answer, Answer]
  minuteMs: number
  hangMs: number
  count: number
}[] = [
  {
    name: 'streams, without a head or a body',
    wire: 'chat',
    isStream: true,
    bad: [silent, headOnly(events)],
    minuteMs: 60_000,
    hangMs: 10_000,
    count: isNightly ? 900 : 300,
  },
  {
    name: 'streams with nothing but comments or pings',
    wire: 'messages',
    isStream: true,
    bad: [onlySigns(events, ': wait\n\n'), onlySigns(events, 'event: ping\ndata: {"type": "ping"}\n\n')],
    minuteMs: 60_000,
    hangMs: 10_000,
    count: 200,
  },
  {
    name: 'JSON, without a head or with blanks for a body',
    wire: 'responses',
    isStream: false,
    bad: [silent, onlySigns('application/json', '  \n')],
    minuteMs: 90_000,
    hangMs: 60_000,
    count: 200,
  },
]

for (const { name, wire, isStream, bad, minuteMs, hangMs, count } of ways)
  test(`Y25 SCA-1 if two of eight accounts hang, at most 2 % of requests hang after the first minute: ${name}`, async (t) => {
    const upstream = await startRawUpstream()
    /** When each of the two was asked. */
    const askedMs: [number[], number[]] = [[], []]
    let elapsedMs = 0
    const good = isStream ? stream(frames[wire]) : whole(answers[wire])
    let heard = Promise.withResolvers<boolean>()
    upstream.play((socket, request) => {
      const account = (request.header('authorization') ?? request.header('x-api-key')!).at(-1)!
      const at = ['2', '5'].indexOf(account)
      askedMs[at]?.push(elapsedMs)
      heard.resolve(at >= 0)
      return (bad[at] ?? good)(socket, request)
    })
    const accounts = Array.from({ length: 8 }, (_, index) => ({
      name: `account-${index}`,
      key: `upstream-key-${index}`,
    }))
    const gateway = await startTestGateway({
      cools: true,
      credit: '100000',
      upstream: () => ({ upstreams: { sim: { base_url: upstream.url, accounts } } }),
      config: { limits: { requests_per_minute: 1_000_000 } },
    })
    const pending: { leaveMs: number; leave: AbortController }[] = []
    const send = async (everyMs: number, isOver: (sent: number) => boolean) => {
      let [sent, hanging] = [0, 0]
      for (; !isOver(sent); sent++) {
        heard = Promise.withResolvers()
        const leave = new AbortController()
        const opening = `Hi ${everyMs} ${sent}`
        const done = fetch(gateway.url + paths[wire], {
          method: 'POST',
          signal: leave.signal,
          headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
          // Each is a conversation of its own.
          body: JSON.stringify({
            ...asks[wire],
            stream: isStream,
            ...(wire === 'responses' ? { input: opening } : { messages: [{ role: 'user', content: opening }] }),
          }),
        })
          .then((response) => response.text())
          .catch(() => '')
        if (await heard.promise) {
          hanging++
          pending.push({ leaveMs: elapsedMs + 70_000, leave })
        } else await done
        elapsedMs += everyMs
        gateway.advance(everyMs)
        while (pending.length > 0 && pending[0]!.leaveMs <= elapsedMs) pending.shift()!.leave.abort()
      }
      return hanging / sent
    }
    // In a few runs of a hundred, chance asks one of them for the second time so late that it does not hang in the first minute.
    const isTwice = (times: number[]) => elapsedMs - (times[1] ?? elapsedMs) > hangMs
    const first = await send(1_000, () => elapsedMs >= minuteMs && askedMs.every(isTwice))
    const then = await send(11_250 / count, (sent) => sent === count)
    t.diagnostic(`${(100 * first).toFixed(1)} % in the first minute, ${(100 * then).toFixed(1)} % after it`)
    assert.ok(first > 0.02, 'they do hang')
    assert.ok(then <= 0.02)
    const rows = (await (await gateway.askAdmin('/api/v1/upstreams')).json()) as { upstreams?: object[] }
    const trials = JSON.stringify(rows).match(/"state":"trial","cause":"upstream_hangs"/g)
    assert.equal(trials?.length, 2)
    const metrics = await (await gateway.askAdmin('/metrics')).text()
    assert.match(metrics, /triwire_upstream_on_trial\{upstream="sim",cause="timeout"\} 2/)
    for (const { leave } of pending) leave.abort()
    await gateway.close()
  })
