import { request } from 'node:http'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { isStream, mark, marksOf } from '../answers.ts'
import { askOf, isGateway } from '../request.ts'
import type { TestedServer } from '../servers.ts'
import type { Workload } from '../workloads.ts'

const limitMs = 60_000
const toldMax = 160

/** `why`: the reason why a server cannot do a row, in its own words if it has some. `pieces`: the pieces of its answer. */
export type Probed = { why: string | undefined; pieces: number }

/** Sends one request to find out whether a server can do a row; of a row with both, one for an answer and one for a stream. */
export async function probe(server: TestedServer, workload: Workload): Promise<Probed> {
  const found: Probed = { why: undefined, pieces: 0 }
  try {
    for (const at of workload.answer === 'mixed' ? [0, 1] : [0]) {
      const { status, text, pieces } = await askOnce(server, workload, at)
      found.pieces += pieces
      found.why ??= judge(server, workload, status, text, at)
    }
    return found
  } catch (error) {
    return { why: `no answer: ${(error as Error).message}`, pieces: 0 }
  }
}

/** Patterns that only a whole answer of a wire has. */
const forms: Record<ClientWire, { whole: RegExp; stream: RegExp }> = {
  chat: { whole: /"choices"\s*:/, stream: /^data: ?\[DONE\]/m },
  messages: { whole: /"type"\s*:\s*"message"/, stream: /^data: ?\{.*"type"\s*:\s*"message_stop"/m },
  responses: { whole: /"object"\s*:\s*"response"/, stream: /^data: ?\{.*"type"\s*:\s*"response.completed"/m },
}

/** A good answer has each of its words once, and is in the form of the requested wire. */
export function judge(
  server: Pick<TestedServer, 'name'>,
  { answer, wire, modelWire, bodies }: Workload,
  status: number,
  text: string,
  at = 0,
): string | undefined {
  if (status !== 200) return `${status} ${shorten(text)}`
  const expected = isGateway(server) ? wire : modelWire
  const wanted = marksOf(answer, expected)
  const had = text.split(mark).length - 1
  const form = isStream(answer) || bodies[at]?.['stream'] === true ? 'stream' : 'whole'
  if (had !== wanted) return `its answer has ${had} of ${wanted} words: ${shorten(text)}`
  return forms[expected][form].test(text) ? undefined : `its answer is none of the ${expected} wire: ${shorten(text)}`
}

function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > toldMax ? `${line.slice(0, toldMax)} …` : line
}

function askOnce(
  server: TestedServer,
  workload: Workload,
  at: number,
): Promise<{ status: number; text: string; pieces: number }> {
  const { path, headers, body } = askOf(workload, server, at)
  return new Promise((resolve, reject) => {
    const call = request({ port: server.port, host: '127.0.0.1', method: 'POST', path, headers }, (response) => {
      let text = ''
      let pieces = 0
      response.setEncoding('utf8')
      response.on('data', (piece) => {
        text += piece
        pieces++
      })
      response.on('end', () => resolve({ status: response.statusCode!, text, pieces }))
      response.on('error', reject)
    })
    call.setTimeout(limitMs, () => call.destroy(new Error(`none within ${limitMs / 1_000} s`)))
    call.on('error', reject)
    call.end(body)
  })
}
