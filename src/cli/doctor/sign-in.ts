import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { asObject, parseObject } from '../../bytes/json.ts'
import { createDial } from '../../upstream/dial.ts'
import { type DoctorReply, explainFailure, routeTo, send } from '../ask.ts'
import { isSafe } from '../login/gateway-url.ts'
import { findNetwork } from '../login/private-network.ts'
import { none, ok, type ProbeFinding, type ProbeVerdict } from './probe.ts'

/*
 * Checks everything that a sign-in depends on, in the order in which a sign-in uses it. Nothing is billed, and no
 * sign-in begins. The behaviour of Claude Code was observed with 2.1.332 on 27 November 2026.
 */

const discoveryPath = '/.well-known/oauth-authorization-server'

/** @property origin the gateway's URL, including its path */
type SignInPlace = { origin: string; timeoutMs: number; nowMs?: () => number }

/** Whether a gateway offers sign-in. */
export async function offersSignIn({ origin, timeoutMs }: SignInPlace): Promise<boolean> {
  const { status } = await send({ url: origin + discoveryPath, headers: {}, timeoutMs }).catch(() => ({ status: 0 }))
  return status === 200
}

export async function checkSignIn(place: SignInPlace): Promise<ProbeFinding[]> {
  const { origin, timeoutMs, nowMs = Date.now } = place
  const url = new URL(origin)
  const findings: ProbeFinding[] = []
  const check = async (probe: string, run: () => Promise<ProbeVerdict | undefined>) => {
    const finding = { model: null, wire: null, probe, firstByteMs: null, totalMs: null, tokens: 0, status: null }
    try {
      const verdict = await run()
      if (verdict) findings.push({ ...finding, ...verdict })
    } catch (error) {
      findings.push({ ...finding, result: 'failed', note: (error as Error).message })
    }
  }
  await check('sign-in address', async () => {
    if (isSafe(url)) return ok(url.protocol === 'https:' ? 'https' : 'http on this machine')
    throw new Error('clients send nothing over http to another machine: name an address with https')
  })
  await check('sign-in network', () => checkNetwork(origin))
  if (url.protocol === 'https:') {
    let certificate: Certificate | undefined
    await check('certificate', async () => {
      certificate = await readCertificate(url, timeoutMs)
      return judgeEnd(certificate, nowMs())
    })
    await check('pinned certificate', async () => certificate && checkPin(url, certificate))
  }
  let answer: DoctorReply | undefined
  await check('discovery', async () => {
    answer = await send({ url: origin + discoveryPath, headers: {}, timeoutMs })
    return checkDiscovery(origin, answer)
  })
  await check('clock', async () => answer && checkClock(answer, nowMs()))
  return findings
}

async function checkNetwork(origin: string): Promise<ProbeVerdict> {
  const { isPrivate, reason } = await findNetwork(origin).catch((error: unknown) => {
    throw new Error(explainFailure(error, origin, 'no answer'))
  })
  if (isPrivate) return ok(`${reason}: Claude Code signs in by itself`)
  return none(
    `${reason}: Claude Code refuses to sign in by itself; triwire setup claude-code --login lets it run triwire token`,
  )
}

/** A server's certificate. @property endMs the time at which it expires @property digest its SHA-256 in hex */
type Certificate = { endMs: number; digest: string }

const dayMs = 86_400_000
/** A certificate is reported this many days before its end. Automatic renewals come 30 days before the end. */
const soonDays = 14

async function readCertificate(url: URL, timeoutMs: number): Promise<Certificate> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>()
  const dialing = createDial(url, routeTo(url.href))({ take() {} }, (error, socket) =>
    error ? reject(error) : resolve(socket as TLSSocket),
  )
  const timer = setTimeout(() => dialing.destroy(Object.assign(new Error('late'), { name: 'TimeoutError' })), timeoutMs)
  try {
    const socket = await promise
    const { valid_to: end, fingerprint256 } = socket.getPeerCertificate()
    socket.destroy()
    return { endMs: Date.parse(end), digest: fingerprint256.replaceAll(':', '').toLowerCase() }
  } catch (error) {
    throw new Error(explainFailure(error, url.href, `no connection within ${timeoutMs / 1_000} s`))
  } finally {
    clearTimeout(timer)
  }
}

function judgeEnd({ endMs }: Certificate, nowMs: number): ProbeVerdict {
  const days = Math.floor((endMs - nowMs) / dayMs)
  if (days >= soonDays) return ok(`trusted; it ends in ${days} days`)
  throw new Error(
    `it ends in ${days} days: when another one replaces it, Claude Code asks every person whether to trust it, and running sessions say "Not logged in"`,
  )
}

/** Compares the certificate with the one that Claude Code trusts. Only `gatewayTrust` of Claude Code's file is read. */
function checkPin({ host, hostname }: URL, { digest }: Certificate): ProbeVerdict | undefined {
  const folder = process.env['CLAUDE_CONFIG_DIR'] ?? join(homedir(), '.claude')
  let pins: Record<string, unknown> | undefined
  try {
    pins = asObject(parseObject(readFileSync(join(folder, '.credentials.json'), 'utf8'))?.['gatewayTrust'])
  } catch {
    return undefined
  }
  const pin = pins?.[host] ?? pins?.[hostname]
  if (pin === undefined) return undefined
  if (pin === digest) return ok('it is the one that Claude Code trusts here')
  throw new Error(
    'Claude Code trusts another one here, and its sessions say "Not logged in": start claude, run /login and compare the new one',
  )
}

const endpoints = ['device_authorization_endpoint', 'token_endpoint', 'revocation_endpoint']

function checkDiscovery(origin: string, { status, text, headers }: DoctorReply): ProbeVerdict {
  if (status >= 300 && status < 400)
    throw new Error(`it redirects to ${URL.parse(headers.get('location') ?? '', origin)?.origin}: name that address`)
  if (status !== 200)
    throw new Error(
      `${discoveryPath} answers ${status}: is sign_in configured there, and does the proxy in front pass this path on?`,
    )
  const body = parseObject(text)
  if (!body) throw new Error(`${discoveryPath} answers no JSON: does the proxy in front answer in its place?`)
  const missing = endpoints.filter((name) => typeof body[name] !== 'string')
  if (missing.length > 0) throw new Error(`it lacks ${missing.join(', ')}`)
  const foreign = endpoints.find((name) => URL.parse(String(body[name]))?.origin !== new URL(origin).origin)
  if (foreign)
    throw new Error(
      `${foreign} is ${body[foreign]}, of another origin, and clients ignore it: name the address of api_url`,
    )
  return ok('its endpoints are of this origin')
}

/** The largest difference between two clocks, in s, that the delay of the network can explain. */
const aheadSecondsMax = 60

function checkClock({ headers, totalMs }: DoctorReply, nowMs: number): ProbeVerdict | undefined {
  const theirs = Date.parse(headers.get('date') ?? '')
  if (Number.isNaN(theirs)) return undefined
  const seconds = Math.round((nowMs - totalMs / 2 - theirs) / 1_000)
  if (Math.abs(seconds) <= aheadSecondsMax) return ok(`${Math.abs(seconds)} s from the gateway's`)
  const way = seconds > 0 ? 'ahead of' : 'behind'
  throw new Error(
    `the clock of this machine is ${Math.abs(seconds)} s ${way} the gateway's: set both by NTP, since certificates are judged by it`,
  )
}
