import type { Ask } from '#probes'
import type { ClientWire } from '../../catalog/wire-names.ts'
import type { DoctorReply } from '../ask.ts'
import type { ProbeReply } from './client-wire.ts'

/** @property origin of a gateway, without a path */
export type ProbedGateway = {
  origin: string
  key: string
  timeoutMs: number
  /** Whether the server is not triwire, so that probes of our own promises do not count. */
  isPeer: boolean
}

export type ProbeFinding = {
  /** Null for a probe that is not about one model. */
  model: string | null
  wire: ClientWire | null
  probe: string
  /** `none`: neither wrong nor shown, such as reasoning by a model that has none. */
  result: 'ok' | 'none' | 'failed'
  /** Times of the probe's last request, in ms; null if no answer came. */
  firstByteMs: number | null
  totalMs: number | null
  /** Tokens of all its requests, input and output. */
  tokens: number
  note: string
  /** The status of the last answer; null if none came. */
  status: number | null
}

/** One row of the table: a request, and what must hold of its answer. */
export type Probe = {
  model: string | null
  wire: ClientWire | null
  name: string
  /** A promise of ours that no vendor makes. Another server may break it. */
  isOurs?: true
  /** @throws Error with the fault that a client would meet */
  run(asker: Asker): Promise<ProbeVerdict>
}

/** The gateway refuses the key itself, or its account cannot pay. No other probe makes sense then. */
export class KeyRefused extends Error {}

/** A promise of triwire that does not hold. The types of the wires do not ask it of other servers. */
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
