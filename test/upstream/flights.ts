import { bearer } from '../../src/catalog/credentials.ts'
import { Secret, type Upstream } from '../../src/config/config.ts'
import { createUpstreams } from '../../src/upstream/http-way.ts'
import { fixedKey } from '../../src/upstream/keyring.ts'
import type {
  ConnectionLimits,
  Flight,
  ResponseHeaders,
  Target,
  TransportFault,
  UnaskedPlace,
  UpstreamListener,
  UpstreamRequest,
  Upstreams,
} from '../../src/upstream/target.ts'
import { modelOf } from '../native/models.ts'
import { atEnd } from '../support/at-end.ts'
import { upstreamAt } from '../support/upstream.ts'
import { until } from '../support/waiting.ts'

/** One upstream's connections as the gateway opens them, and what is sent on them. */
export type Way = {
  upstreams: Upstreams
  target: Target
  /** Sends a request and notes what its listener hears. */
  send(request?: Partial<UpstreamRequest & Pick<Target, 'path'>>, listener?: Partial<UpstreamListener>): Heard
  /** Of ours, that were reported. */
  bugs: Error[]
  /** What was reported of bytes that nobody had asked for. */
  unasked: [upstream: string, place: UnaskedPlace][]
  /** Turns the clock of the connections, which stands still; without a figure so far that each of them has rested. */
  pass(ms?: number): void
}

/** What a listener heard of one request. */
export type Heard = {
  flight: Flight
  head: { status: number; contentType: string; headers: ResponseHeaders } | undefined
  /** Heads it was told; there is one at most. */
  heads: number
  text: string
  ends: number
  faults: TransportFault[]
  /** Waits until it was told that the answer is over, well or not. */
  untilOver(): Promise<void>
}

const limits: ConnectionLimits = { connectMs: 5_000, headerBytesMax: 16_384 }

/**
 * @param baseUrl of an upstream that the test plays
 * @param clockMs instead of the clock that stands still
 */
export function openWay(
  baseUrl: string,
  more: Partial<Upstream> = {},
  changed: Partial<ConnectionLimits> = {},
  clockMs?: () => number,
): Way {
  const upstream = upstreamAt(baseUrl, {
    accounts: [{ name: 'a', key: new Secret('upstream-key-1'), isEnabled: true }],
    ...more,
  })
  const bugs: Error[] = []
  const unasked: Way['unasked'] = []
  let nowMs = 0
  const upstreams = createUpstreams(
    new Map([[upstream.name, upstream]]),
    { ...limits, ...changed },
    {
      clockMs: clockMs ?? (() => nowMs),
      reportBug: (bug) => bugs.push(bug),
      onUnasked: (...event) => unasked.push(event),
    },
  )
  atEnd(() => upstreams.close())
  const headers = [...upstream.headers].flat()
  const account = upstream.accounts[0]
  const key = account && fixedKey(account)
  const target: Target = { upstream, account, key, model: modelOf('chat'), path: '/v1/x', headers }
  const pass = (ms = 1) => {
    nowMs += ms
  }
  return { upstreams, target, send, bugs, unasked, pass }

  function send(
    { path, ...request }: Parameters<Way['send']>[0] = {},
    listener: Partial<UpstreamListener> = {},
  ): Heard {
    const heard: Omit<Heard, 'flight'> = {
      head: undefined,
      heads: 0,
      text: '',
      ends: 0,
      faults: [],
      untilOver: () => until(() => heard.ends + heard.faults.length > 0, 'the answer is over'),
    }
    const flight = upstreams.send(
      path === undefined ? target : { ...target, path },
      { headers: [], credential: bearer, body: Buffer.from('{}'), ...request },
      {
        onHead(status, contentType, headers) {
          heard.heads++
          heard.head = { status, contentType, headers }
        },
        onData(chunk) {
          heard.text += chunk.toString()
        },
        onEnd() {
          heard.ends++
        },
        onError(fault) {
          heard.faults.push(fault)
        },
        ...listener,
      },
    )
    return Object.assign(heard, { flight })
  }
}
