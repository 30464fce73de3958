import type { ModelWire } from '../catalog/wire-names.ts'
import type { Config } from '../config/config.ts'
import { within } from '../host/timers.ts'
import { createUpstreams } from '../upstream/http-way.ts'
import { createKeyring } from '../upstream/keyring.ts'
import type { CloudCredential, KeyReport } from '../upstream/live-key.ts'
import { createPool } from '../upstream/pool.ts'
import { createPoolMemory } from '../upstream/pool-memory.ts'
import type { ResponseHeaders, Target, UpstreamRequest, Upstreams } from '../upstream/target.ts'
import { ClientBody } from '../wires/requests/client-body.ts'
import { enclose } from '../wires/requests/envelope.ts'
import { wires } from '../wires/wires.ts'
import { type Came, judgeAnswer, type Trouble } from './upstream-trouble.ts'

/** The result of one cheap test request to an upstream account (the operator's account with a provider). */
export type UpstreamAnswered = {
  upstream: string
  account: string | null
  /** The model that was asked for, by its id in the catalog. `upstream_model` is the upstream's name for this model. */
  model: string
  upstream_model: string
  wire: ModelWire
  ok: boolean
  /** The kind of trouble; null if the upstream answered well. */
  trouble: Trouble | null
  /** The time until the answer was complete or had failed. */
  ms: number
  /** One sentence for the operator: what is wrong, and the cure. Never a key. */
  note: string
  /** Set for an account with a credential of a cloud. */
  credential?: AskedCredential
}

/** The credential of a cloud, as shown to the operator. */
type AskedCredential = {
  source: string | null
  /** The identity that the credential stands for, such as the ARN of a role. */
  identity: string | null
  /** The time until the credential expires; null if it does not expire. */
  ends_in_seconds: number | null
  /** How far the clock of the cloud is ahead of this machine's; null if no answer has shown it. */
  clock_ahead_seconds: number | null
}

type AskOptions = {
  /** Whether to ask for every model of an account. By default, only its first model is asked for. */
  everyModel?: boolean
  /** The time limit of one answer. */
  timeoutMs: number
  /** Called before each request, with its target. */
  onNext?: (target: Target) => void
}

/** The test request, which costs only a few tokens. A model that requires more fields gets them from its profile. */
const question = {
  model: 'any',
  max_tokens: 16,
  messages: [{ role: 'user', content: 'Say hello.' }],
}

/** The most bytes that are read of an answer. */
const answerBytesMax = 65_536

const headerBytesMax = 16_384

/**
 * Asks each enabled account of each upstream one question, for a model that the account serves. This uses the
 * connections, proxies, paths and keys of a server with this configuration. The providers bill some 20 tokens for each
 * question. Upstreams that no model names are not asked.
 */
export async function askUpstreams(
  config: Config,
  { everyModel, timeoutMs, onNext }: AskOptions,
): Promise<UpstreamAnswered[]> {
  const clockMs = () => performance.now()
  const troubles = new Map<string, string>()
  const note: KeyReport = (_level, event, { account, why }) => {
    if (event === 'key_failed') troubles.set(`${account}`, `${why}`)
  }
  const keyring = createKeyring(clockMs, note, Date.now, process.env, true)
  const limits = { connectMs: config.timeouts.connectMs, headerBytesMax }
  const upstreams = createUpstreams(config.upstreams, limits)
  try {
    await within(keyring.prepare(config.upstreams.values()), timeoutMs)
    const found: UpstreamAnswered[] = []
    for (const target of findTargets(config, keyring.keyOf, everyModel === true)) {
      onNext?.(target)
      found.push(await ask(upstreams, target, timeoutMs, troubles))
    }
    return found
  } finally {
    keyring.close()
    await upstreams.close()
  }
}

/**
 * Finds the targets in the order of the catalog, one for each account. With `everyModel`, one for each model of an
 * account.
 */
