import assert from 'node:assert/strict'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { testModel } from '../support/gateway.ts'

import { isConnected } from '../support/peer.ts'
import type { Answer } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'
import { type Bench, canary, head, openRows, stream, type Told, type Way, whole } from './bench.ts'
import { deafPort } from './deaf.ts'
import { errorOf } from './upstream-answers.ts'

/* The rows F-U of docs/faults.md that pools are for: `trio` has the accounts a, b and c of one upstream, and cools. */

const row = openRows()

const own = { cools: true }
const ok = (attempts: number): Told => ({
  client: 'whole',
  ledger: 'final',
  log: { outcome: 'ok', status: 200, attempts },
})
const told = (status: number, code: string, cause: string, attempts: number | undefined): Told => ({
  client: status,
  ledger: 'none',
  log: { outcome: 'upstream_error', code, cause, attempts },
})

/** The account a request was sent with. */
const accountOf = (request: Parameters<Answer>[1]): string =>
  (request.header('authorization') ?? request.header('x-api-key') ?? '').at(-1)!

/** Accounts that are not in the table give a good answer. */
function playByAccount(bench: Bench, bad: Record<string, Answer>, good: Answer): string[] {
  const asked: string[] = []
  bench.upstream.play((socket, request) => {
    const account = accountOf(request)
    asked.push(account)
    return (bad[account] ?? good)(socket, request)
  })
  return asked
}

const refuse = (way: Way, status: number, headers: Record<string, string> = {}): Answer =>
  whole(errorOf(way.model, 'api_error', `${canary} of upstream-key-a`), status, headers)
const everywhere = (answer: Answer) => ({ a: answer, b: answer, c: answer })

const dead = { base_url: 'http://127.0.0.1:9', accounts: [{ name: 'a', key: 'upstream-key-a' }] }
const withDead = {
  ...own,
  models: clientWireNames.flatMap((wire) => [
    testModel(`half-${wire}`, wire, { upstream: [{ name: 'dead' }, { name: 'sim', priority: 2 }] }),
    testModel(`none-${wire}`, wire, { upstream: [{ name: 'dead' }, { name: 'dead2', priority: 2 }] }),
  ]),
  config: { upstreams: { dead, dead2: dead } },
}

row('F-U1', 'where connections are refused another upstream answers; else 502', { own: withDead }, async (bench) => {
  bench.upstream.play(bench.good.stream)
  await bench.check(await bench.ask({ to: 'half', stream: true }), ok(2))
  bench.upstream.play(bench.good.whole)
  await bench.check(await bench.ask({ to: 'half' }), ok(2))
  await bench.check(await bench.ask({ to: 'none' }), told(502, 'upstream_error', 'upstream_connect', 2))
})

row(
  'F-U2',
  'a connection that hangs is given up after the connect deadline, and another upstream answers; else 502',
  { isSlow: true, own: {} },
  async (bench) => {
    const hanging = { ...dead, base_url: `http://127.0.0.1:${(await deafPort()).port}` }
    const models = clientWireNames.flatMap((wire) => [
      testModel(`half-${wire}`, wire, { upstream: [{ name: 'dead' }, { name: 'sim', priority: 2 }] }),
      testModel(`none-${wire}`, wire, { upstream: [{ name: 'dead' }, { name: 'dead2', priority: 2 }] }),
    ])
    bench.gateway.reload({
      catalog: { pinned: '2026-11-01', models },
      upstreams: { ...bench.upstreams, dead: hanging, dead2: hanging },
      timeouts: { connect: '200ms' },
    })
    bench.upstream.play(bench.good.stream)
    await bench.check(await bench.ask({ to: 'half', stream: true }), ok(2))
    await bench.check(await bench.ask({ to: 'none' }), told(502, 'upstream_error', 'upstream_connect', 2))
  },
)

row(
  'F-U5',
  'an account that resets or ends before the head is not asked again, another one is',
  { own },
  async (bench) => {
    for (const end of ['resetAndDestroy', 'end'] as const) {
      const asked: string[] = []
      bench.upstream.play(async (socket, request) => {
        asked.push(accountOf(request))
        if (asked.length === 1) {
          socket[end]()
          return
        }
        // The next one finds no connection that is kept: there it would be asked once more (U1).
        await bench.good.stream(socket, request)
        socket.destroySoon()
      })
      await bench.check(await bench.ask({ to: 'trio', stream: true, more: {} }), ok(2))
      assert.equal(new Set(asked).size, 2)
      await until(() => !isConnected(Number(new URL(bench.upstream.url).port)), 'its end is known')
    }
  },
)

