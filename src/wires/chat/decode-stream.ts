import { asObject, parseKeeping } from '../../bytes/json.ts'
import type { SseFrame } from '../../bytes/sse.ts'
import type { Step } from '../../bytes/step.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { AnswerEvent, BilledEvent } from '../../inference/answer.ts'
import { mintId } from '../../inference/ids.ts'
import { createNarrator, type Narrator } from '../../inference/narrator.ts'
import { plainEnvelope } from '../answers/envelope.ts'
import { brokenFault, factsOfFault, faultOfError, truncatedFault } from '../answers/faults.ts'
import { objectsOf, readFrame, stringOf } from '../answers/read-answer.ts'
import type { AnswerHead } from '../wire.ts'
import { decodeStopReason, encodeStopReason } from './stop-reasons.ts'
import { createToolCalls } from './tool-calls.ts'
import { decodeUsage, encodeUsage } from './usage.ts'

/**
 * A model's stream. Complete is a finish reason and then `[DONE]` or a clean end, or `[DONE]` behind at least one
 * choice; until then it is read on, since the usage may follow the reason.
 */
export function createDecoder(profile: Profile): Step<SseFrame, AnswerEvent> {
  const narrator = createNarrator()
  const reader = createReader(narrator, profile)
  return {
    push(frame) {
      if (narrator.isOver) return []
      const object = readFrame(frame, narrator)
      if (object === 'done') reader.end(true)
      else if (object) read(frame, object)
      return narrator.take()
    },
    end() {
      reader.end(false)
      return narrator.take()
    },
  }

  function read(frame: SseFrame, chunk: Record<string, unknown>) {
    narrator.start()
    if (reader.findError(chunk)) return
    // Servers outside the dialect name the event instead of wrapping the error.
    if (frame.event === 'error' || chunk['object'] === 'error') return narrator.fail(faultOfError(chunk))
    reader.choices(chunk, 'delta', frame.data)
    if (chunk['usage']) reader.usage(chunk['usage'])
  }
}

/** Shared with the whole JSON answer, whose message is read like one great delta. */
export function createReader(narrator: Narrator, profile: Profile) {
  const calls = createToolCalls(narrator)
  let current: { index: number; kind: 'text' | 'reasoning' | 'refusal' } | undefined
  let hasChoice = false
  let reason: string | undefined
  let stopSequence: string | undefined
  return { findError, choices, usage, end }

  function findError(chunk: Record<string, unknown>): boolean {
    const error = chunk['error'] || asObject(objectsOf(chunk['choices'])[0])?.['error']
    if (!error) return false
    narrator.fail(faultOfError(error))
    return true
  }

  function choices(chunk: Record<string, unknown>, key: 'delta' | 'message', text: string) {
    for (const choice of objectsOf(chunk['choices'])) {
      // More than one choice is never asked for; a foreign one is not ours to show.
      if (choice['index'] !== undefined && choice['index'] !== 0) continue
      hasChoice = true
      delta(asObject(choice[key]) ?? {}, key, text)
      reason = stringOf(choice['finish_reason']) ?? reason
      stopSequence = stringOf(choice['stop_reason']) ?? stopSequence
      if (choice['usage']) usage(choice['usage'])
    }
  }

  function delta(delta: Record<string, unknown>, key: string, text: string) {
    const parts = partsOf(delta['content'])
    write('reasoning', reasoningOf(delta, profile.reasoningField) || parts.reasoning)
    write('text', parts.text)
    write('refusal', stringOf(delta['refusal']) ?? '')
    const entries = objectsOf(delta['tool_calls'])
    const legacy = asObject(delta['function_call'])
    if (entries.length === 0 && !legacy) return
    stopCurrent()
    for (const [position, entry] of entries.entries()) {
      // In a whole message the position tells the calls apart.
      const known = key === 'message' ? { ...entry, index: position } : entry
      calls.push(known, () => keptArguments(text, key, position))
    }
    if (legacy) calls.push({ index: -1, function: legacy }, () => keptArguments(text, key, undefined))
  }

  function write(kind: 'text' | 'reasoning' | 'refusal', text: string) {
    if (text === '') return
    if (current?.kind !== kind) {
      stopCurrent()
      calls.stopWhole()
      current = { index: narrator.open({ kind }), kind }
    }
    narrator.delta(current.index, text)
  }

  function stopCurrent() {
    if (current) narrator.stop(current.index)
    current = undefined
  }

  function usage(raw: unknown) {
    narrator.usage(decodeUsage(raw, profile.usageQuirk))
  }

  function end(isMarked: boolean) {
    if (reason === undefined && !(isMarked && hasChoice)) return narrator.fail(truncatedFault())
    const meant = decodeStopReason(reason)
    if (meant === 'failed') return narrator.fail(brokenFault('The model broke off its answer.'))
    calls.complete()
    narrator.finish(meant, stopSequence)
  }
}

