import { failureTexts, GatewayError } from '../errors.ts'
import type { BodyShare } from '../gateway/fairness/places.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { play as playFor } from '../gateway/infer.ts'
import type { CallRecord, RecordListener } from '../gateway/record.ts'
import { errorBody } from '../http/answer.ts'
import { answeredByLine, retryLines } from '../http/headers.ts'
import type { HttpExchange } from '../http/http-exchange.ts'
import { endRecord, type FormHeaders, HttpCall } from '../http/routes.ts'
import type { Play } from '../operations/operation.ts'
import { wires } from '../wires/wires.ts'
import { linesOf } from './answer.ts'
import type { PlayRequest } from './api.ts'
import { guardHeaders } from './guard.ts'

const { 'cache-control': noStore, ...guards } = guardHeaders
const guardLines = linesOf(guards)
const formCommon: FormHeaders = ({ id }) => `${guardLines}x-request-id: ${id}\r\n`
const formHeaders: FormHeaders = (record) => formCommon(record) + answeredByLine(record)

/**
 * Creates the function that serves requests of the playground. An operator's request is made for an account, and an
 * owner's request for the owner's key. Limits, credit, hold and debit are those of that account or key.
 * @param isDraining while it returns true, no request begins
 * @returns `playing`: the number of requests whose answer is not complete
 */
export function createPlayground(
  gateway: Gateway,
  listeners: readonly RecordListener[],
  isDraining: () => boolean,
): { play: PlayRequest; playing(): number } {
  let playing = 0
  return { play, playing: () => playing }

  function play(
    exchange: HttpExchange,
    asked: Play,
    { requestId, ip }: { requestId: string; ip: string },
    share?: BodyShare,
  ): void {
    const beganMs = gateway.clockMs()
    const sinceMs = () => gateway.clockMs() - beganMs
    const wire = wires[asked.wire]
    const named = { id: requestId, method: 'POST', path: wire.client.path, ip, walk: 'infer', wire: wire.name } as const
    const record: CallRecord = { ...named, startedMs: gateway.nowMs(), beganMs }
    const { limits, timeouts, ownPage } = gateway.snapshots.current.config
    const body = { bytes: Buffer.from(asked.body), release: () => share?.release() }
    const parts = { exchange, wire: wire.name, record, formHeaders, sinceMs, body }
    const call = new HttpCall({ ...parts, limits: { ...limits, ...timeouts } })
    playing++
    exchange.whenOver(() => {
      playing--
    })
    endRecord({ exchange, record, listeners, sinceMs, answer: sendRefusal, ownPage }).follow(begin())

    async function begin(): Promise<void> {
      if (isDraining()) throw new GatewayError('rate_limit_exceeded', failureTexts.serviceFull, { reason: 'busy' })
      await playFor(gateway, call, record, { ...asked.account }, asked.keyDigest)
    }

    function sendRefusal(error: GatewayError): void {
      const lines = `${formCommon(record)}cache-control: ${noStore}\r\n${retryLines(error)}content-type: application/json\r\n`
      exchange.answer(error.status, lines, errorBody(error, requestId, wire.client))
      exchange.watchStall(timeouts.writeStallMs)
    }
  }
}
