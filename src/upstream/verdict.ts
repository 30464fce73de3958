import type { Refusal } from '../catalog/refusals.ts'
import type { Fault } from '../inference/answer.ts'
import { isOverLongCode } from './over-long.ts'

/** What is to be done about an attempt that failed (rulings U1, U2). */
export type Verdict = {
  /** What the client is told where no other attempt does better; the words are in refusal.ts. */
  tell: 'rejected' | 'capacity' | 'account' | 'broken'
  /** Who may be asked instead, before the client has seen a byte: any account, also this one; another; nobody. */
  elsewhere: 'any' | 'another' | 'nobody'
  /** Whether this account is left alone for a while: at once, when it happens again and again, or not for this. */
  cool: 'now' | 'repeated' | 'no'
  /** Stands for the cause in the log where an operator must mend something. */
  alarm?: 'upstream_model_not_found' | `upstream_account_${AccountTrouble}`
}

/** The trouble with the operator's account: no money, no valid key, or no right to ask from here or at all. */
type AccountTrouble = Exclude<Refusal['about'], 'busy' | 'request'>

/** A failed attempt, as the attempt saw it. */
export type Failure = {
  fault: Fault
  /** For the log; fixed words, no upstream text. */
  cause: string
  /** What the upstream asked for. */
  retryAfterSeconds?: number | undefined
  /** A reused connection was reset before any byte came: nothing was processed. */
  isReuseRace?: boolean
}

/**
 * An answer that failed.
 * @param said its cause, where the model said so itself; its word is not what ended one that broke off or cannot be read
 */
export function failureOf(fault: Fault, said: string): Failure {
  return { fault, cause: causeOf(fault, said) }
}

function causeOf({ kind, unread }: Fault, said: string): string {
  if (unread) return unread === 'oversize' ? 'upstream_oversize' : 'upstream_protocol'
  return kind === 'truncated' ? 'upstream_cut' : said
}

/** What the judge knows of the model, by which an upstream's words are understood. */
export type JudgedModel = {
  upstreamModel: string
  /** Parts of a refusal's text that speak of our account (ruling U2), of a server error's that blame the request (U8). */
  profile: { refusals: readonly Refusal[]; accountFaults: readonly string[]; requestFaults: readonly string[] }
}

const caller: Verdict = { tell: 'rejected', elsewhere: 'nobody', cool: 'no' }
/** The provider takes none of our requests on this account. */
const barred: Verdict = { tell: 'account', elsewhere: 'another', cool: 'now' }
const full: Verdict = { tell: 'capacity', elsewhere: 'another', cool: 'now' }
const overloaded: Verdict = { tell: 'capacity', elsewhere: 'another', cool: 'repeated' }
const passing: Verdict = { tell: 'broken', elsewhere: 'another', cool: 'repeated' }
/** The connection had idled too long: the account is as good as before. */
const race: Verdict = { tell: 'broken', elsewhere: 'any', cool: 'no' }
/** It broke off behind its head: the model has worked, and may be paid for it. */
const cut: Verdict = { tell: 'broken', elsewhere: 'nobody', cool: 'repeated' }
/** Our path, our name for the model, or an answer that is none: another account would hear the same. */
const ours: Verdict = { tell: 'broken', elsewhere: 'nobody', cool: 'no' }
const misnamed: Verdict = { ...ours, alarm: 'upstream_model_not_found' }

/** By the status the upstream gave, or that its error type stands for. Of 5xx those that are missing are `passing`. */
const byStatus = new Map<number, Verdict>([
  [400, caller],
  [401, barred],
  [402, barred],
  [403, barred],
  [404, caller],
  [405, ours],
  [408, passing],
  [409, passing],
  [413, caller],
  [422, caller],
  [425, passing],
  [429, full],
  [529, overloaded],
])

/** Where no status was given: by what the attempt died of. What is missing is `ours`. */
const byCause = new Map<string, Verdict>([
  ['upstream_connect', passing],
  ['upstream_dns', passing],
  ['upstream_tls', passing],
  ['upstream_proxy', passing],
  ['upstream_reset', passing],
])

