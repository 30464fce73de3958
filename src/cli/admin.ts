import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { originOf } from '../config/client-url.ts'
import { type FetchResponse, fetchHttp } from '../upstream/http-fetch.ts'
import { type GlobalOptions, withStore } from './store.ts'

/** A response of a server's admin listener. If there is no response, `trouble` says why, as the end of a sentence. */
export type AdminReply = { status: number; body: unknown; unreached?: string | null } | { trouble: string }

type AdminOptions = GlobalOptions & { adminListen?: string }

/** The longest wait for a response, in ms. A server answers from memory, or after one call to its ledger. */
const patienceMs = 5_000

export const adminOption = ['--admin-listen <address>', "host:port of the server's admin listener"] as const

/**
 * Sends a request to the server that runs with the same configuration. The request uses the token in TRIWIRE_TOKEN.
 * Without that variable, a token for one minute is made in the store, so access to the store is enough.
 */
export async function askServer(
  command: Command,
  path: string,
  method = 'GET',
  fields: Record<string, unknown> = {},
): Promise<AdminReply> {
  const { config, adminListen } = command.optsWithGlobals<AdminOptions>()
  const { glanceAtConfig } = await import('../config/load.ts')
  const { addressBeside, isLoopback } = await import('../config/values.ts')
  const { adminListen: told, adminTls } = glanceAtConfig({
    ...(config && { config }),
    ...(adminListen && { adminListen }),
  })
  // Without TLS, a server takes commands only on loopback. If its listener has another address, commands go to
  // 127.0.0.1, at the listener's port plus 1.
  const address = isLoopback(told) || adminTls ? told : addressBeside(told)
  if (told.port === 0)
    return { trouble: 'the configuration lets the server choose its admin port: name it with --admin-listen' }
  const origin = originOf(address, adminTls ? 'https' : 'http')
  try {
    const asked = { token: await findToken(command), method, fields, certFile: adminTls?.certFile }
    return await ask(`${origin}${path}`, asked)
  } catch (error) {
    return { trouble: explainSilence(error as NodeJS.ErrnoException, origin, adminTls?.certFile) }
  }
}

/** Explains why there is no response. @param certFile the file of the certificate that the server should show */
function explainSilence({ code, message, name, path }: NodeJS.ErrnoException, origin: string, certFile = ''): string {
  // The file of the certificate cannot be read.
  if (path !== undefined && path === certFile) return message
  if (name === 'TimeoutError')
    return `the server on ${origin} did not answer in ${patienceMs / 1_000} s: it is busy or stuck. Read its log, or name another address with --admin-listen`
  if (/CERT|UNABLE_TO_VERIFY/.test(code ?? ''))
    return `the server on ${origin} shows another certificate than ${certFile}, or one that has expired (${code}): if the file was renewed, reload the server (SIGHUP)`
  return `no server answers on ${origin} (${code || message}): start it with triwire serve, or say where its admin listener is with --admin-listen, TRIWIRE_ADMIN_LISTEN or admin_listen in the configuration`
}

type FoundToken = { token: string } | { trouble: string }

async function findToken(command: Command): Promise<FoundToken> {
  const { TRIWIRE_TOKEN: said } = process.env
  if (said) return { token: said }
  try {
    return { token: (await withStore(command, (books) => books.makeCommandToken())).token }
  } catch (error) {
    return { trouble: (error as Error).message }
  }
}

type AdminQuestion = {
  token: FoundToken
  method: string
  fields: Record<string, unknown>
  certFile: string | undefined
}

async function ask(url: string, { token, method, fields, certFile }: AdminQuestion): Promise<AdminReply> {
  const headers: Record<string, string> = 'token' in token ? { authorization: `Bearer ${token.token}` } : {}
  const query = new URLSearchParams(fields as Record<string, string>).toString()
  const isQuery = method === 'GET'
  const response = await fetchHttp(isQuery && query !== '' ? `${url}?${query}` : url, {
    method,
    headers: isQuery ? headers : { ...headers, 'content-type': 'application/json' },
    ...(!isQuery && { body: JSON.stringify(fields) }),
    signal: AbortSignal.timeout(patienceMs),
    ...(certFile !== undefined && { ca: readCertificate(certFile), isPinned: true }),
  })
  const answer = readAnswer(new URL(url).origin, response, await response.text())
  return 'status' in answer && answer.status === 401 ? { trouble: explainRefusal(token) } : answer
}

/** Returns the listener's own certificate, which is the first in its file. */
function readCertificate(certFile: string): string | undefined {
  return /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/.exec(readFileSync(certFile, 'utf8'))?.[0]
}

function explainRefusal(token: FoundToken): string {
  if ('trouble' in token) return `the server wants a token: set TRIWIRE_TOKEN, or name its store (${token.trouble})`
  return process.env['TRIWIRE_TOKEN']
    ? 'the server does not take the token of TRIWIRE_TOKEN: it may have ended, see triwire operator list'
    : 'the server does not take a token of this store: name its own with --store or --config, or set TRIWIRE_TOKEN'
}

/** Reads a response. Another program may listen at the address, so the response may have any form. */
function readAnswer(origin: string, { status, headers }: FetchResponse, text: string): AdminReply {
  const isOurs = /^application\/(problem\+)?json$/.test(headers.get('content-type') ?? '')
  const isProblem = headers.get('content-type') === 'application/problem+json'
  try {
    if (isOurs && (isProblem || status === 200))
      return { status, body: JSON.parse(text), unreached: headers.get('x-triwire-unreached') }
  } catch {
    // The content type promises JSON, but the body is no valid JSON.
  }
  return {
    trouble: `what listens on ${origin} is no triwire of this version: name its admin listener with --admin-listen`,
  }
}
