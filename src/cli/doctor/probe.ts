import type { Ask } from '#probes'
import type { ClientWire } from '../../catalog/wire-names.ts'
import type { DoctorReply } from '../ask.ts'
import type { ProbeReply } from './client-wire.ts'

/** @property origin the gateway's URL without a path */
export type ProbedGateway = {
  origin: string
  key: string
  timeoutMs: number
  /** Whether the server is not triwire. Checks of things that only triwire guarantees may then fail. */
  isPeer: boolean
}

export type ProbeFinding = {
  /** Null for a probe that does not concern one model. */
  model: string | null
  wire: ClientWire | null
  probe: string
  /** `none`: nothing failed, but the feature did not appear, for example because the model does not reason. */
  result: 'ok' | 'none' | 'failed'
  /** The times of the probe's last request, in ms. Null if no answer came. */
  firstByteMs: number | null
  totalMs: number | null
  /** The input and output tokens of all requests of the probe. */
  tokens: number
  note: string
  /** The status of the last answer. Null if no answer came. */
  status: number | null
}

/** A check of the gateway: one or more requests, and what must be true of their responses. */
export type Probe = {
  model: string | null
  wire: ClientWire | null
  name: string
  /**
   * Set if the check tests a promise that only triwire makes. On another server, a failed check need not be a fault.
   */
  isOurs?: true
  /** Runs the check. @throws Error that describes the fault */
  run(asker: Asker): Promise<ProbeVerdict>
}

/** Thrown if the gateway refuses the key, or the key's account cannot pay. No further probe can succeed then. */
export class KeyRefused extends Error {}

/** Thrown if the status of an answer is not 200. */
export class StatusError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** A fault in something that only triwire guarantees. The specifications of the wires do not require it. */
export class OwnPromise extends Error {}

export type ProbeVerdict = { result: 'ok' | 'none'; note: string }

/** Sends the requests of a probe to the gateway. */
export type Asker = {
  /** Sends a question and reads the answer. @throws Error unless the answer is complete and has token counts */
  ask(question: Ask, model: string): Promise<ProbeReply>
  request(path: string, headers: Record<string, string>, body?: string): Promise<DoctorReply>
  /** The headers with which a client of the wire sends its key. */
  keyHeaders(key?: string): Record<string, string>
}

/** Sends a question to one model. */
export type AskModel = (question: Ask) => Promise<ProbeReply>

export const ok = (note: string): ProbeVerdict => ({ result: 'ok', note })
export const none = (note: string): ProbeVerdict => ({ result: 'none', note })
