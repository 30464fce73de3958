import { dataOf, deltaCharacters, encodeLatin1, type RawFrame, withData } from '../../bytes/frame-cutter.ts'
import { asObject, scanObject } from '../../bytes/json.ts'
import type { Usage } from '../../inference/usage.ts'
import { type ErrorFacts, plainEnvelope } from '../answers/envelope.ts'
import { faultOfError } from '../answers/faults.ts'
import { headValues, isBelieved } from '../answers/native-answer.ts'
import { NativeStream } from '../answers/native-stream.ts'
import { mintedCompletionId, wantedUsage } from './native-json.ts'
import { decodeUsage, encodeUsage } from './usage.ts'

/** Where a delta's text is; a reasoning model's is under one of several names. */
const textNeedles = ['"content":', '"arguments":', '"reasoning_content":', '"reasoning":', '"refusal":']

/**
 * A chat model's stream for a chat client: bytes as they came (ruling P2). Model and id are edited where they may not be
 * shown; the usage chunk with no choices is made where the upstream sends none, and with `[DONE]` waits for the bill.
 *
 * All chunks of a stream begin with the same members. That beginning is parsed once and replaced by comparison, so that
 * a chunk costs no parse.
 */
export class ChatNativeStream extends NativeStream {
  /** The repeated beginning of a chunk's frame up to `"choices"`, and what the client sees in its place. */
  #prefix: { raw: string; shown: string } | undefined
  /** Head of a chunk of ours, as the upstream's chunks have it. */
  #shownHead: { id: string; created: number } | undefined
  /** Whether the upstream's id lacks the prefix; decided by the first chunk. */
  #hasMintedId: boolean | undefined
  #hasChoice = false
  #hasReason = false
  #usageFrame: RawFrame = ''

