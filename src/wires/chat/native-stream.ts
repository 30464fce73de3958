import { dataOf, decodeUtf8, encodeLatin1, eventOf, type RawFrame, withData } from '../../bytes/frame-cutter.ts'
import { asObject } from '../../bytes/json.ts'
import type { Stage } from '../../inference/meter.ts'
import { noteAnswer, noteService, type Usage } from '../../inference/usage.ts'
import { endsObject } from '../answers/argument-shape.ts'
import { type ErrorFacts, faultOfError, plainEnvelope } from '../answers/faults.ts'
import type { JsonPatch } from '../answers/json-patch.ts'
import {
  headValues,
  hideInChoice,
  isBelieved,
  mintAnswerId,
  mintCallId,
  withoutTelling,
} from '../answers/native-answer.ts'
import { NativeStream } from '../answers/native-stream.ts'
import { objectsOf, parseAnswer, stringOf, ToldTexts, unreadable } from '../answers/read-answer.ts'
import { type BegunCall, BegunCalls } from './begun-calls.ts'
import { formOf, withPlainChoices } from './content.ts'
import { errorIn, isBareError } from './decode-answer.ts'
import { type FrameMould, isUnfinished, mouldOf } from './frame-mould.ts'
import { completionForms } from './native-forms.ts'
import { isTime, type NamedCalls, producedTexts, saysAnswer, withListedChoice } from './native-json.ts'
import {
  type ChoiceReports,
  choicesMax,
  encodeUsage,
  holdsMoreThanTokens,
  joinUsages,
  type PlacedUsage,
  tellUsage,
  usagesIn,
  wantedUsage,
} from './usage.ts'

/**
 * A chat model's stream for a chat client. The bytes stay unchanged, except for members that must not be shown (rulings
 * P2, P9) and members that SDKs need (ruling Y3). If the upstream sends no usage chunk, the gateway adds one. The usage
 * chunk and `[DONE]` wait for the bill.
 *
 * Most chunks of a stream differ only in a few values. Their other bytes are learned from a parsed chunk, so that later
 * chunks need no parse.
 */
export class ChatNativeStream extends NativeStream {
  protected readonly forms = completionForms
  /**
   * The latest moulds. A mould is a template made from a parsed chunk, with the places that change. Chunks with
   * reasoning, text or calls need different moulds, and each choice has its own moulds.
   */
  #moulds: LearnedChunk[] = []
  /** The number of chunks that became moulds (templates). In some streams no two chunks are alike, so it is limited. */
  #learned = 0
  readonly #named: NamedCalls = new Set()
  readonly #calls = new BegunCalls(this.head.model.profile.cumulative.includes('arguments'))
  /** The reasoning so far, by choice and member. */
  readonly #thoughts = new ToldTexts(thoughtsMax)
  /** Whether the upstream's deltas had content of the answer. A whole message that comes later then adds nothing. */
  #hasOwn = false
  /** The id and time for chunks that we add or that lack them, taken from the upstream's first chunk. */
  #shownHead: { id: string; created: number } | undefined
  #hasChoice = false
  /** For each choice, whether it has a finish reason. */
  readonly #ended = new Map<unknown, boolean>()
  /**
   * The upstream's last chunk with usage and without choices, as the client gets it. Empty before such a chunk, or if
   * the client must not see the chunk.
   */
  #usageFrame: RawFrame = ''
  /** The usage that the upstream reported last, in any chunk. */
  #told: Record<string, unknown> | undefined
  /** The counters of each choice, if the upstream writes them inside the choices. */
  readonly #ofChoices: ChoiceReports = new Map()

