import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { testFolder } from './folder.ts'

/** A certificate and its key in PEM, and their files. */
export type Pair = { cert: string; key: string; certFile: string; keyFile: string }

/** A certificate authority, made with openssl. Keys are elliptic, so that it takes only milliseconds. */
export type Authority = {
  ca: string
  caFile: string
  /** @param days until the certificate ends; negative for one that has expired */
  issue(host: string, days?: number): Pair
}

const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

export function createAuthority(): Authority {
  const folder = testFolder('tls')
  const at = (name: string) => join(folder, name)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' })
  const [caFile, caKey] = [at('ca.pem'), at('ca.key')]
  openssl('req', '-x509', ...curve, '-keyout', caKey, '-out', caFile, '-subj', '/CN=Test Authority', '-days', '30')
  let issued = 0
  return {
    ca: readFileSync(caFile, 'utf8'),
    caFile,
    issue(host, days = 30) {
      const name = `leaf-${issued++}`
      const [keyFile, certFile, request, extension] = ['key', 'pem', 'csr', 'ext'].map((end) => at(`${name}.${end}`))
      writeFileSync(extension!, `subjectAltName=DNS:${host}\n`)
      openssl('req', ...curve, '-keyout', keyFile!, '-out', request!, '-subj', `/CN=${host}`)
      const signed = ['-CA', caFile, '-CAkey', caKey, '-CAcreateserial', '-days', `${days}`, '-extfile', extension!]
      openssl('x509', '-req', '-in', request!, ...signed, '-out', certFile!)
      const [cert, key] = [certFile!, keyFile!].map((file) => readFileSync(file, 'utf8'))
      return { cert: cert!, key: key!, certFile: certFile!, keyFile: keyFile! }
    },
  }
}
