import { KeptText } from '../../bytes/memory.ts'
import type { AnswerBlock, FoldedBlock } from '../../inference/answer.ts'
import { mintId } from '../../inference/ids.ts'
import type { Sealed } from '../../inference/request.ts'
import type { Usage } from '../../inference/usage.ts'
import type { ErrorFacts } from '../answers/faults.ts'
import type { AnswerHead } from '../wire.ts'
import { encodeUsage } from './usage.ts'

/** Writes one event of the stream: its type and its other members as JSON text. */
type WriteEvent = (type: string, members: string) => string

export type OutputItem = ReturnType<typeof createItem>

/**
 * Writes one output item of a stream. Each method returns the events for its step. The item's place is fixed at its
 * start.
 */
export function createItem(index: number, block: AnswerBlock, head: AnswerHead) {
  const kind = kinds[block.kind]
  const text = new KeptText()
  let sealed: Sealed | undefined
  let hasPart = false
  const id = JSON.stringify(mintId(kind.prefix, head.requestId, index))
  const place = `"item_id":${id},"output_index":${index}`
  const partPlace = kind.partIndex ? `${place},"${kind.partIndex}":0` : place

  return {
    start(write: WriteEvent): string {
      const empty = encodeItem(index, { block, text: '', cut: false }, head, 'in_progress')
      const added = write('response.output_item.added', `"output_index":${index},"item":${empty}`)
      // A reasoning item may have only sealed reasoning and no summary. So the summary part starts only with the first
      // text.
      return block.kind === 'reasoning' ? added : added + startPart(write)
    },
    delta(write: WriteEvent, piece: string): string {
      text.add(piece)
      const begun = hasPart ? '' : startPart(write)
      return begun + write(kind.delta, `${partPlace},"delta":${JSON.stringify(piece)}${kind.logprobs}`)
    },
    seal(proof: Sealed): void {
      sealed = proof
    },
    compact(): void {
      text.compact()
    },
    /**
     * Ends the item.
     * @param whole the item as `whole` returned it. It is not made a second time, because sealing would then make
     *   another envelope (ruling P7)
     */
    stop(write: WriteEvent, whole: string): string {
      const words = JSON.stringify(text.toString())
      let events = ''
      if (block.kind === 'tool_call') {
        events = write(kind.done, `${place},"name":${JSON.stringify(block.name)},"arguments":${words}`)
      } else if (hasPart) {
        events =
          write(kind.done, `${partPlace},"${kind.field}":${words}${kind.logprobs}`) +
          write(`response.${kind.part}.done`, `${partPlace},"part":${kind.encodePart(words)}`)
      }
      return events + write('response.output_item.done', `"output_index":${index},"item":${whole}`)
    },
    whole(cut: boolean): string {
      const folded: FoldedBlock = { block, text: text.toString(), cut, ...(sealed && { sealed }) }
      return encodeItem(index, folded, head, cut ? 'incomplete' : 'completed')
    },
  }

  function startPart(write: WriteEvent): string {
    hasPart = true
    if (!kind.part) return ''
    return write(`response.${kind.part}.added`, `${partPlace},"part":${kind.encodePart('""')}`)
  }
}

/** Encodes one output item as JSON text, the same for a stream's events and a whole answer. */
export function encodeItem(index: number, folded: FoldedBlock, head: AnswerHead, status: string): string {
  const { block, text, sealed } = folded
  const kind = kinds[block.kind]
  const id = mintId(kind.prefix, head.requestId, index)
  if (block.kind === 'tool_call') {
    return JSON.stringify({
      id,
      type: 'function_call',
      status,
      call_id: block.callId,
      name: block.name,
      ...(block.namespace !== undefined && { namespace: block.namespace }),
      arguments: text,
    })
  }
  const isBegun = status === 'in_progress'
  const parts = isBegun || (block.kind === 'reasoning' && text === '') ? '' : kind.encodePart(JSON.stringify(text))
  if (block.kind === 'reasoning') {
    const seal = sealed && head.seal ? `,"encrypted_content":${JSON.stringify(head.seal(sealed))}` : ''
    return `{"id":"${id}","type":"reasoning","status":"${status}","summary":[${parts}]${seal}}`
  }
  return `{"id":"${id}","type":"message","status":"${status}","role":"assistant","content":[${parts}]}`
}

/** This wire's names for the kinds of blocks. */
const kinds = {
  text: {
    prefix: 'msg_',
    delta: 'response.output_text.delta',
    done: 'response.output_text.done',
    field: 'text',
    part: 'content_part',
    partIndex: 'content_index',
    logprobs: ',"logprobs":[]',
    encodePart: (words: string) => `{"type":"output_text","text":${words},"annotations":[],"logprobs":[]}`,
  },
  refusal: {
    prefix: 'msg_',
    delta: 'response.refusal.delta',
    done: 'response.refusal.done',
    field: 'refusal',
    part: 'content_part',
    partIndex: 'content_index',
    logprobs: '',
    encodePart: (words: string) => `{"type":"refusal","refusal":${words}}`,
  },
  reasoning: {
    prefix: 'rs_',
    delta: 'response.reasoning_summary_text.delta',
    done: 'response.reasoning_summary_text.done',
    field: 'text',
    part: 'reasoning_summary_part',
    partIndex: 'summary_index',
    logprobs: '',
    encodePart: (words: string) => `{"type":"summary_text","text":${words}}`,
  },
  tool_call: {
    prefix: 'fc_',
    delta: 'response.function_call_arguments.delta',
    done: 'response.function_call_arguments.done',
    field: 'arguments',
    part: '',
    partIndex: '',
    logprobs: '',
    encodePart: (words: string) => words,
  },
} as const

type WrittenResponse = {
  status: 'in_progress' | 'completed' | 'incomplete' | 'failed'
  incomplete?: { reason: string } | null
  error?: { code: string; message: string }
  output: readonly string[]
  usage: Usage | null
}

/**
 * Writes the response object with all keys that the vendor sends. Settings of the client are repeated, and all other
 * keys have defaults (ruling T12).
 */
export function createResponse(head: AnswerHead): (response: WrittenResponse) => string {
  const id = JSON.stringify(mintId('resp_', head.requestId, ''))
  const start = `{"id":${id},"object":"response","created_at":${head.createdSeconds},`
  const echo = `"model":${JSON.stringify(head.modelId)},${head.echo}}`
  return ({ status, incomplete = null, error = null, output, usage }) => {
    const completedAt = status === 'completed' ? (head.nowSeconds?.() ?? head.createdSeconds) : null
    const counters = usage ? JSON.stringify(encodeUsage(usage)) : 'null'
    return (
      `${start}"completed_at":${completedAt},"status":"${status}","error":${JSON.stringify(error)},` +
      `"incomplete_details":${JSON.stringify(incomplete)},"output":[${output.join(',')}],"usage":${counters},"service_tier":${JSON.stringify(head.service?.().tier ?? null)},${echo}`
    )
  }
}

/**
 * The `response.error.code` for a failure, in the vendor's words. Agents decide by this code whether to retry (ruling
 * T4).
 */
export function failedCode(facts: Pick<ErrorFacts, 'status' | 'code' | 'message'>): string {
  if (facts.code === 'rate_limit_exceeded') return 'rate_limit_exceeded'
  if (facts.code === 'invalid_request' && overLong.test(facts.message)) return 'context_length_exceeded'
  return 'server_error'
}

/** The phrases by which agents recognise that the prompt is too long (ruling U3). */
const overLong = /prompt is too long|maximum context length|exceeds? the context window|exceed context limit/i