  /**
   * Ends the stream. The last data chunk has no choices and has the counters, whatever the upstream sent (spec 6.2).
   * The terminator follows.
   */
  finish(usage: Usage): string {
    // If the upstream's figures are not believed, the last chunk has the billed figures instead.
    const frame = (this.#isBelieved(usage) && this.#usageFrame) || this.#usageChunk(usage)
    return `${this.#missingReasons()}${frame}data: [DONE]\n\n`
  }

  keepAlive(): string {
    return ': ping\n\n'
  }

  failure(facts: ErrorFacts): string {
    return `data: ${encodeLatin1(plainEnvelope(facts))}\n\n`
  }

  /** Whether each choice that has begun has a finish reason. Choices finish independently. */
  protected isEnough(): boolean {
    for (const hasEnded of this.#ended.values()) if (!hasEnded) return false
    return this.#ended.size > 0
  }

  protected override complete(): void {
    if (this.#calls.hasNameless) this.fail(unreadable())
    else super.complete()
  }

  protected override takePlain(text: string): string | undefined {
    return this.#fill(text)
  }

  protected take(frame: RawFrame): string {
    const filled = this.#fill(frame)
    if (filled !== undefined) return filled
    const data = dataOf(frame)
    if (data === undefined || data.trim() === '') return ''
    if (data.trim() === '[DONE]') {
      if (this.#hasChoice) this.complete()
      else this.break('a terminator without an answer')
      return ''
    }
    this.events++
    return this.#takeChunk(frame, data)
  }

  /** Handles a piece if each of its chunks fits a learned mould (a pattern of a chunk). @returns undefined otherwise */
  #fill(piece: string): string | undefined {
    const runs: { learned: LearnedChunk; words: string; args: string[] }[] = []
    const told: { learned: LearnedChunk; usages: string[] }[] = []
    let [shown, events] = ['', 0]
    let last: LearnedChunk | undefined
    for (let at = 0; at < piece.length; at = last.mould.end) {
      const before: LearnedChunk | undefined = last
      let one = last?.mould.fill(piece, at)
      for (const known of this.#moulds) {
        if (one !== undefined) break
        last = known
        one = known.mould.fill(piece, at)
      }
      if (one === undefined || last === undefined) return undefined
      const { mould, calls } = last
      if (last !== before) runs.push({ learned: last, words: '', args: [] })
      const run = runs.at(-1)!
      for (let i = 0; i < mould.texts.length; i++) {
        const [text, call] = [mould.texts[i]!, calls[i]]
        run.words += text
        if (call === undefined) continue
        // After a closing brace, the arguments may be complete. A later chunk with the same call number can then repeat
        // them or begin a new call. So the chunk with the brace is parsed.
        if (call.isWatched || endsObject(text)) return undefined
        run.args[i] = (run.args[i] ?? '') + text
      }
      // If consecutive chunks have counters that differ only in digits, only the last counters are kept (I9).
      if (mould.usages.length > 0) {
        if (mould.isAlike && last === before) told.pop()
        told.push({ learned: last, usages: [...mould.usages] })
      }
      shown += one
      events++
    }
    const usages: PlacedUsage[][] = []
    for (const { learned, usages: texts } of told) {
      const list = texts.map((text, i) => ({ place: learned.places[i]!, usage: parseAnswer(decodeUtf8(text)) }))
      // If a usage names a service (such as a tier), the piece is parsed instead, so that services are noted in the
      // usual order.
      if (!list.every(({ usage }) => usage && !noteService({}, usage).service)) return undefined
      usages.push(list as PlacedUsage[])
    }
    this.events += events
    for (const { learned, words, args } of runs) {
      for (let i = 0; i < args.length; i++) if (args[i] !== undefined) this.#calls.add(learned.calls[i]!, args[i]!)
      if (words !== '' && this.stage !== learned.stage) this.enter(learned.stage)
      this.produced.addRaw(words)
    }
    for (const list of usages) this.#learnUsages(list)
    return shown
  }

  /** Makes a mould (template) of a parsed chunk, unless the chunk is unusual. @param texts the texts of each choice */
  #learnMould(frame: RawFrame, shown: RawFrame, patch: JsonPatch, texts: readonly (readonly string[])[]): void {
    // Pieces that repeat the text before them must be parsed, to find the new part.
    if (this.head.model.profile.cumulative.length > 0) return
    const choices = objectsOf(patch.value['choices'])
    const speaking = choices.filter((_, i) => texts[i]!.length > 0)
    if (choices.length > choicesMax || texts.some(({ length }) => length > 1)) return
    if (!choices.every((choice, i) => texts[i]!.length > 0 || isEmpty(choice))) return
    if (speaking.length > 0 && !this.hasShown) return
    // A mould (the template of a chunk) is for reasoning or for answer text. So a chunk with both is not learned.
    if (!choices.every(isUnfinished) || new Set(speaking.map(saysAnswer)).size > 1) return
    if (!this.#calls.areKnown(choices)) return
    const calls = choices.flatMap((choice, i) => texts[i]!.map((text) => this.#calls.callOf([choice], text)))
    // A chunk after which a call may be complete is always parsed, even if a mould (template) fits it. Such a chunk
    // needs no second mould.
    const isKnown = (one: LearnedChunk) =>
      one.calls.every((call, i) => call === calls[i]) && one.mould.fill(frame, 0) === shown
    if (calls.some((call) => call !== undefined) && this.#moulds.some(isKnown)) return
    if (++this.#learned > learnedMax + this.events / eventsPerMould) return
    const places = usagesIn(patch.value, choices).map(({ place }) => place)
    const said = texts.map(([text]) => text)
    const mould = mouldOf(frame, shown, patch, said)
    if (mould?.usages.length === places.length)
      this.#moulds = [{ mould, stage: this.stage, calls, places }, ...this.#moulds].slice(0, mouldsMax)
  }

  /** Counts the texts of a chunk for the bill. @returns the texts of each choice */
  #count(choices: readonly Record<string, unknown>[]): string[][] {
    for (const { index = 0, finish_reason: reason } of choices)
      if (!this.#ended.get(index) && (this.#ended.has(index) || this.#ended.size < choicesMax))
        this.#ended.set(index, isReason(reason))
    const { reasoningField } = this.head.model.profile.chat
    const texts = choices.map((choice) => producedTexts(choice, reasoningField, this.#named))
    // Enters the new stage, `reasoning` or `speaking`. For a chunk that fits a mould (template), `#fill` does this.
    if (texts.some(({ length }) => length > 0)) this.enter(choices.some(saysAnswer) ? 'speaking' : 'reasoning')
    for (const text of texts.flat()) this.produced.add(text)
    return texts
  }

  /**
   * Handles a chunk that is parsed, because it fits no mould (template). Examples are the first chunks, and chunks with
   * a finish reason or an error.
   */
  #takeChunk(frame: RawFrame, data: string, isOwn = true): string {
    const patch = this.parse(data)
    if (patch === undefined) return ''
    const rewritten = withListedChoice(patch)?.toString('latin1') ?? withPlainChoices(patch, 'delta', this.#hasOwn)
    if (rewritten !== undefined) return this.#takeChunk(withData(frame, rewritten), rewritten, false)
    const chunk = patch.value
    const choices: unknown[] = Array.isArray(chunk['choices']) ? chunk['choices'] : []
    const error = errorIn(chunk) || (isBareError(chunk, eventOf(frame)) && chunk)
    if (error) {
      this.fail(faultOfError(error))
      return ''
    }
    const { service } = this.report
    this.noteAnswer(chunk)
    this.#takeUsage(chunk, choices, patch)
    // A mould (the pattern of a parsed chunk) contains the tier or speed of that chunk. The last reported tier or speed
    // counts (ruling Y17). So if it has changed, all moulds are forgotten.
    if (service !== this.report.service) this.#moulds = []
    for (const [path, index] of this.#calls.numbered(choices)) patch.set(path, new Map([['index', `${index}`]]))
    const mint = (key: string) => mintCallId('call_', this.head, key)
    const begun = this.#calls.missing(choices, mint)
    for (const [path, values] of begun) patch.set(path, values)
    for (const [path, values] of this.#calls.repeated(choices)) patch.set(path, values)
    if (this.head.model.profile.cumulative.includes('reasoning')) this.#shortenThoughts(choices, patch)
    // Clients run the calls as soon as they read a finish reason. So the answer fails now if a call has no name yet.
    const hasReason = objectsOf(choices).some((choice) => isReason(choice['finish_reason']))
    if ((hasReason && this.#calls.hasNameless) || choices.some(hasUnreadCall)) {
      this.fail(unreadable())
      return ''
    }
    const isFirst = this.#addRoles(choices, patch)
    if (!this.#calls.areKnown(objectsOf(choices))) this.#moulds = []
    for (const choice of choices) this.#lookAt(asObject(choice))
    const texts = this.#count(objectsOf(choices))
    this.#hasOwn ||= isOwn && objectsOf(choices).some(saysAnswer)

    const isUsageChunk = choices.length === 0 && asObject(chunk['usage']) !== undefined
    // Azure begins with a chunk about its content filter, before the model has answered. This chunk does not count as
    // the first byte of the answer (ruling Y25).
    if (choices.length === 0 && !isUsageChunk && withoutTelling(chunk).size > 0) {
      this.events--
      return ''
    }
    patch.set([], this.#headOf(chunk))
    for (const [place, choice] of choices.entries()) {
      const { index, finish_reason: reason } = asObject(choice) ?? {}
      // SDKs ignore a choice without an index, and some throw at an empty reason (spec 6.2).
      if (index === undefined) patch.set(['choices', `${place}`], firstChoice)
      if (reason === '') patch.set(['choices', `${place}`], noReason)
      hideInChoice(patch, place, asObject(choice) ?? {})
    }
    if (isUsageChunk) patch.setMissing(['usage'], wantedUsage(encodeUsage(this.known())))
    const shown = patch.isEdited ? withData(frame, patch.result().toString('latin1')) : frame
    if (isUsageChunk) {
      this.#usageFrame = holdsMoreThanTokens(this.#told!) ? '' : shown
      return ''
    }
    // Later chunks that fit a template are not searched for facts of the service, such as its tier. So a template is
    // made only from a chunk without new facts. A chunk in which a choice or a call begins makes no template, because
    // it may have members that later chunks lack.
    const isBeginning = isFirst || begun.length > 0
    if (noteAnswer(this.report, chunk) === this.report && !isBeginning) this.#learnMould(frame, shown, patch, texts)
    return shown
  }

  /** Leaves only the new part of the reasoning in a chunk, if each piece repeats all pieces before it (ruling Y4). */
  #shortenThoughts(choices: readonly unknown[], patch: JsonPatch): void {
    for (const [place, choice] of choices.entries()) {
      const { index = 0, delta } = asObject(choice) ?? {}
      const path = ['choices', `${place}`, 'delta']
      this.#shorten(thoughtMembers, `${index}`, asObject(delta) ?? {}, path, patch)
      for (const [at, detail] of objectsOf(asObject(delta)?.['reasoning_details']).entries())
        this.#shorten(detailMembers, `${index}/${at}`, detail, [...path, 'reasoning_details', `${at}`], patch)
    }
  }

  #shorten(
    names: readonly string[],
    key: string,
    holder: Record<string, unknown>,
    path: readonly string[],
    patch: JsonPatch,
  ): void {
    for (const name of names) {
      const piece = stringOf(holder[name])
      if (piece === undefined) continue
      const news = this.#thoughts.take(`${key}/${name}`, piece)
      if (news === piece) continue
      holder[name] = news
      patch.set(path, new Map([[name, JSON.stringify(news)]]))
    }
  }

  /**
   * Adds the role to the first delta of each choice, since SDKs throw without a role (ruling Y3).
   * @returns whether a role was added
   */
  #addRoles(choices: readonly unknown[], patch: JsonPatch): boolean {
    let isAdded = false
    for (const [place, choice] of choices.entries()) {
      const { index = 0, delta } = asObject(choice) ?? {}
      if (this.#ended.has(index) || stringOf(asObject(delta)?.['role'])) continue
      patch.set(['choices', `${place}`, 'delta'], assistantRole)
      isAdded = true
    }
    return isAdded
  }

  /**
   * Returns new values for the members that every chunk must have (spec 6.2). A member gets a new value if the
   * upstream's value is missing or must not be shown. All chunks have the same id (ruling P3), and a list of choices.
   */
  #headOf(chunk: Record<string, unknown>): Map<string, string | undefined> {
    const values = headValues(this.head, chunk, 'chatcmpl-')
    this.#shownHead ??= {
      id: values.has('id') ? mintAnswerId('chatcmpl-', this.head) : (chunk['id'] as string),
      created: isTime(chunk['created']) ? chunk['created'] : this.head.createdSeconds,
    }
    const { id, created } = this.#shownHead
    values.delete('id')
    if (chunk['id'] !== id) values.set('id', JSON.stringify(id))
    if (chunk['object'] !== chunkObject) values.set('object', JSON.stringify(chunkObject))
    if (!isTime(chunk['created'])) values.set('created', `${created}`)
    if (!Array.isArray(chunk['choices'])) values.set('choices', '[]')
    return values
  }

  /**
   * Moves the usage to the last chunk (ruling P10), since clients add up the figures of several chunks. In a chunk
   * with choices, the usage becomes null.
   */
  #takeUsage(chunk: Record<string, unknown>, choices: readonly unknown[], patch: JsonPatch): void {
    const told = usagesIn(chunk, choices)
    if (told.length === 0) return
    this.#learnUsages(told)
    if (asObject(chunk['usage']) && choices.length > 0) patch.set([], noUsage)
    for (const [place, choice] of choices.entries())
      if (asObject(asObject(choice)?.['usage'])) patch.set(['choices', `${place}`], noUsage)
  }

  #learnUsages(told: readonly PlacedUsage[]): void {
    const { usageQuirk } = this.head.model.profile
    this.learn(joinUsages(told, this.#ofChoices, usageQuirk, this.report))
    this.#told = told[0]!.place === 'answer' ? told[0]!.usage : told.at(-1)!.usage
    this.#usageFrame = ''
  }

  #lookAt(choice: Record<string, unknown> | undefined): void {
    if (choice === undefined) return
    this.#hasChoice = true
    if (isReason(choice['finish_reason'])) this.show()
    if (!this.hasShown && formOf(asObject(choice['delta']) ?? {}) !== 'empty') this.show()
  }

  #isBelieved(usage: Usage): boolean {
    return isBelieved(this.report, usage, this.#told, wantedUsage(encodeUsage(usage)))
  }

  /** Writes the finish reasons that a complete stream of the upstream lacks. SDKs throw without them. */
  #missingReasons(): string {
    const open = Array.from(this.#ended).flatMap(([index, hasEnded]) => (hasEnded ? [] : [index]))
    const choices = open.map((index) => ({
      index,
      delta: {},
      finish_reason: this.#calls.hasIn(index) ? 'tool_calls' : 'stop',
    }))
    return choices.length > 0 ? this.#chunk({ choices }) : ''
  }

  #usageChunk(usage: Usage): string {
    const counters = encodeUsage(usage)
    const told = this.#told ? tellUsage(this.#told, counters, this.#isBelieved(usage)) : counters
    return this.#chunk({ choices: [], usage: told })
  }

  #chunk(members: object): string {
    const head = this.#shownHead ?? { id: mintAnswerId('chatcmpl-', this.head), created: this.head.createdSeconds }
    const chunk = { ...head, object: chunkObject, model: this.head.model.id, ...members }
    return `data: ${encodeLatin1(JSON.stringify(chunk))}\n\n`
  }
}

/**
 * The facts learned from a parsed chunk.
 * @property mould a template of the chunk, in which only some values change
 * @property calls the tool call to which each text of the chunk belongs; undefined for a text outside of calls
 * @property places the places of the usage counters in the chunk
 */
type LearnedChunk = {
  mould: FrameMould
  stage: Stage
  calls: readonly (BegunCall | undefined)[]
  places: readonly PlacedUsage['place'][]
}

/** Whether a choice adds nothing to the answer. */
function isEmpty({ delta, message }: Record<string, unknown>): boolean {
  return message == null && formOf(asObject(delta) ?? {}) === 'empty'
}

/** Whether a choice's list of calls has an entry that is no object. No client could run it (ruling Y5). */
function hasUnreadCall(choice: unknown): boolean {
  const calls = asObject(asObject(choice)?.['delta'])?.['tool_calls']
  return Array.isArray(calls) && objectsOf(calls).length < calls.length
}

function isReason(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

const chunkObject = 'chat.completion.chunk'
/** The members with reasoning: of a delta, and of an entry of its `reasoning_details`. */
const thoughtMembers = ['reasoning_content', 'reasoning', 'thinking'] as const
const detailMembers = ['text', 'summary'] as const
/** For how many members of choices the reasoning so far is kept. */
const thoughtsMax = 512
const assistantRole = new Map([['role', '"assistant"']])
const firstChoice = new Map([['index', '0']])
const noReason = new Map([['finish_reason', 'null']])
const mouldsMax = 4
const learnedMax = 16
/** After this many events, one more mould (pattern of a chunk) may be learned. Chunks may change in a long stream. */
const eventsPerMould = 16
const noUsage = new Map([['usage', 'null']])
