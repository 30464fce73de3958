import type { ApiKey, Directory } from './account.ts'
import { readKey } from './keys.ts'

export type Credentials = { authorization?: string; xApiKey?: string }

/**
 * Who asks (ruling R7). Of two credentials the first valid one counts; two bad ones are one failure. Whether the account is
 * active is the caller's question, for a suspended one is no failed authentication (ruling R4).
 * @param nowMs Unix milliseconds.
 */
export function authenticate(
  directory: Directory,
  { authorization, xApiKey }: Credentials,
  nowMs: number,
): { key: ApiKey } | 'missing' | 'invalid' {
  if (!authorization && !xApiKey) return 'missing'
  for (const text of [readBearer(authorization), xApiKey?.trim()]) {
    const key = text ? findValid(directory, text, nowMs) : undefined
    if (key) return { key }
  }
  return 'invalid'
}

function readBearer(authorization: string | undefined): string | undefined {
  return authorization && /^\s*bearer +(\S+)\s*$/i.exec(authorization)?.[1]
}

function findValid(directory: Directory, text: string, nowMs: number): ApiKey | undefined {
  const reading = readKey(text)
  if (reading.kind === 'malformed') return undefined
  const key = directory.findKey(reading.digest)
  return key && (key.expiresMs === undefined || nowMs <= key.expiresMs) ? key : undefined
}