row('F-U7', 'silence before the first byte: nobody else is asked, which would pay twice', { own }, async (bench) => {
  bench.upstream.play(() => {})
  const client = bench.client({ to: 'trio', stream: true })
  await bench.isAsked()
  bench.gateway.advance(300_000)
  await bench.check(await client.got, told(502, 'upstream_error', 'upstream_ttfb_timeout', 1))
  assert.equal(bench.upstream.requests.length, 1)
})

row(
  'F-U16',
  '429 with a wait: another account; else 429 with the shortest wait, and the account is left alone for as long',
  { own },
  async (bench, way) => {
    const date = new Date(bench.gateway.nowMs() + 20_000).toUTCString()
    const waits = { a: '7', b: date, c: '99999999' }
    const limited = Object.fromEntries(
      Object.entries(waits).map(([name, wait]) => [name, refuse(way, 429, { 'retry-after': wait })]),
    )
    const asked = playByAccount(bench, limited, bench.good.whole)
    const got = await bench.ask({ to: 'trio' })
    assert.equal(asked.length, 3)
    assert.equal(got.headers['retry-after'], '7')
    await bench.check(got, told(429, 'rate_limit_exceeded', 'upstream_429', 3))
    // Who asked for a wait is left alone for it, and no longer.
    bench.gateway.advance(6_900)
    await bench.check(await bench.ask({ to: 'trio' }), told(429, 'rate_limit_exceeded', 'no_capacity', undefined))
    bench.gateway.advance(200)
    const later = playByAccount(bench, {}, bench.good.whole)
    await bench.check(await bench.ask({ to: 'trio' }), ok(1))
    assert.deepEqual(later, ['a'])
  },
)

row('F-U16', '429 with no wait, zero or nonsense: another account answers', { own }, async (bench, way) => {
  for (const headers of [{ 'retry-after': '0' }, { 'retry-after': 'soon' }, { 'retry-after': '-3' }]) {
    const asked: string[] = []
    bench.upstream.play((socket, request) => {
      asked.push(accountOf(request))
      return asked.length === 1 ? refuse(way, 429, headers)(socket, request) : bench.good.stream(socket, request)
    })
    await bench.check(await bench.ask({ to: 'trio', stream: true }), ok(2))
    bench.gateway.advance(300_000)
  }
})

row(
  'F-U17',
  '429 without a wait: left alone for 10 s, twice as long each time in a row, up to 300 s',
  { own },
  async (bench, way) => {
    for (const seconds of [10, 20, 40]) {
      playByAccount(bench, everywhere(refuse(way, 429)), bench.good.whole)
      const got = await bench.ask({ to: 'native' })
      const { 'retry-after': wait } = got.headers
      assert.ok(Number(wait) >= 1 && Number(wait) <= 60, `${wait}`)
      await bench.check(got, told(429, 'rate_limit_exceeded', 'upstream_429', 1))
      const asked = bench.upstream.requests.length
      bench.gateway.advance(seconds * 790)
      await bench.check(await bench.ask({ to: 'native' }), told(429, 'rate_limit_exceeded', 'no_capacity', undefined))
      assert.equal(bench.upstream.requests.length, asked)
      bench.gateway.advance(seconds * 420)
    }
    bench.upstream.play(bench.good.whole)
    await bench.check(await bench.ask({ to: 'native' }), ok(1))
  },
)

row(
  'F-U18',
  '401, 402 and 403 about our account: another one; else 503, and nobody is told why',
  { own },
  async (bench, way) => {
    for (const status of [401, 402, 403]) {
      const asked: string[] = []
      bench.upstream.play((socket, request) => {
        asked.push(accountOf(request))
        return asked.length === 1 ? refuse(way, status)(socket, request) : bench.good.whole(socket, request)
      })
      await bench.check(await bench.ask({ to: 'trio' }), ok(2))
      bench.gateway.advance(300_000)
    }
    playByAccount(bench, everywhere(refuse(way, 401)), bench.good.whole)
    await bench.check(await bench.ask({ to: 'trio' }), told(503, 'no_upstream_account', 'upstream_401', 3))
  },
)

