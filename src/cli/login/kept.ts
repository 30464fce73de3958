import { createHash } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { fileFault, SignInFault } from './fault.ts'
import { readGatewayUrl } from './gateway-url.ts'

/** The tokens of a sign-in. Times are Unix milliseconds by this machine's clock. */
export type KeptTokens = {
  access_token: string
  /**
   * Undefined if the server sent no refresh token. Then the person must sign in again when the access token expires.
   */
  refresh_token?: string
  /** The time just before the request for the tokens. */
  obtained_ms: number
  expires_ms: number
}

/** The content of a sign-in's file. After the gateway has ended the sign-in, the reason `ended` replaces `tokens`. */
export type KeptSignIn = {
  url: string
  token_endpoint: string
  revocation_endpoint?: string
  /** The person's e-mail address at the gateway. */
  email?: string
  tokens?: KeptTokens
  ended?: string
}

/**
 * Returns the folder of all sign-ins. It is below `XDG_STATE_HOME`, because people copy and publish configuration
 * folders. A relative path in a variable is ignored (XDG Base Directory Specification 0.8).
 */
function signInFolder(env: NodeJS.ProcessEnv = process.env): string {
  const { XDG_STATE_HOME: state = '', LOCALAPPDATA: local = '' } = env
  if (isAbsolute(state)) return join(state, 'triwire', 'sign-ins')
  if (process.platform === 'win32' && isAbsolute(local)) return join(local, 'triwire', 'sign-ins')
  return join(homedir(), '.local', 'state', 'triwire', 'sign-ins')
}

/** Returns the file of a gateway's sign-in. The file name has the gateway's host, and a digest of the whole URL. */
export function fileOf(url: string, folder = signInFolder()): string {
  const host = new URL(url).host.replace(/[^a-z0-9.-]+/g, '-').slice(0, 60)
  return join(folder, `${host}-${createHash('sha256').update(url).digest('hex').slice(0, 12)}.json`)
}

/** Reads a stored sign-in. @returns undefined if there is no file @throws SignInFault if the file cannot be used */
export function readKept(path: string, url = 'URL'): KeptSignIn | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw fileFault('read', path, error)
  }
  const kept = parseKept(text)
  if (kept) return kept
  throw new SignInFault(3, `${path} is damaged: sign in again with triwire login ${url}`)
}

function parseKept(text: string): KeptSignIn | undefined {
  try {
    const kept = JSON.parse(text) as KeptSignIn
    const { url, token_endpoint, revocation_endpoint, email, tokens, ended } = kept
    const texts = [revocation_endpoint, email, ended, tokens?.refresh_token]
    const isWhole =
      [url, token_endpoint].every((one) => typeof one === 'string' && URL.canParse(one)) &&
      texts.every((one) => one === undefined || typeof one === 'string') &&
      (tokens
        ? isBearer(tokens.access_token) && Number.isFinite(tokens.obtained_ms) && Number.isFinite(tokens.expires_ms)
        : ended !== undefined)
    return isWhole ? kept : undefined
  } catch {
    return undefined
  }
}

/** Whether there is a token that has not expired. */
export function isGood({ expires_ms }: KeptTokens, nowMs = Date.now()): boolean {
  return expires_ms > nowMs
}

/** Whether a sign-in is over, so that the person must sign in again to get a token. */
export function isOver({ tokens }: KeptSignIn): boolean {
  return tokens === undefined || (tokens.refresh_token === undefined && !isGood(tokens))
}

/** Whether a text can be a bearer token (RFC 6750 §2.1). Agents put the token into a header without a check. */
export function isBearer(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9._~+/-]{1,16384}=*$/.test(value)
}

/**
 * Returns all sign-ins. Files that cannot be read or are damaged are skipped, unless there is no other file.
 * @throws SignInFault the fault of a file, if no sign-in can be read
 */
function listKept(folder = signInFolder()): KeptSignIn[] {
  let names: string[]
  try {
    names = readdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw fileFault('read', folder, error)
  }
  let fault: unknown
  const all = names
    .filter((name) => name.endsWith('.json'))
    .sort()
    .flatMap((name): KeptSignIn[] => {
      try {
        const kept = readKept(join(folder, name))
        return kept ? [kept] : []
      } catch (error) {
        fault = error
        return []
      }
    })
  if (all.length === 0 && fault) throw fault
  return all
}

/**
 * Returns the gateway for a command: the named gateway, or else the only gateway with a sign-in. Undefined if there is
 * no sign-in.
 * @throws SignInFault if there are several sign-ins, because a token must not go to a gateway that nobody named. A
 *   sign-in that has ended counts too: an agent of that gateway may still run `triwire token`, and must not get the
 *   token of another gateway.
 */
export function findUrl(named: string | undefined): string | undefined {
  if (named !== undefined) return readGatewayUrl(named)
  const all = listKept()
  if (all.length < 2) return all[0]?.url
  const names = all.map((kept) => (isOver(kept) ? `${kept.url} (ended)` : kept.url)).join(' and ')
  throw new SignInFault(3, `there are sign-ins at ${names}: name one of them, or remove one with triwire logout URL`)
}

/** Returns the same gateway as `findUrl`. @throws SignInFault also if there is no sign-in */
export function chooseUrl(named: string | undefined): string {
  const url = findUrl(named)
  if (url !== undefined) return url
  throw new SignInFault(
    3,
    'nobody is signed in on this machine: run triwire login URL, with the address of your gateway',
  )
}

/** The next content of a file, for which disk space is reserved. `write` stores it; `drop` frees the reserved space. */
type NextState = { write(kept: KeptSignIn): void; drop(): void }

/** Enough bytes for a sign-in with the longest tokens in practice: JWTs that list groups. */
const reservedBytes = 16_384

/**
 * Reserves disk space before new tokens are requested, because a sign-in is lost if its new tokens cannot be stored.
 * The caller must hold the lock of the file.
 * @throws SignInFault if the folder or the file cannot be written
 */
export function prepareNext(path: string): NextState {
  const unfinished = `${path}.new`
  let file: number
  try {
    // A process that was killed may have left this file.
    rmSync(unfinished, { force: true })
    file = openSync(unfinished, 'wx', 0o600)
  } catch (error) {
    throw fileFault('write', unfinished, error)
  }
  let isOpen = true
  const drop = () => {
    if (!isOpen) return
    isOpen = false
    closeSync(file)
    rmSync(unfinished, { force: true })
  }
  try {
    writeSync(file, Buffer.alloc(reservedBytes, ' '), 0, reservedBytes, 0)
    fsyncSync(file)
  } catch (error) {
    drop()
    throw fileFault('write', unfinished, error)
  }
  return {
    drop,
    write(kept) {
      try {
        const bytes = Buffer.from(`${JSON.stringify(kept, null, 2)}\n`)
        writeSync(file, bytes, 0, bytes.length, 0)
        ftruncateSync(file, bytes.length)
        fsyncSync(file)
        renameSync(unfinished, path)
        syncFolderOf(path)
        closeSync(file)
        isOpen = false
      } catch (error) {
        drop()
        throw fileFault('write', path, error)
      }
    },
  }
}

/** Syncs the folder, so that a rename survives a power failure. Windows cannot sync a folder. */
function syncFolderOf(path: string): void {
  if (process.platform === 'win32') return
  const folder = openSync(join(path, '..'), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** Makes the folder, which only this user can read. @throws SignInFault */
export function makeFolder(folder = signInFolder()): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw fileFault('write', folder, error)
  }
}