  /** The last data chunk has no choices and the counters, whatever the upstream did (spec 6.2); then the terminator. */
  finish(usage: Usage): string {
    // Figures that are not believed are not shown either: the chunk is then made from what is billed.
    const frame = (isBelieved(this.report, usage) && this.#usageFrame) || this.#usageChunk(usage)
    return `${frame}data: [DONE]\n\n`
  }

  keepAlive(): string {
    return ': ping\n\n'
  }

  failure(facts: ErrorFacts): string {
    return `data: ${encodeLatin1(plainEnvelope(facts))}\n\n`
  }

  protected isEnough(): boolean {
    return this.#hasReason
  }

  /** Deltas of one line each, which all have the shared beginning. */
  protected override takePlain(text: string): string | undefined {
    const { raw, shown } = this.#prefix ?? noPrefix
    if (raw === '' || !text.startsWith(raw) || text.includes('\r')) return undefined
    const tails = text.slice(raw.length).split(raw)
    let characters = 0
    for (const tail of tails) {
      const isLine = tail.endsWith('\n\n') && tail.indexOf('\n') === tail.length - 2
      if (!isLine || notPlain.test(tail)) return undefined
      characters += deltaCharacters(tail, textNeedles)
    }
    this.events += tails.length
    this.producedCharacters += characters
    return shown + tails.join(shown)
  }

  protected take(frame: RawFrame): string {
    const { raw, shown } = this.#prefix ?? noPrefix
    if (raw !== '' && frame.startsWith(raw)) {
      const tail = frame.slice(raw.length)
      if (!notPlain.test(tail)) {
        this.events++
        this.producedCharacters += deltaCharacters(tail, textNeedles)
        return shown + tail
      }
    }
    const data = dataOf(frame)
    if (data === undefined || data.trim() === '') return ''
    if (data.trim() === '[DONE]') {
      if (this.#hasChoice || this.#hasReason) this.complete()
      else this.break('a terminator without an answer')
      return ''
    }
    this.events++
    return this.#takeChunk(frame, data)
  }

  /** A chunk that is looked into: the first ones, those with a reason, counters or an error. */
  #takeChunk(frame: RawFrame, data: string): string {
    const patch = this.parse(data)
    if (patch === undefined) return ''
    const chunk = patch.value
    const choices = Array.isArray(chunk['choices']) ? chunk['choices'] : []
    const error = chunk['error'] ?? asObject(choices[0])?.['error']
    if (error != null) {
      this.fail(faultOfError(error))
      return ''
    }
    const usage = asObject(chunk['usage'])
    const reported = usage ?? asObject(choices[0])?.['usage']
    if (reported) this.learn(decodeUsage(reported, this.head.model.profile.usageQuirk))
    for (const choice of choices) this.#lookAt(asObject(choice))

    const values = headValues(this.head, chunk, 'chatcmpl-', mintedCompletionId)
    // One answer has one id: where the first chunk needed another one, every chunk has it (ruling P3).
    this.#hasMintedId ??= values.has('id')
    if (this.#hasMintedId) values.set('id', JSON.stringify(mintedCompletionId(this.head.requestId)))
    this.#shownHead ??= {
      id: values.has('id') ? mintedCompletionId(this.head.requestId) : (chunk['id'] as string),
      created: typeof chunk['created'] === 'number' ? chunk['created'] : this.head.createdSeconds,
    }
    patch.set([], values)
    const isUsageChunk = usage !== undefined && choices.length === 0
    if (isUsageChunk) patch.setMissing(['usage'], wantedUsage(encodeUsage(this.known())))
    const shown = patch.isEdited ? withData(frame, patch.result().toString('latin1')) : frame
    if (isUsageChunk) {
      this.#usageFrame = shown
      return ''
    }
    this.#prefix ??= this.#findPrefix(frame, shown)
    return shown
  }

  #lookAt(choice: Record<string, unknown> | undefined): void {
    if (choice === undefined) return
    this.#hasChoice = true
    if (typeof choice['finish_reason'] === 'string' && choice['finish_reason'] !== '') {
      this.#hasReason = true
      this.show()
    }
    const delta = asObject(choice['delta'])
    if (delta === undefined) return
    for (const [name, value] of Object.entries(delta)) {
      if (name === 'role' || value === null || value === '') continue
      this.show()
      this.producedCharacters += typeof value === 'string' ? value.length : JSON.stringify(value).length
    }
  }

  /** The beginning that chunks share, if `choices` comes behind the members that are edited. */
  #findPrefix(frame: RawFrame, shown: RawFrame): { raw: string; shown: string } | undefined {
    if (!this.hasShown || !frame.startsWith('data: ')) return undefined
    const raw = prefixOf(frame)
    const replaced = prefixOf(shown)
    return raw === undefined || replaced === undefined ? undefined : { raw, shown: replaced }
  }

  #usageChunk(usage: Usage): string {
    const head = this.#shownHead ?? { id: mintedCompletionId(this.head.requestId), created: this.head.createdSeconds }
    const chunk = {
      ...head,
      object: 'chat.completion.chunk',
      model: this.head.model.id,
      choices: [],
      usage: encodeUsage(usage),
    }
    return `data: ${encodeLatin1(JSON.stringify(chunk))}\n\n`
  }
}

const noPrefix = { raw: '', shown: '' }

/** What makes a chunk more than an ordinary delta, behind the shared beginning: something in it has to be read. */
const notPlain = /"(?:error|model)"|"id":"chatcmpl|"(?:finish_reason|usage)"(?!. ?null)/s

function prefixOf(frame: RawFrame): string | undefined {
  const start = frame.indexOf('{')
  const bytes = Buffer.from(frame.slice(start, frame.lastIndexOf('}') + 1), 'latin1')
  const members = scanObject(bytes)
  const choices = members.findIndex((member) => member.key === 'choices')
  const headEnds = Math.max(...['id', 'model'].map((key) => members.findLastIndex((member) => member.key === key)))
  if (choices < 0 || headEnds > choices) return undefined
  return frame.slice(0, start + members[choices]!.keyStart)
}