/** Text of the one field that has some: mirrored fields must not double it. */
export function reasoningOf(delta: Record<string, unknown>, field: Profile['reasoningField']): string {
  const own = field === 'auto' || field === 'details' ? undefined : stringOf(delta[field])
  const details = () =>
    objectsOf(delta['reasoning_details'])
      .map((detail) => stringOf(detail['text']) ?? stringOf(detail['summary']) ?? '')
      .join('')
  return (
    own ||
    (field === 'details' ? details() : '') ||
    stringOf(delta['reasoning_content']) ||
    stringOf(delta['reasoning']) ||
    details() ||
    stringOf(delta['thinking']) ||
    ''
  )
}

/** Content is a text, or parts of which some are reasoning. */
export function partsOf(content: unknown): { text: string; reasoning: string } {
  if (typeof content === 'string') return { text: content, reasoning: '' }
  let text = ''
  let reasoning = ''
  for (const part of objectsOf(content)) {
    if (part['type'] === 'text') text += stringOf(part['text']) ?? ''
    else if (part['type'] === 'thinking') {
      reasoning +=
        stringOf(part['thinking']) ??
        objectsOf(part['thinking'])
          .map((piece) => stringOf(piece['text']) ?? '')
          .join('')
    }
  }
  return { text, reasoning }
}

/** The source text of arguments that came as an object (ruling T16). */
function keptArguments(text: string, key: string, position: number | undefined): string | undefined {
  const kept = parseKeeping(text, ['arguments'])
  const choice = objectsOf(asObject(kept.value)?.['choices']).find((one) => (one['index'] ?? 0) === 0)
  const message = asObject(choice?.[key])
  const call = position === undefined ? message : objectsOf(message?.['tool_calls'])[position]
  const fn = asObject(call?.[position === undefined ? 'function_call' : 'function'])
  return fn && kept.raw(fn['arguments']).source
}

/** The stream for a client: one role chunk, deltas as they come, one reason, one usage chunk, `[DONE]`. */
export function createEncoder(head: AnswerHead): Step<BilledEvent, string> {
  const envelope = JSON.stringify({
    id: mintId('chatcmpl-', head.requestId, ''),
    object: 'chat.completion.chunk',
    created: head.createdSeconds,
    model: head.modelId,
  }).slice(0, -1)
  const deltaStart = `data: ${envelope},"choices":[{"index":0,"delta":`
  const deltaEnd = '},"finish_reason":null}]}\n\n'
  /** What stands around the text of an open block's deltas. */
  const frames = new Map<number, { start: string; end: string }>()
  let hasStarted = false
  let calls = 0
  let hasReasoned = false
  /** A reasoning block without text yet: its first text is set apart from that of the block before it. */
  let fresh: number | undefined
  return {
    push(event) {
      const text = encode(event)
      return text === '' ? [] : [text]
    },
    end: () => [],
  }

  function encode(event: BilledEvent): string {
    switch (event.type) {
      case 'start':
      case 'block_seal':
      case 'usage':
        return ''
      case 'block_start': {
        const { index, block } = event
        if (block.kind === 'tool_call') {
          const call = calls++
          const { callId: id, name } = block
          const first = { index: call, id, type: 'function', function: { name, arguments: '' } }
          frames.set(index, {
            start: `${deltaStart}{"tool_calls":[{"index":${call},"function":{"arguments":`,
            end: `}}]${deltaEnd}`,
          })
          return `${begin()}${deltaStart}{"tool_calls":[${JSON.stringify(first)}]${deltaEnd}`
        }
        if (block.kind === 'reasoning') fresh = index
        frames.set(index, { start: `${deltaStart}{"${contentFields[block.kind]}":`, end: deltaEnd })
        return ''
      }
      case 'block_delta':
        return delta(event.index, event.text)
      case 'block_stop':
        frames.delete(event.index)
        return ''
      case 'alive':
        return `${begin()}: ping\n\n`
      case 'finish': {
        const reason = JSON.stringify(encodeStopReason(event.reason))
        const usage = JSON.stringify(encodeUsage(event.usage))
        return `${begin()}${deltaStart}{},"finish_reason":${reason}}]}\n\ndata: ${envelope},"choices":[],"usage":${usage}}\n\ndata: [DONE]\n\n`
      }
      case 'fail':
        // The stream has begun: an error frame and no terminator is how the client learns of the failure (ruling T4).
        return `data: ${plainEnvelope(factsOfFault(event.fault))}\n\n`
    }
  }

  function begin(): string {
    if (hasStarted) return ''
    hasStarted = true
    return `${deltaStart}{"role":"assistant","content":""${deltaEnd}`
  }

  function delta(index: number, text: string): string {
    const frame = frames.get(index)!
    let words = text
    if (index === fresh) {
      if (hasReasoned) words = `\n\n${text}`
      hasReasoned = true
      fresh = undefined
    }
    return begin() + frame.start + JSON.stringify(words) + frame.end
  }
}

const contentFields = { text: 'content', refusal: 'refusal', reasoning: 'reasoning_content' } as const
