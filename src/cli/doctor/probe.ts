import type { WireName } from '../../catalog/model.ts'
import type { ProbeQuestion, ProbeReply } from './client-wire.ts'
import type { DoctorReply } from './send.ts'

/** @param origin of a gateway, without a path. */
export type ProbedGateway = {
  origin: string
  key: string
  timeoutMs: number
  /** It is no triwire: what only triwire promises is not asked of it. */
  isPeer: boolean
}

export type ProbeFinding = {
  /** Null for what holds for every model. */
  model: string | null
  wire: WireName | null
  probe: string
  /** `none`: not wrong, but not shown either, such as reasoning by a model that has none. */
  result: 'ok' | 'none' | 'failed'
  /** In ms, of the probe's last request; null when no answer came. */
  firstByteMs: number | null
  totalMs: number | null
  /** Of all its requests, in and out. */
  tokens: number
  note: string
  /** Of the last answer; null where none came. */
  status: number | null
}

/** One row of the table: what is asked, and what must hold of the answer. */
export type Probe = {
  model: string | null
  wire: WireName | null
  name: string
  /** What no vendor promises: where another server does otherwise, that is no failure. */
  isOurs?: true
  /** @throws Error that says what a client would stumble over. */
  run(asker: Asker): Promise<ProbeVerdict>
}

/** The gateway refuses the key itself, or its account cannot pay: nothing else can be found out. */
export class KeyRefused extends Error {}

export type ProbeVerdict = { result: 'ok' | 'none'; note: string }

/** What a probe does with the gateway. */
export type Asker = {
  /** @throws Error for anything but a whole answer that counts its tokens. */
  ask(question: Partial<ProbeQuestion>): Promise<ProbeReply>
  request(path: string, headers: Record<string, string>, body?: string): Promise<DoctorReply>
  /** What a client of the wire sends with its key. */
  keyHeaders(key?: string): Record<string, string>
}

export type AskGateway = Asker['ask']

export const ok = (note: string): ProbeVerdict => ({ result: 'ok', note })
export const none = (note: string): ProbeVerdict => ({ result: 'none', note })
