import type { Narrator } from '../../inference/narrator.ts'
import { argumentsText, objectsOf, stringOf, unreadable } from '../answers/read-answer.ts'
import type { Incoming, ItemKind } from './incoming-items.ts'

type Members = Record<string, unknown>

/** Tells the items of an answer as blocks: their deltas as they come, and what no delta has told when it is done. */
export class ItemTeller {
  readonly #narrator: Narrator
  /** The item whose text, refusal or reasoning was told last. */
  #current: Incoming | undefined

  constructor(narrator: Narrator) {
    this.#narrator = narrator
  }

  /** An item as it was announced: a call may have its arguments already, the others come in pieces. */
  begin(incoming: Incoming, item: Members) {
    if (incoming.type !== 'function_call') return
    if (!this.#openCall(incoming, item) || incoming.parts.has('')) return
    this.write(incoming, 'tool_call', '', stringOf(item['arguments']) ?? '')
  }

  /** A piece of a part. */
  write(incoming: Incoming, kind: ItemKind, part: string, text: string) {
    incoming.parts.set(part, (incoming.parts.get(part) ?? '') + text)
    // A call whose name has not come yet: its arguments are told with it.
    if (kind === 'tool_call' && incoming.block === undefined) return
    if (incoming.kind !== kind || incoming.block === undefined) this.#openBlock(incoming, kind)
    if (kind === 'reasoning' && incoming.lastPart !== undefined && incoming.lastPart !== part) text = `\n\n${text}`
    incoming.lastPart = part
    this.#narrator.delta(incoming.block!, text)
  }

  /** What a done event says of a part: the rest of it, all of it, or something else than what was told. */
  writeRest(incoming: Incoming, kind: ItemKind, part: string, text: unknown) {
    const whole = stringOf(text)
    const told = incoming.parts.get(part) ?? ''
    if (!whole || whole === told) return
    if (whole.startsWith(told)) this.write(incoming, kind, part, whole.slice(told.length))
    else this.#narrator.fail(unreadable())
  }

  /** An item as it stands at its end. */
  complete(incoming: Incoming, item: Members) {
    if (incoming.isDone) return
    if (incoming.type === 'function_call') this.#completeCall(incoming, item)
    else if (incoming.type === 'message') this.#completeMessage(incoming, item)
    else if (incoming.type === 'reasoning') this.#completeReasoning(incoming, item)
    if (incoming.block !== undefined) this.#narrator.stop(incoming.block, item['status'] === 'incomplete')
    incoming.isDone = true
  }

  /** One such block is open at a time (I4); what resumes later is a new block (I7). */
  #openBlock(incoming: Incoming, kind: ItemKind) {
    const current = this.#current
    if (current?.block !== undefined) this.#narrator.stop(current.block)
    if (current) current.block = undefined
    this.#current = incoming
    incoming.kind = kind
    incoming.block = this.#narrator.open({ kind } as { kind: 'text' })
    incoming.lastPart = undefined
  }

  /** A call opens when its name is known: in the first event, else in the last. Its arguments waited for that. */
  #openCall(incoming: Incoming, item: Members): boolean {
    const name = stringOf(item['name'])
    if (incoming.block !== undefined) return true
    if (!name?.trim()) return false
    incoming.kind = 'tool_call'
    incoming.block = this.#narrator.open({ kind: 'tool_call', callId: stringOf(item['call_id']) ?? '', name })
    const early = incoming.parts.get('')
    if (early) this.#narrator.delta(incoming.block, early)
    return true
  }

  #completeCall(incoming: Incoming, item: Members) {
    if (!this.#openCall(incoming, item)) return
    const told = incoming.parts.get('')
    this.writeRest(incoming, 'tool_call', '', told ? item['arguments'] : argumentsText(item['arguments']))
  }

  #completeMessage(incoming: Incoming, item: Members) {
    for (const [index, part] of objectsOf(item['content']).entries()) {
      if (part['type'] === 'output_text') this.writeRest(incoming, 'text', `${index}`, part['text'])
      else if (part['type'] === 'refusal') this.writeRest(incoming, 'refusal', `${index}`, part['refusal'])
    }
  }

  #completeReasoning(incoming: Incoming, item: Members) {
    const kinds = ['summary', 'content'] as const
    incoming.reasoningKind ??= kinds.find((kind) => objectsOf(item[kind]).some((part) => stringOf(part['text'])))
    const parts = incoming.reasoningKind ? objectsOf(item[incoming.reasoningKind]) : []
    for (const [index, part] of parts.entries()) this.writeRest(incoming, 'reasoning', `${index}`, part['text'])
  }
}
