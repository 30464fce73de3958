import { encodeLatin1, type RawFrame, withData } from '../../bytes/frame-cutter.ts'
import { asObject, type JsonObject } from '../../bytes/json.ts'
import { JsonSource, writeJson } from '../../bytes/json-source.ts'
import { ArgumentPieces, objectOfArguments } from '../../inference/raw-arguments.ts'
import { JsonPatch } from '../answers/json-patch.ts'
import type { AnswerForms } from '../answers/native-stream.ts'
import { contentDeltas } from './block-content.ts'

/** An SSE frame with one line of data. @param members the members beside the type, as JSON in latin1 */
export function frameOf(type: string, members = ''): RawFrame {
  return `event: ${type}\ndata: {"type":"${type}"${members && `,${members}`}}\n\n`
}

/**
 * Converts between a stream and a whole message. A stream made from a message has all blocks in its start event. In a
 * stream that becomes a message, only one block is open at a time (ruling Y3).
 */
export const messageForms: AnswerForms = {
  unfold({ type, content, stop_reason = null, stop_sequence = null, stop_details, usage = {} }, body) {
    if (type !== 'message' || content == null) return undefined
    const delta = encodeLatin1(JSON.stringify({ stop_reason, stop_sequence, stop_details }))
    // The reason for the end and the output count come at the end (spec 6.1).
    const start = new JsonPatch(Buffer.from(body, 'latin1'))
    for (const name of ['stop_sequence', 'stop_details'])
      if (start.value[name] != null) start.set([], new Map([[name, 'null']]))
    start.set(['usage'], new Map([['output_tokens', '0']]))
    return [
      withData('event: message_start\n', `{"type":"message_start","message":${start.result().toString('latin1')}}`),
      frameOf('message_delta', `"delta":${delta},"usage":${encodeLatin1(JSON.stringify(usage))}`),
      frameOf('message_stop'),
    ]
  },
  fold(events) {
    let message: JsonObject = {}
    const content: JsonObject[] = []
    let input = ''
    let pieces = new ArgumentPieces()
    for (const { type, delta, message: begun, content_block, ...others } of events) {
      const { type: kind, ...members } = asObject(delta) ?? {}
      if (type === 'message_start') message = asObject(begun) ?? {}
      else if (type === 'content_block_start') content.push(asObject(content_block) ?? {})
      else if (type === 'message_delta')
        message = {
          ...message,
          ...others,
          ...members,
          usage: { ...asObject(message['usage']), ...asObject(others['usage']) },
        }
      else if (kind === 'input_json_delta') {
        input += `${members['partial_json']}`
        pieces.add(`${members['partial_json']}`)
      } else if (type === 'content_block_delta') addTo(content.at(-1)!, `${kind}`, members)
      else if (type === 'content_block_stop' && input !== '') {
        // The input of a call may be incomplete, and is then kept as text (R-ARGS). Numbers keep their digits (T16).
        content.at(-1)!['input'] = new JsonSource([objectOfArguments(pieces.read(input))])
        input = ''
        pieces = new ArgumentPieces()
      }
    }
    return writeJson({ ...message, content }).toString()
  },
  argumentsIn: (events) => events.map(({ index, delta }) => [index, asObject(delta)?.['partial_json']]),
}

function addTo(block: JsonObject, kind: string, members: JsonObject): void {
  const isText = kind !== 'signature_delta' && Object.hasOwn(contentDeltas, kind)
  for (const [name, value] of Object.entries(members))
    if (kind === 'citations_delta') {
      const citations = Array.isArray(block['citations']) ? block['citations'] : []
      citations.push(value)
      block['citations'] = citations
    } else block[name] = isText ? `${block[name] ?? ''}${value}` : value
}
