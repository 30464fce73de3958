import { createSign } from 'node:crypto'

/**
 * Signs claims as a JSON Web Token with RS256 (RFC 7515, RFC 7518 3.3).
 * @param key an RSA key in PEM
 * @throws the error of OpenSSL if the key cannot be read
 */
export function signJwt(header: Record<string, string>, claims: Record<string, unknown>, key: string): string {
  const text = [{ alg: 'RS256', typ: 'JWT', ...header }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${text}.${createSign('RSA-SHA256').update(text).sign(key).toString('base64url')}`
}
