import { parseObject } from '../bytes/json.ts'
import { usualWire } from '../catalog/wire-names.ts'
import type { ResponseHeaders, Target, TransportFault } from '../upstream/target.ts'
import { judge } from '../upstream/verdict.ts'
import { decodeRefusal, readErrorBody } from '../wires/answers/faults.ts'
import { wires } from '../wires/wires.ts'

/** The kinds of trouble with an upstream that an operator must fix. */
export type Trouble =
  | 'host'
  | 'connection'
  | 'tls'
  | 'proxy'
  | 'protocol'
  | 'timeout'
  | 'no_key'
  | 'key'
  | 'permission'
  | 'credit'
  | 'rate'
  | 'path'
  | 'redirect'
  | 'model'
  | 'question'
  | 'server'

/** The outcome of a test request: a status with the beginning of the body, a fault of the connection, or a timeout. */
export type Came =
  | { status: number; type: string; headers: ResponseHeaders; text: string }
  | { fault: TransportFault }
  | { fault: 'timeout' }

type TroubleFinding = { trouble: Trouble | null; note: string }

/** Words by which providers report, with any status, that an account has no credit left. */
const creditWords =
  /insufficient[_ ](?:quota|balance|credits?|funds)|credit balance|billing|payment required|exceeded your current quota|out of credits?/

const modelWords = /model|deployment/

/** OpenSSL's error codes for a server that speaks plain HTTP instead of TLS. */
const plainHttp = /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|UNEXPECTED_MESSAGE|RECORD_LAYER/

/**
 * Explains the outcome of a test request to the operator: what is wrong, and which key of the configuration to change.
 */
export function judgeAnswer(came: Came, target: Target): TroubleFinding {
  if ('fault' in came) return came.fault === 'timeout' ? silent : judgeFault(came.fault, target)
  const { status, type, text, headers } = came
  const { upstream, model, path } = target
  if (status >= 200 && status < 300) return judgeSuccess(came, target)
  if (status >= 300 && status < 400) {
    const to = hostOf(headers.get('location'), upstream.baseUrl)
    return bad(
      'redirect',
      `redirects${to ? ` to ${to}` : ''} (status ${status}), which is not followed: name the right address as base_url`,
    )
  }
  const fault = decodeRefusal(status, text, headers.get('x-amzn-errortype'))
  const said = quote(fault.text, target)
  const words = `${fault.code ?? ''} ${fault.text}`.toLowerCase()
  const { tell, alarm } = judge({ fault, cause: `upstream_${status}` }, model)
  if (creditWords.test(words) || status === 402 || alarm === 'upstream_account_spent')
    return bad(
      'credit',
      `the account has no credit left at the provider (status ${status})${said}: top it up there, or set \`enabled: false\``,
    )
  if (status === 401 || alarm === 'upstream_account_key')
    return bad(
      'key',
      `the provider refuses the key (status ${status})${said}: check where the account's key comes from, and key_header`,
    )
  if (status === 403 && isPage(type))
    return bad(
      'permission',
      'something before the provider refuses (status 403, a web page): check base_url, and proxies and firewalls on the way',
    )
  if (status === 403 || alarm === 'upstream_account_denied')
    return bad(
      'permission',
      `the provider does not let this key use the model, or not from this address (status ${status})${said}: check what the key may use there`,
    )
  if (status === 429 || (status < 500 && tell === 'capacity'))
    return bad(
      'rate',
      `the key works, but the account is at its limit now (status ${status})${said}: raise the limit there, or ask again later`,
    )
  const isAboutModel =
    fault.code === 'model_not_found' ||
    words.includes(model.upstreamModel.toLowerCase()) ||
    (status === 404 && modelWords.test(words))
  if (isAboutModel && (status === 404 || status === 400))
    return bad(
      'model',
      `the provider does not know the model \`${model.upstreamModel}\` (status ${status})${said}: check upstream_model`,
    )
  if (status === 404 || status === 405)
    return bad(
      'path',
      `there is nothing at \`${path}\` (status ${status})${said}: ${model.wire === usualWire ? '' : `the provider may not speak \`wire: ${model.wire}\`, most speak \`wire: ${usualWire}\`; `}check the path of base_url, or set \`paths\``,
    )
  if (status < 500)
    return bad('question', `the provider refuses a plain question (status ${status})${said}: check the model's profile`)
  return bad('server', `the provider fails (status ${status})${said}: try again later, and look at its status page`)
}

/** Explains a fault of a proxy by its status. A proxy that is used without a tunnel may refuse a password with 401. */
function proxyFault(status: number | undefined, host: string): string {
  if (status === undefined) return 'cannot be reached: check its address, and that it runs'
  if (status === 407 || status === 401)
    return `refuses the credentials (status ${status}): check user and password in its address`
  return status < 500
    ? `refuses the way to ${host} (status ${status}): allow it there`
    : `does not reach ${host} (status ${status}): check base_url, and the proxy's log`
}

