import { awsKeyCodes, type Refusal, refusals } from '../catalog/refusals.ts'
import type { Fault } from '../inference/answer.ts'
import { isOverLongCode } from './over-long.ts'

/** The decision about a failed attempt (rulings U1, U2). */
export type Verdict = {
  /** The kind of error that the client gets if no other attempt succeeds; the texts are in refusal.ts. */
  tell: 'rejected' | 'capacity' | 'account' | 'broken'
  /** The accounts that may be tried next if the client has seen nothing: any account, any other account, or none. */
  elsewhere: 'any' | 'another' | 'nobody'
  /** When the account gets a cooldown: at once, after repeated failures, or not for this failure. */
  cool: 'now' | 'repeated' | 'no'
  /** The cause that the log gets instead of the usual cause, if only an operator can cure the failure. */
  alarm?: 'upstream_model_not_found' | `upstream_account_${AccountTrouble}`
  /** Whether the provider cannot read sealed items of the request. Without them, it may accept the request (U13). */
  isOfSealed?: true
}

/** The trouble with the operator's account: no money, no valid key, or no permission. */
type AccountTrouble = Exclude<Refusal['about'], 'busy' | 'request' | 'sealed'>

/** The facts of a failed attempt, before they are judged. */
export type Failure = {
  fault: Fault
  /** The cause for the log, in fixed words without upstream text. */
  cause: string
  retryAfterSeconds?: number | undefined
  /** Set if `retryAfterSeconds` is the shortest wait of a chain. Clients get it with any status (ruling Y23). */
  isOfChain?: boolean
  /** Whether a reused connection was reset before any byte came. Then nothing was processed. */
  isReuseRace?: boolean
}

/**
 * Returns the facts of an attempt whose answer has failed.
 * @param said the cause to use if the model itself reported an error. For a broken or unreadable answer, the cause
 *   follows from the fault
 */
export function failureOf(fault: Fault, said: string): Failure {
  const { kind, unread } = fault
  if (unread) return { fault, cause: unread === 'oversize' ? 'upstream_oversize' : 'upstream_protocol' }
  return { fault, cause: kind === 'truncated' ? 'upstream_cut' : said }
}

/** The facts about a model that decide what a text of its upstream means. */
type JudgedModel = {
  upstreamModel: string
  /**
   * The profile's rules for errors. `accountFaults` are words of refusals that concern our account (ruling U2).
   * `requestFaults` are words of server errors that blame the request (U8).
   */
  profile: { refusals: readonly Refusal[]; accountFaults: readonly string[]; requestFaults: readonly string[] }
}

const caller: Verdict = { tell: 'rejected', elsewhere: 'nobody', cool: 'no' }
const unreadable: Verdict = { ...caller, isOfSealed: true }
/** The provider accepts none of our requests on this account. */
const barred: Verdict = { tell: 'account', elsewhere: 'another', cool: 'now' }
/** A firewall in front of the provider refused. It may have refused the words of this one request. */
const screened: Verdict = { ...barred, cool: 'repeated' }
const full: Verdict = { tell: 'capacity', elsewhere: 'another', cool: 'now' }
const overloaded: Verdict = { tell: 'capacity', elsewhere: 'another', cool: 'repeated' }
const passing: Verdict = { tell: 'broken', elsewhere: 'another', cool: 'repeated' }
/** The server closed a connection that had been idle too long. The account is not at fault. */
const race: Verdict = { tell: 'broken', elsewhere: 'any', cool: 'no' }
/** The answer broke off after its head. The model has worked until then, so the provider may charge for it. */
const cut: Verdict = { tell: 'broken', elsewhere: 'nobody', cool: 'repeated' }
/** Our path or model name is wrong, or the answer is invalid. Another account would give the same result. */
const ours: Verdict = { tell: 'broken', elsewhere: 'nobody', cool: 'no' }
const misnamed: Verdict = { ...ours, alarm: 'upstream_model_not_found' }

/** Verdicts by the HTTP status, or by the status that an error type stands for. Any other 5xx is `passing`. */
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
  // Bedrock sends 424 if the model itself failed without a status of its own (botocore 1.44.8, `ModelErrorException`).
  [424, passing],
  [425, passing],
  [429, full],
  [529, overloaded],
])

/** Verdicts for attempts that got no status, by the cause. For any other cause, the kind of the fault decides. */
const byCause = new Map<string, Verdict>([
  ['upstream_connect', passing],
  ['upstream_dns', passing],
  ['upstream_tls', passing],
  ['upstream_proxy', passing],
  ['upstream_reset', passing],
])

