import type { Ask } from '#probes'
import type { ClientWire } from '../../catalog/wire-names.ts'
import type { DoctorReply } from '../ask.ts'
import type { ProbeReply } from './client-wire.ts'

/** @property origin the gateway's URL without a path */
export type ProbedGateway = {
  origin: string
  key: string
  timeoutMs: number
  /** True if the server is not triwire. Then probes of what only triwire guarantees do not count. */
  isPeer: boolean
}

export type ProbeFinding = {
  /** Null for a probe that is not about one model. */
  model: string | null
  wire: ClientWire | null
  probe: string
  /** `none`: nothing failed and nothing was shown, for example if a model has no reasoning. */
  result: 'ok' | 'none' | 'failed'
  /** Times of the probe's last request, in ms; null if no answer came. */
  firstByteMs: number | null
  totalMs: number | null
  /** Input and output tokens of all requests of the probe. */
  tokens: number
  note: string
  /** The status of the last answer; null if none came. */
  status: number | null
}

/** A check of the gateway: one or more requests, and what must be true of the responses. */
export type Probe = {
  model: string | null
  wire: ClientWire | null
  name: string
  /** True if only triwire guarantees what is checked. Another server may fail it. */
  isOurs?: true
  /** @throws Error that describes the fault */
  run(asker: Asker): Promise<ProbeVerdict>
}

/** The gateway refuses the key, or its account cannot pay, so no further probe can succeed. */
export class KeyRefused extends Error {}

/** A fault in what only triwire guarantees. The specifications of the wires do not require it of other servers. */
export class OwnPromise extends Error {}

export type ProbeVerdict = { result: 'ok' | 'none'; note: string }

/** Sends the requests of a probe to the gateway. */
export type Asker = {
  /** @throws Error unless the answer is complete and has token counts */
  ask(question: Ask, model: string): Promise<ProbeReply>
  request(path: string, headers: Record<string, string>, body?: string): Promise<DoctorReply>
  /** The headers with which a client of the wire sends its key. */
  keyHeaders(key?: string): Record<string, string>
}

/** Asks one model. */
export type AskModel = (question: Ask) => Promise<ProbeReply>

export const ok = (note: string): ProbeVerdict => ({ result: 'ok', note })
export const none = (note: string): ProbeVerdict => ({ result: 'none', note })