const silent = bad(
  'timeout',
  'the answer was not complete in time: check base_url, and firewalls on the way; a model that loads may need longer (--timeout)',
)

function judgeSuccess({ type, text }: Extract<Came, { status: number }>, { model, path }: Target): TroubleFinding {
  if (isPage(type) || !/^\s*(?:[{[]|data:|event:|:)/.test(text))
    return bad(
      'path',
      `the answer at \`${path}\` is not that of a model (${type || 'no content type'}): check base_url`,
    )
  const error = readErrorBody(Buffer.from(text))
  if (error) return bad('server', `answers with an error under status 200: ${error.code ?? 'no code'}`)
  if (isOfOtherWire(text, model))
    return bad(
      'path',
      `the answer at \`${path}\` is not one of \`wire: ${model.wire}\`: check wire, and the path of base_url`,
    )
  return { trouble: null, note: 'answers' }
}

/** Whether a whole JSON answer cannot be read as one of the model's wire. A stream, or a part of an answer, is not judged. */
function isOfOtherWire(text: string, { wire, profile }: Target['model']): boolean {
  if (parseObject(text) === undefined) return false
  const events = wires[wire].model.createDecoder(profile).whole(text)
  return events.some((event) => event.type === 'fail' && event.fault.kind === 'broken')
}

function judgeFault({ cause, reason = '', proxyStatus }: TransportFault, target: Target): TroubleFinding {
  const { upstream } = target
  const { host, hostname, protocol } = new URL(upstream.baseUrl)
  switch (cause) {
    case 'upstream_dns':
      return bad(
        'host',
        `there is no host \`${hostname}\`: check base_url for typing errors, and this machine's DNS; behind a company's proxy set \`proxy\``,
      )
    case 'upstream_connect':
      return bad(
        'connection',
        `nothing answers at ${host}: check host and port of base_url, that the server runs, and firewalls on the way`,
      )
    case 'upstream_proxy':
      return bad(
        'proxy',
        `the proxy of ${upstream.proxy?.source ?? 'the environment'} ${proxyFault(proxyStatus, host)}, or ask directly with \`proxy: none\``,
      )
    case 'upstream_tls':
      return bad('tls', explainTls(reason, hostname))
    case 'upstream_reset':
      return bad(
        'protocol',
        `the connection to ${host} was cut${protocol === 'http:' ? ': a server that wants https:// does so, check base_url' : ': check base_url, and proxies and firewalls on the way'}`,
      )
    case 'upstream_silent':
      return bad('connection', `the path to ${host} was lost while it was waited for: check the firewalls on the way`)
    case 'no_descriptors':
      return bad('connection', 'this process may open no more connections: raise its limit of open files')
    default:
      return bad(
        'protocol',
        `the server at ${host} does not speak HTTP${protocol === 'http:' ? ': if the server wants https://, write that in base_url' : ': check base_url'}`,
      )
  }
}

/** Explains a failure of TLS by the error code of Node or OpenSSL. */
function explainTls(reason: string, hostname: string): string {
  if (plainHttp.test(reason)) return 'the server speaks plain HTTP there: write http:// in base_url, or check its port'
  if (reason === 'CERT_HAS_EXPIRED')
    return `the certificate of ${hostname} has expired: whoever runs it has to renew it`
  if (reason === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `the certificate is not for ${hostname}: check the host of base_url, or whether a proxy answers in its place`
  return `the certificate of ${hostname} is not trusted (${reason || 'TLS failed'}): name the authority that signed it, as a company's proxy has one, with ca_file`
}

function bad(trouble: Trouble, note: string): TroubleFinding {
  return { trouble, note }
}

function isPage(type: string): boolean {
  return type === 'text/html' || type === 'application/xhtml+xml'
}

const quotedCharactersMax = 160

/** Returns the provider's own text on one line. The key is removed, and so are parts of it that providers quote. */
function quote(text: string, { key }: Target): string {
  let line = text.replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ').trim()
  for (const secret of key?.known ?? []) line = line.replaceAll(secret, '…')
  // Some providers quote the beginning and the end of a key that they refuse.
  line = line.replace(/\b(?:sk|key|gsk|AIza)[-_]?[\w*.…-]{6,}/g, '…')
  const cut = line.length > quotedCharactersMax ? `${line.slice(0, quotedCharactersMax)}…` : line
  return cut ? `, in its words "${cut}"` : ''
}

function hostOf(location: string | undefined, base: string): string | undefined {
  return location === undefined ? undefined : URL.parse(location, base)?.origin
}