const byKind: Record<Fault['kind'], Verdict> = {
  rejected: caller,
  capacity: full,
  account: barred,
  broken: ours,
  truncated: cut,
}

/** Statuses that mean trouble with the operator's account at the upstream, each with the kind of trouble. */
const accountTroubles = new Map<number, AccountTrouble>([
  [401, 'key'],
  [402, 'spent'],
  [403, 'denied'],
])

/**
 * Rules for refusals, which apply after the rules of every profile. They contain the codes of clouds, and codes that
 * have the same meaning on all wires and with any status.
 */
export const commonRefusals: readonly Refusal[] = [
  { about: 'key', code: 'authentication_error' },
  { about: 'key', code: 'invalid_api_key' },
  { about: 'spent', code: 'billing_error' },
  { about: 'spent', code: 'insufficient_quota' },
  { about: 'denied', code: 'permission_error' },
  { about: 'sealed', code: 'invalid_encrypted_content' },
  // The rows of clouds apply to all profiles, because a cloud serves models of every profile.
  ...refusals.aws,
  ...refusals.google,
  ...refusals.azure,
]

const staleCodes: ReadonlySet<string> = new Set(awsKeyCodes)

/**
 * Whether a refusal may mean that a credential has expired, or that the time of a signature was wrong. A new credential
 * may help.
 */
export function isStale({ fault }: Failure): boolean {
  return fault.status === 401 || fault.classes?.some((code) => staleCodes.has(code)) === true
}

/** The text by which servers report an unknown model with status 400 (LiteLLM). */
const unknownModel = 'invalid model name passed in model='

/** Judges a failed attempt. Only a reset of a reused connection lets the same account be tried again (ruling U1). */
export function judge({ fault, cause, isReuseRace }: Failure, model: JudgedModel): Verdict {
  if (isReuseRace) return race
  const isHttp = cause === `upstream_${fault.status}`
  const refusal = [...model.profile.refusals, ...commonRefusals].find((row) => fits(row, fault, isHttp))
  if (refusal) return verdictOf(refusal, isHttp ? fault.status : undefined)
  // The name that the upstream does not know is the configured one. A client's unknown name never reaches an upstream
  // (ruling U9).
  if (fault.code === 'model_not_found') return misnamed
  const text = fault.text.toLowerCase()
  const { status } = fault
  const found = status === undefined ? undefined : (byStatus.get(status) ?? (status >= 500 ? passing : ours))
  if (found !== undefined && status! >= 500 && isCallers(text, fault.code, model)) return caller
  const verdict = found ?? (fault.kind === 'truncated' ? cut : (byCause.get(cause) ?? byKind[fault.kind]))
  if (verdict === barred && !isHttp && status !== undefined) return verdictOf({ about: accountTroubles.get(status)! })
  if (status === 403 && fault.isPage) return screened
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

/** Returns the verdict of a refusal. There is no alarm if the HTTP status alone already shows the trouble. */
function verdictOf({ about, isPartial }: Refusal, status?: number): Verdict {
  if (about === 'request') return caller
  if (about === 'sealed') return unreadable
  const whole = about === 'busy' ? full : barred
  const verdict: Verdict = isPartial ? { ...whole, cool: 'no' } : whole
  const isNamed = about === 'busy' || (status !== undefined && accountTroubles.get(status) === about)
  return isNamed ? verdict : { ...verdict, alarm: `upstream_account_${about}` }
}

/**
 * Whether a server error is the request's fault: an image for a text model, or a prompt that does not fit (ruling U8).
 */
function isCallers(text: string, code: string | undefined, { profile }: JudgedModel): boolean {
  return isOverLongCode(code) || profile.requestFaults.some((part) => text.includes(part.toLowerCase()))
}

/** The complete texts by which servers report an unknown path with status 404; the last is llama.cpp's. */
const unknownPath: ReadonlySet<string> = new Set(['', 'not found', 'file not found'])

/**
 * Whether a 404 is about our path or our model name, which the client cannot correct. If not, the 404 is about
 * something in the request.
 */
function isAboutUs(text: string, upstreamModel: string): boolean {
  if (unknownPath.has(text) || text.includes(upstreamModel)) return true
  return (
    /\b(?:model|path|route|url|endpoint|page)\b/.test(text) &&
    /not (?:be )?found|not exist|unknown|no such|invalid|not support/.test(text)
  )
}
