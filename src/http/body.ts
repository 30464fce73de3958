import type { IncomingMessage, ServerResponse } from 'node:http'
import { free } from '../bytes/free.ts'
import { failureTexts, GatewayError } from '../errors.ts'
import { type BodyShare, tooLarge } from '../gateway/bodies.ts'
import { ClientGone } from '../gateway/call.ts'
import { refusal } from './framing.ts'

export type BodyLimits = { bodyBytesMax: number; bodyMs: number; bodyGapMs: number }

/** The declared length is over the limit: refused before anything else, on any path (spec 8, ruling R1). */
export function isDeclaredTooLarge(request: IncomingMessage, bodyBytesMax: number): boolean {
  const declared = request.headers['content-length']
  return declared !== undefined && Number(declared) > bodyBytesMax
}

/**
 * The whole body, counted while it is read. Says `100 Continue` first where the client waits for it.
 * @param share what the request may hold; what is taken from it is its caller's to give back
 * @param earlyError what the request told before this, while its key was looked for in the store
 * @throws GatewayError 429 where there is no room for it; 413, 408, or 400 for a compressed or malformed body; ClientGone when the client leaves.
 */
export function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  limits: BodyLimits,
  share: BodyShare,
  earlyError?: Error,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (earlyError instanceof GatewayError) {
      reject(earlyError)
      return
    }
    // Nothing more will come of it.
    if (request.destroyed) {
      reject(new ClientGone())
      return
    }
    const encoding = request.headers['content-encoding']
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
      reject(new GatewayError('invalid_body', 'A compressed body is not taken: send it without content-encoding.'))
      return
    }
    if (request.headers.expect !== undefined && request.httpVersionMinor > 0) response.writeContinue()
    const chunks: Buffer[] = []
    let bytes = 0
    let isOver = false
    let deadline: NodeJS.Timeout | undefined
    let gap: NodeJS.Timeout | undefined
    request.on('data', take)
    request.on('end', done)
    request.on('error', broken)
    request.on('close', gone)
    watchLater(() => {
      if (isOver) return
      deadline = setTimeout(late, limits.bodyMs)
      gap = setTimeout(late, limits.bodyGapMs)
    })

    function take(chunk: Buffer): void {
      bytes += chunk.length
      if (bytes > limits.bodyBytesMax) fail(tooLarge(limits.bodyBytesMax))
      else if (!share.take(chunk.length)) fail(new NoRoom())
      else {
        chunks.push(chunk)
        gap?.refresh()
      }
    }
    function done(): void {
      stop()
      resolve(chunks.length === 1 ? chunks[0]! : join(chunks, bytes))
    }
    function late(): void {
      fail(refusal('The request body did not arrive in time: send it at once.', 408))
    }
    /** The edge tells of a body that is not well-formed by an error of ours; any other means the connection. */
    function broken(error: Error): void {
      fail(error instanceof GatewayError ? error : new ClientGone())
    }
    function gone(): void {
      fail(new ClientGone())
    }
    function fail(error: Error): void {
      stop()
      request.pause()
      reject(error)
    }
    function stop(): void {
      isOver = true
      if (deadline) clearTimeout(deadline)
      if (gap) clearTimeout(gap)
      request.off('data', take)
      request.off('end', done)
      request.off('error', broken)
      request.off('close', gone)
    }
  })
}

/** Of the pieces nothing is left. */
function join(chunks: readonly Buffer[], bytes: number): Buffer {
  const whole = Buffer.concat(chunks, bytes)
  for (const chunk of chunks) free(chunk)
  return whole
}

let begun: (() => void)[] = []

/** Most bodies come with their heads. Those that have not come in this turn of the event loop are watched from its end on. */
function watchLater(watch: () => void): void {
  if (begun.push(watch) === 1) setImmediate(watchBegun)
}

function watchBegun(): void {
  const watches = begun
  begun = []
  for (const watch of watches) watch()
}

/** The process holds as many bytes of bodies as it can (ruling R18). */
export class NoRoom extends GatewayError {
  constructor() {
    super('rate_limit_exceeded', failureTexts.serviceFull, { retryAfterSeconds: 1, reason: 'bodies' })
  }
}
