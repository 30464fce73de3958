import type { Step } from '../../bytes/step.ts'
import type { AnswerEvent } from '../answer.ts'
import { cutsBlocks } from '../narrator.ts'

export type ThinkTags = { open: string; close: string; implicitOpen: boolean }

/**
 * Reasoning that a model writes into its text between tags, made into a block of its own. Only the beginning of the
 * first text counts: later tags are literal text, since a model may well write about them.
 *
 * Servers send the same thought in a field as well, before the tags or beside each of their pieces (BUG-6). Then the
 * field counts, and the text between the tags is dropped. Pieces of the field do not end the text: it goes on after
 * them.
 */
export function splitThinkTags(tags: ThinkTags): Step<AnswerEvent, AnswerEvent> {
  return new ThinkTagFilter(tags)
}

class ThinkTagFilter implements Step<AnswerEvent, AnswerEvent> {
  readonly #tags: ThinkTags
  /** `before`: an open tag may come. `inside`: until the close tag. `after`: blanks before the text are dropped. */
  #state: 'before' | 'inside' | 'after' | 'outside' = 'before'
  /** Text that could be the beginning of a tag. */
  #withheld = ''
  /** Before it; only ever appended to, since there may be many, one by one. */
  #blanks = ''
  /** Text inside tags that nobody has opened, while it may be the thought of the field. */
  #unproven: string | undefined
  /** Of it, what goes beyond the thought: blanks only. Blanks before its first word do not count. */
  #beyond = ''
  #hasWord = false
  #count = 0
  /** The text block being read, and what is open on our side for it. */
  #reading: number | undefined
  #open: { index: number; kind: 'text' | 'reasoning' } | undefined
  /** Whether text came since the last piece of the field, and whether the last block of both was cut. */
  #hasRead = false
  #wasCut = false
  /** Text is between tags that nobody has opened, and came before the field: either may repeat the other. */
  #isImplied = false
  /** The thought of the field without what the text repeats of it, and what the field has yet to repeat of the tags. */
  #thought: string | undefined
  #unrepeated = ''
  /** Blocks of the field that are read with the tags. */
  readonly #fields = new Set<number>()
  readonly #numbers = new Map<number, number>()
  #events: AnswerEvent[] = []

  constructor(tags: ThinkTags) {
    this.#tags = tags
  }

  end(): AnswerEvent[] {
    return []
  }