/** By what an error without a status is about. */
const byKind: Record<Fault['kind'], Verdict> = {
  rejected: caller,
  capacity: full,
  account: barred,
  broken: ours,
  truncated: cut,
}

/** The trouble that a status stands for. */
const accountTroubles = new Map<number, AccountTrouble>([
  [401, 'key'],
  [402, 'spent'],
  [403, 'denied'],
])

/** Rows of every profile, tried after its own: words that stand for 401, 402 and 403 in all dialects, under any status. */
export const commonRefusals: readonly Refusal[] = [
  { about: 'key', code: 'authentication_error' },
  { about: 'key', code: 'invalid_api_key' },
  { about: 'spent', code: 'billing_error' },
  { about: 'spent', code: 'insufficient_quota' },
  { about: 'denied', code: 'permission_error' },
]

/** How servers tell with 400 that they do not know a model (LiteLLM). */
const unknownModel = 'invalid model name passed in model='

/** Judges a failed attempt. One account is asked again only after a race on its connection (U1): see `Pool.choose`. */
export function judge({ fault, cause, isReuseRace }: Failure, model: JudgedModel): Verdict {
  if (isReuseRace) return race
  const isHttp = cause === `upstream_${fault.status}`
  const refusal = [...model.profile.refusals, ...commonRefusals].find((row) => fits(row, fault, isHttp))
  if (refusal) return verdictOf(refusal, isHttp ? fault.status : undefined)
  // The name it does not know is ours for the model: a client's that we do not know goes nowhere (ruling U9).
  if (fault.code === 'model_not_found') return misnamed
  const text = fault.text.toLowerCase()
  const { status } = fault
  const found = status === undefined ? undefined : (byStatus.get(status) ?? (status >= 500 ? passing : ours))
  if (found !== undefined && status! >= 500 && isCallers(text, fault.code, model)) return caller
  const verdict = found ?? (fault.kind === 'truncated' ? cut : (byCause.get(cause) ?? byKind[fault.kind]))
  if (verdict === barred && !isHttp && status !== undefined) return verdictOf({ about: accountTroubles.get(status)! })
  const mayBeAccounts = verdict === caller || verdict === full
  if (mayBeAccounts && model.profile.accountFaults.some((part) => text.includes(part.toLowerCase())))
    return verdictOf({ about: 'denied' })
  if (verdict !== caller) return verdict
  if (text.includes(unknownModel + model.upstreamModel.toLowerCase())) return misnamed
  return status === 404 && isAboutUs(text, model.upstreamModel.toLowerCase()) ? ours : caller
}

function fits({ status, code, text }: Refusal, fault: Fault, isHttp: boolean): boolean {
  if (status && isHttp && !status.includes(fault.status!)) return false
  if (code !== undefined && !fault.classes?.includes(code)) return false
  return text === undefined || text.test(fault.text)
}

/** @param status of an HTTP refusal; if it stands for the same trouble, the cause in the log needs no other word */
function verdictOf({ about, isPartial }: Refusal, status?: number): Verdict {
  if (about === 'request') return caller
  if (about === 'busy') return full
  const verdict: Verdict = isPartial ? { ...barred, cool: 'no' } : barred
  const isNamed = status !== undefined && accountTroubles.get(status) === about
  return isNamed ? verdict : { ...verdict, alarm: `upstream_account_${about}` }
}

/** A server error that is the request's own: an image for a model of text, a prompt that does not fit (ruling U8). */
function isCallers(text: string, code: string | undefined, { profile }: JudgedModel): boolean {
  return isOverLongCode(code) || profile.requestFaults.some((part) => text.includes(part.toLowerCase()))
}

/** How servers tell with 404 that they have no such path, in all of their words (llama.cpp: the last). */
const unknownPath: ReadonlySet<string> = new Set(['', 'not found', 'file not found'])

/** A 404 that speaks of the path or of the model, and not of something that the request names: nothing the client could mend. */
function isAboutUs(text: string, upstreamModel: string): boolean {
  if (unknownPath.has(text) || text.includes(upstreamModel)) return true
  return (
    /\b(?:model|path|route|url|endpoint|page)\b/.test(text) &&
    /not (?:be )?found|not exist|unknown|no such|invalid|not support/.test(text)
  )
}
