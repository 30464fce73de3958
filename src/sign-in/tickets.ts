import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'

/**
 * Makes and opens tickets. A ticket is sealed data that leaves this server and comes back, or that is stored. A ticket
 * can be opened on every server of the store, if it is unchanged and of the expected kind.
 */
export type Tickets = ReturnType<typeof createTickets>

const [ivBytes, tagBytes] = [12, 16]

type TicketContent = { value: unknown; untilMs: number | null }

/** Creates the functions for tickets. @param sealKey the gateway's seal key @param nowMs returns Unix milliseconds */
export function createTickets(sealKey: Uint8Array, nowMs: () => number) {
  const key = createHmac('sha256', sealKey).update('triwire sign-in').digest()
  return { seal, open }

  /**
   * Makes a ticket.
   * @param lifeMs how long it is valid; undefined: for ever
   * @returns a text that can stand in a URL
   */
  function seal(kind: string, value: unknown, lifeMs?: number): string {
    const iv = randomBytes(ivBytes)
    const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(kind))
    const sealed: TicketContent = { value, untilMs: lifeMs === undefined ? null : nowMs() + lifeMs }
    const text = Buffer.concat([cipher.update(JSON.stringify(sealed)), cipher.final()])
    return Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64url')
  }

  /**
   * Opens a ticket. @returns the value; undefined if the ticket has expired, is of another kind, or is not exactly as
   * we made it
   */
  function open<T>(kind: string, ticket: string | undefined | null): T | undefined {
    const bytes = Buffer.from(ticket ?? '', 'base64url')
    if (bytes.length <= ivBytes + tagBytes) return undefined
    try {
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes)).setAAD(Buffer.from(kind))
      decipher.setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes))
      const text = Buffer.concat([decipher.update(bytes.subarray(ivBytes + tagBytes)), decipher.final()])
      const { value, untilMs } = JSON.parse(text.toString('utf8')) as TicketContent
      return untilMs === null || nowMs() < untilMs ? (value as T) : undefined
    } catch {
      return undefined
    }
  }
}