function findTargets(
  { catalog, upstreams }: Config,
  keyOf: Parameters<typeof createPool>[2],
  everyModel: boolean,
): Target[] {
  const pool = createPool(
    upstreams,
    createPoolMemory(() => 0),
    keyOf,
  )
  const seen = new Set<string>()
  return catalog.entries.flatMap((model) =>
    pool.listTargets(model).filter(({ upstream, account, model: { upstreamModel, wire } }) => {
      const id = JSON.stringify([upstream.name, account?.name, ...(everyModel ? [wire, upstreamModel] : [])])
      if (seen.has(id)) return false
      seen.add(id)
      return true
    }),
  )
}

async function ask(
  upstreams: Upstreams,
  target: Target,
  timeoutMs: number,
  troubles: ReadonlyMap<string, string>,
): Promise<UpstreamAnswered> {
  const { upstream, account, key, model } = target
  const told = { upstream: upstream.name, account: account?.name ?? null, model: model.id, wire: model.wire }
  const whole = { ...told, upstream_model: model.upstreamModel }
  if (account && key?.value === undefined) {
    const why = troubles.get(`${upstream.name}/${account.name}`) ?? 'none came in time'
    return { ...whole, ok: false, trouble: 'no_key', ms: 0, note: `has no key to send: ${why}` }
  }
  // The identity is asked first, because its answer shows the cloud's time, which the signature of the question needs.
  const credential = key?.credential && (await describeCredential(key.credential))
  const started = performance.now()
  const answer = await send(upstreams, target, requestFor(target), timeoutMs)
  const verdict = judgeAnswer(answer, target)
  const ms = Math.round(performance.now() - started)
  return { ...whole, ok: verdict.trouble === null, ms, ...verdict, ...(credential && { credential }) }
}

async function describeCredential(credential: CloudCredential): Promise<AskedCredential> {
  const identity = await credential.identify()
  const { source, leftMs, aheadMs } = credential.state
  const inSeconds = (ms: number | undefined) => (ms === undefined ? null : Math.round(ms / 1_000))
  return {
    ...{ source: source ?? null, identity: identity || null },
    ...{ ends_in_seconds: inSeconds(leftMs), clock_ahead_seconds: inSeconds(aheadMs) },
  }
}

function send(upstreams: Upstreams, target: Target, request: UpstreamRequest, timeoutMs: number): Promise<Came> {
  return new Promise((resolve) => {
    let head: { status: number; type: string; headers: ResponseHeaders } | undefined
    const pieces: Buffer[] = []
    let bytes = 0
    const finish = (came: Came) => {
      clearTimeout(timer)
      resolve(came)
    }
    const whole = () => finish({ ...head!, text: Buffer.concat(pieces).toString('utf8') })
    const flight = upstreams.send(target, request, {
      onHead: (status, type, headers) => {
        head = { status, type, headers }
      },
      onData(piece) {
        pieces.push(Buffer.from(piece))
        bytes += piece.length
        if (bytes < answerBytesMax) return
        flight.abort()
        whole()
      },
      onEnd: whole,
      onError: (fault) => finish({ fault }),
    })
    const timer = setTimeout(() => {
      flight.abort()
      finish({ fault: 'timeout' })
    }, timeoutMs)
  })
}

/** Makes the test request for this target, as the gateway would make it from a client's request. */
function requestFor(target: Target): UpstreamRequest {
  const { encodeRequest, credential, versionHeaders } = wires[target.model.wire].model
  const context = { cacheKey: undefined, unseal: () => undefined }
  const body = new ClientBody(Buffer.from(JSON.stringify(question)))
  const asked = wires.messages.client.decodeRequest(body, context)
  const { messagesHeaders } = target.upstream
  const { body: bytes } = encodeRequest(asked, target.model)
  const { envelope } = target.model.profile.messages
  return {
    body: envelope ? enclose(bytes, envelope, undefined) : bytes,
    credential,
    headers: versionHeaders && !envelope ? [[`${messagesHeaders}-version`, versionHeaders.versionDefault]] : [],
  }
}
