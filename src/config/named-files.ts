import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Path } from './document.ts'
import type { ConfigFile } from './schema.ts'
import { keyMistake } from './values.ts'

/** The text of each file that the configuration names, by absolute path. */
export type NamedFiles = ReadonlyMap<string, string>

/** The largest file that is read, in bytes. Keys, certificates and chains are smaller. */
const fileBytesMax = 1_048_576

type Report = (path: Path, message: string) => void

/** Reads the files that a configuration names, and reports mistakes in them. */
export function readNamedFiles(file: ConfigFile, folder: string, report: Report): NamedFiles {
  const texts = new Map<string, string>()
  for (const [name, { accounts, ca_file: ca }] of Object.entries(file.upstreams)) {
    for (const [index, { key_file: key, google, azure }] of accounts.entries()) {
      const at = ['upstreams', name, 'accounts', index]
      check([...at, 'key_file'], key, (text) => keyMistake(text.trim()))
      check([...at, 'google', 'credentials_file'], google?.credentials_file, jsonMistake)
      check([...at, 'azure', 'secret_file'], azure?.secret_file, (text) => keyMistake(text.trim()))
    }
    check(['upstreams', name, 'ca_file'], ca, certificatesMistake)
  }
  check(['sign_in', 'client_secret_file'], file.sign_in?.client_secret_file, (text) =>
    text.trim() === '' ? 'holds no secret: it is empty' : undefined,
  )
  check(['sign_in', 'ca_file'], file.sign_in?.ca_file, certificatesMistake)
  for (const [index, { ca_file: ca }] of file.webhooks.entries())
    check(['webhooks', index, 'ca_file'], ca, certificatesMistake)
  for (const [path, tls] of [
    [['tls'], file.tls],
    [['admin', 'tls'], file.admin.tls],
  ] as const) {
    if (!tls) continue
    const cert = check([...path, 'cert'], tls.cert, certificatesMistake)
    const key = check([...path, 'key'], tls.key, privateKeyMistake)
    if (cert !== undefined && key !== undefined) checkPair(path, cert, key)
  }
  return texts

  /**
   * Reads and checks a file, and reports a mistake. @returns the text; undefined after a mistake, or if no file is
   * named
   */
  function check(path: Path, named: string | undefined, find: (text: string) => string | undefined) {
    if (named === undefined) return undefined
    const absolute = resolve(folder, named)
    try {
      const text = texts.get(absolute) ?? readText(absolute)
      texts.set(absolute, text)
      const mistake = find(text)
      if (mistake === undefined) return text
      report(path, mistake)
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      report(path, `names a file that cannot be read (${code ?? message}); relative paths begin at the configuration`)
    }
    return undefined
  }

  function checkPair(path: Path, cert: string, key: string): void {
    if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
      report(
        [...path, 'key'],
        `is not the key of the first certificate in \`${path.join('.')}.cert\`; there the server's own comes first, and those of its authorities behind it`,
      )
      return
    }
    try {
      process.getBuiltinModule('node:tls').createSecureContext({ cert, key })
    } catch (error) {
      report([...path, 'cert'], `is not taken for TLS (${(error as NodeJS.ErrnoException).code})`)
    }
  }
}

function readText(path: string): string {
  const stat = statSync(path)
  // A read from a pipe could block, and a pipe can be read only once.
  if (!stat.isFile()) throw new Error('no regular file')
  if (stat.size > fileBytesMax) throw new Error('too large')
  return readFileSync(path, 'utf8')
}

const certificate = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

function certificatesMistake(text: string): string | undefined {
  const found = text.match(certificate) ?? []
  const areRead = found.every((pem) => {
    try {
      return new X509Certificate(pem)
    } catch {
      return false
    }
  })
  return found.length > 0 && areRead ? undefined : 'must hold certificates in PEM (-----BEGIN CERTIFICATE-----)'
}

function jsonMistake(text: string): string | undefined {
  try {
    if (typeof JSON.parse(text)?.type === 'string') return undefined
  } catch {}
  return 'must hold credentials of Google in JSON, with their `type`'
}

function privateKeyMistake(text: string): string | undefined {
  try {
    createPrivateKey(text)
    return undefined
  } catch {
    return 'must hold a private key in PEM (-----BEGIN PRIVATE KEY-----) without a passphrase'
  }
}