  push(event: AnswerEvent): AnswerEvent[] {
    this.#events = []
    switch (event.type) {
      case 'block_start':
        this.#start(event)
        break
      case 'block_delta':
        if (event.index === this.#reading) this.#read(event.text)
        else if (this.#fields.has(event.index)) this.#readField(event.text)
        else this.#pass(event)
        break
      case 'block_seal':
        if (!this.#fields.has(event.index)) this.#pass(event)
        else this.#events.push({ ...event, index: this.#blockFor('reasoning') })
        break
      case 'block_stop':
        this.#stopBlock(event)
        break
      case 'finish':
      case 'fail':
        this.#endText(event.type === 'finish' && !cutsBlocks[event.reason])
        this.#events.push(event)
        break
      default:
        this.#events.push(event)
    }
    return this.#events
  }

  #pass(event: AnswerEvent & { type: 'block_delta' | 'block_seal' | 'block_stop' }) {
    this.#events.push({ ...event, index: this.#numbers.get(event.index)! })
  }

  #start(event: AnswerEvent & { type: 'block_start' }) {
    const { index, block } = event
    const isIdle = this.#reading === undefined
    if (isIdle && block.kind === 'text' && this.#state !== 'outside') this.#reading = index
    else if (isIdle && block.kind === 'reasoning' && (this.#state !== 'outside' || this.#unrepeated !== '')) {
      // Two thoughts with no text between them are two blocks (I7).
      if (!this.#hasRead) this.#stop(false)
      this.#hasRead = false
      this.#fields.add(index)
    } else {
      if (isIdle) this.#endText()
      this.#numbers.set(index, this.#count)
      this.#events.push({ ...event, index: this.#count++ })
    }
  }

  #stopBlock(event: AnswerEvent & { type: 'block_stop' }) {
    if (event.index !== this.#reading && !this.#fields.delete(event.index)) {
      this.#pass(event)
      return
    }
    this.#wasCut = event.cut
    if (event.index !== this.#reading) return
    this.#reading = undefined
    if (this.#state === 'outside') this.#endText()
  }

  /** A piece of the field: the part of it that the tags have not said already. */
  #readField(text: string) {
    const [beyond, left] = pastRepetition(this.#unrepeated, text)
    this.#unrepeated = left
    this.#thought = (this.#thought ?? '') + beyond
    this.#write('reasoning', beyond)
  }

  #read(text: string) {
    this.#hasRead = true
    let rest = this.#withheld + text
    this.#withheld = ''
    if (this.#state === 'before') {
      const { open, implicitOpen } = this.#tags
      const begun = rest.trimStart()
      this.#blanks += rest.slice(0, rest.length - begun.length)
      if (open.startsWith(begun) && begun !== open) {
        this.#withheld = begun
        return
      }
      const isOpened = begun.startsWith(open)
      rest = isOpened ? begun.slice(open.length) : this.#blanks + begun
      this.#blanks = ''
      this.#state = isOpened || implicitOpen ? 'inside' : 'outside'
      if (!isOpened && this.#thought !== undefined) this.#unproven = ''
      this.#isImplied = !isOpened && this.#thought === undefined
    }
    if (this.#state === 'inside') {
      const { close } = this.#tags
      const at = rest.indexOf(close)
      if (at < 0) {
        const keep = overlap(rest, close)
        this.#withheld = rest.slice(rest.length - keep)
        this.#think(rest.slice(0, rest.length - keep))
        return
      }
      // Now it is a thought, and what the field has not said of it is another part.
      if (this.#unproven !== undefined) this.#isImplied = true
      this.#unproven = undefined
      this.#think(rest.slice(0, at))
      if (this.#thought === undefined) this.#stop(false)
      this.#state = 'after'
      rest = rest.slice(at + close.length)
    }
    if (this.#state === 'after') {
      rest = rest.trimStart()
      if (rest === '') return
      this.#state = 'outside'
    }
    this.#write('text', rest)
  }

  /** A piece of the text between the tags. */
  #think(piece: string) {
    if (this.#unproven !== undefined) {
      this.#unproven += piece
      if (this.#repeats(piece)) return
      this.#state = 'outside'
      this.#write('text', this.#unproven)
    } else if (this.#thought === undefined || this.#isImplied) {
      const [beyond, left] = pastRepetition(this.#thought ?? '', piece)
      if (this.#thought !== undefined) this.#thought = left
      this.#unrepeated += beyond
      this.#write('reasoning', beyond)
    }
  }

  /**
   * Whether the unproven text goes on to repeat the thought. Each piece is compared with its own part of the thought, since there
   * may be many. A text that is longer than the thought repeats nothing, its last blanks aside.
   */
  #repeats(piece: string): boolean {
    const said = this.#hasWord ? piece : piece.trimStart()
    if (said === '') return true
    let thought = this.#hasWord ? this.#thought! : this.#thought!.trimStart()
    this.#hasWord = true
    const text = this.#beyond + said
    const size = Math.min(text.length, thought.length)
    if (size > 0 && text.slice(0, size) !== thought.slice(0, size)) return false
    thought = thought.slice(size)
    this.#thought = thought
    this.#beyond = text.slice(size)
    return this.#beyond === '' || said.trim() === '' || this.#beyond.trim() === ''
  }

  /**
   * No more text is to come that tags could stand in: the meaning of what waits of it is known now.
   *
   * @param isWhole the answer is over, and uncut: text that repeats the thought is all that it says
   */
  #endText(isWhole = false) {
    const waiting = this.#blanks + (this.#state === 'inside' ? (this.#unproven ?? '') : '') + this.#withheld
    const isRead = this.#hasRead || waiting !== '' || this.#state !== 'before'
    if (isRead && this.#state !== 'after') {
      const isInside = this.#state === 'inside' || (this.#state === 'before' && this.#tags.implicitOpen)
      const isOpened = this.#state === 'inside' && this.#unproven === undefined
      const isAnswer = isWhole && !isOpened && this.#thought !== undefined && waiting.trim() !== ''
      const isRepeated = this.#unproven === undefined || (this.#withheld === '' && this.#thought?.trim() === '')
      const isThought = isInside && isRepeated && !isAnswer
      if (!isThought) this.#write('text', waiting)
      else if (this.#thought === undefined || this.#isImplied) this.#write('reasoning', waiting)
    }
    if (isRead) this.#state = 'outside'
    this.#withheld = ''
    this.#blanks = ''
    this.#stop(this.#wasCut)
  }

  #write(kind: 'text' | 'reasoning', text: string) {
    if (text !== '') this.#events.push({ type: 'block_delta', index: this.#blockFor(kind), text })
  }

  /** @returns the number of the open block of this kind, which is begun if there is none */
  #blockFor(kind: 'text' | 'reasoning'): number {
    if (this.#open?.kind !== kind) {
      this.#stop(false)
      this.#open = { index: this.#count++, kind }
      this.#events.push({ type: 'block_start', index: this.#open.index, block: { kind } })
    }
    return this.#open!.index
  }

  #stop(cut: boolean) {
    if (this.#open) this.#events.push({ type: 'block_stop', index: this.#open.index, cut })
    this.#open = undefined
  }
}

/** The part of a piece that goes beyond what it repeats of a text, blanks before them aside, and what is left to repeat. */
function pastRepetition(text: string, piece: string): [beyond: string, left: string] {
  for (const [told, said] of [
    [text, piece],
    [text.trimStart(), piece.trimStart()],
  ] as const) {
    if (told !== '' && told.startsWith(said)) return ['', told.slice(said.length)]
    if (told !== '' && said.startsWith(told)) return [said.slice(told.length), '']
  }
  return [piece, '']
}

/** How many characters at the end of the text could be the beginning of the tag. */
function overlap(text: string, tag: string): number {
  for (let size = Math.min(tag.length - 1, text.length); size > 0; size--)
    if (text.endsWith(tag.slice(0, size))) return size
  return 0
}