for (const [id, statuses] of [
  ['F-U21', [500, 502, 503]],
  ['F-U22', [408, 409, 425]],
] as const) {
  row(
    id,
    `${statuses.join(', ')} before a body: two more accounts at most; else 502`,
    { isSlow: true, own },
    async (bench, way) => {
      for (const status of statuses) {
        const asked: string[] = []
        bench.upstream.play((socket, request) => {
          asked.push(accountOf(request))
          return asked.length < 3 ? refuse(way, status)(socket, request) : bench.good.stream(socket, request)
        })
        await bench.check(await bench.ask({ to: 'trio', stream: true }), ok(3))
        assert.equal(new Set(asked).size, 3)
        bench.gateway.advance(300_000)
      }
      playByAccount(bench, everywhere(refuse(way, statuses[0])), bench.good.whole)
      await bench.check(await bench.ask({ to: 'trio' }), told(502, 'upstream_error', `upstream_${statuses[0]}`, 3))
    },
  )
}

row('F-U21', '529 is want of capacity: another account, else 429', { own }, async (bench, way) => {
  playByAccount(bench, everywhere(refuse(way, 529)), bench.good.whole)
  await bench.check(await bench.ask({ to: 'trio' }), told(429, 'rate_limit_exceeded', 'upstream_529', 3))
})

row('F-U25', '200 with an error of the upstream as its body: another account answers', { own }, async (bench, way) => {
  let count = 0
  bench.upstream.play((socket, request) =>
    (++count === 1 ? whole(errorOf(way.model, 'rate_limit_error', canary), 200) : bench.good.whole)(socket, request),
  )
  await bench.check(await bench.ask({ to: 'trio' }), ok(2))
})

row('F-U26', 'an error as the first event of a stream: another account answers', { own }, async (bench, way) => {
  let count = 0
  const event = `event: error\ndata: ${JSON.stringify(errorOf(way.model, 'api_error', canary))}\n\n`
  bench.upstream.play((socket, request) => (++count === 1 ? stream([event]) : bench.good.stream)(socket, request))
  await bench.check(await bench.ask({ to: 'trio', stream: true }), ok(2))
})

row(
  'F-U43',
  'every account cools: nobody is asked; 429 where one does for capacity, else 503, at once',
  { own },
  async (bench, way) => {
    playByAccount(bench, everywhere(refuse(way, 403)), bench.good.whole)
    await bench.check(await bench.ask({ to: 'trio' }), told(503, 'no_upstream_account', 'upstream_403', 3))
    const asked = bench.upstream.requests.length
    await bench.check(
      await bench.ask({ to: 'trio' }),
      told(503, 'no_upstream_account', 'no_upstream_account', undefined),
    )
    await bench.check(
      await bench.ask({ to: 'trio', stream: true }),
      told(503, 'no_upstream_account', 'no_upstream_account', undefined),
    )
    assert.equal(bench.upstream.requests.length, asked)
    bench.gateway.advance(300_000)
    playByAccount(
      bench,
      { ...everywhere(refuse(way, 403)), b: refuse(way, 429, { 'retry-after': '30' }) },
      bench.good.whole,
    )
    await bench.check(await bench.ask({ to: 'trio' }), told(429, 'rate_limit_exceeded', 'upstream_429', 3))
    const got = await bench.ask({ to: 'trio' })
    assert.equal(got.headers['retry-after'], '30')
    await bench.check(got, told(429, 'rate_limit_exceeded', 'no_capacity', undefined))
  },
)

row(
  'F-U44',
  'an upstream that fails for everybody is asked 1.1 times for one request, and ten times a minute',
  { own, isSlow: true },
  async (bench, way) => {
    bench.upstream.play(refuse(way, 500))
    const requests = 200
    for (let i = 0; i < requests; i++) {
      const got = await bench.ask({ to: 'trio' })
      if (i % 50 > 0) continue
      const { attempts: _, ...log } = told(502, 'upstream_error', 'upstream_500', 0).log
      await bench.check(got, { client: 502, ledger: 'none', log })
    }
    const asked = bench.upstream.requests.length
    assert.ok(asked <= requests * 1.1 + 11, `${asked} for ${requests}`)
  },
)

row('F-U45', 'what an account sends after it was given up reaches nobody', { own }, async (bench) => {
  let late!: Parameters<Answer>[0]
  const asked: string[] = []
  bench.upstream.play((socket, request) => {
    asked.push(accountOf(request))
    if (asked.length > 1) return bench.good.stream(socket, request)
    late = socket
    // A refusal whose text never comes to its end.
    socket.write(head(503, { 'content-type': 'application/json', 'content-length': '400' }))
  })
  const client = bench.client({ to: 'trio', stream: true })
  await until(() => asked.length === 1)
  await bench.upstream.untilHeard()
  bench.gateway.advance(300_000)
  late.write(canary.repeat(40))
  const got = await client.got
  assert.doesNotMatch(got.text, new RegExp(canary))
  await bench.check(got, ok(2))
})
