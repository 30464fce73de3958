import type { Step } from '../../bytes/step.ts'
import type { AnswerEvent } from '../answer.ts'
import { cutsBlocks } from '../narrator.ts'

export type ThinkTags = { open: string; close: string; implicitOpen: boolean }

/**
 * Moves a thought that a model writes between tags in its text into a reasoning block. Tags count only at the beginning
 * of the first text, since a model may write about tags.
 *
 * Some servers also send the thought in a reasoning field, before the tags or along with each piece (BUG-6). Then the
 * thought in the field is shown, and the text between the tags is dropped.
 * - A piece of the field does not end the text block.
 * - After a further thought in the field, the text may begin with tags again.
 * - After any thought in the field, tags count in the middle of the text too, if the text between them repeats the
 *   thought.
 */
export function splitThinkTags(tags: ThinkTags): Step<AnswerEvent, AnswerEvent> {
  return new ThinkTagFilter(tags)
}

class ThinkTagFilter implements Step<AnswerEvent, AnswerEvent> {
  readonly #tags: ThinkTags
  /**
   * `before`: an opening tag may still come. `inside`: the closing tag has not come yet. `after`: the closing tag has
   * come, and blanks before the text are dropped. `outside`: tags are ordinary text.
   */
  #state: 'before' | 'inside' | 'after' | 'outside' = 'before'
  /** Text at the end of a piece that may be the beginning of a tag. */
  #withheld = ''
  /** Blanks that came before a possible tag. */
  #blanks = ''
  /**
   * Text that may be a thought or ordinary text, because its opening tag is missing or came late. It is kept while it
   * repeats the thought in the reasoning field.
   */
  #unproven: string | undefined
  /** The rest of `#unproven` after a repetition of the whole thought. Only blanks are accepted in it. */
  #beyond = ''
  /** Whether a word was found in `#unproven`. Blanks before the first word are ignored. */
  #hasWord = false
  #count = 0
  /** `#reading`: the number of the text block that is being read. `#open`: the block that is open in our output. */
  #reading: number | undefined
  #open: { index: number; kind: 'text' | 'reasoning' } | undefined
  /** Whether text was read since the last block of the reasoning field began. */
  #hasRead = false
  /** Whether the last block of text or of the reasoning field that stopped was cut. */
  #wasCut = false
  /**
   * Whether the opening tag of the thought in the text is missing or came late. The text and the reasoning field may
   * then repeat each other.
   */
  #isImplied = false
  /** The part of the reasoning field's text that the tagged text has not repeated yet. */
  #thought: string | undefined
  /** Tagged text that the reasoning field has not repeated yet. */
  #unrepeated = ''
  /** Whether a thought came both in the reasoning field and before a closing tag. */
  #isMirrored = false
  /** Whether text came before the tags. An opening tag is then text, unless a repetition of the thought follows it. */
  #isLate = false
  /** The indexes of open blocks that come from the reasoning field. Their text is compared with the tagged text. */
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
    if (isIdle && block.kind === 'text' && (this.#state !== 'outside' || this.#isRepeatable())) this.#reading = index
    else if (isIdle && block.kind === 'reasoning') {
      if (this.#state === 'outside' && this.#unrepeated === '') this.#beginAgain()
      // Two thoughts without text between them are two blocks (I7).
      if (!this.#hasRead) this.#stop(false)
      this.#hasRead = false
      this.#fields.add(index)
    } else {
      if (isIdle) this.#endText()
      this.#numbers.set(index, this.#count)
      this.#events.push({ ...event, index: this.#count++ })
    }
  }

  #beginAgain() {
    this.#endText()
    this.#state = 'before'
    this.#isLate = true
    this.#unproven = undefined
    this.#thought = undefined
    this.#beyond = ''
    this.#hasWord = false
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

  /** Whether the reasoning field has given a thought (not only blanks) that the tagged text has not repeated yet. */
  #isRepeatable(): boolean {
    return this.#thought !== undefined && this.#thought.trim() !== ''
  }

  /** Reads a piece of the reasoning field. Emits only text that the tagged text did not have already. */
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
      if (isOpened && this.#isLate && !this.#isMirrored) this.#unproven = open
      else if (!isOpened && this.#thought !== undefined) this.#unproven = ''
      this.#isImplied = !isOpened && this.#thought === undefined
    }
    for (;;) {
      if (this.#state === 'after') {
        rest = rest.trimStart()
        if (rest === '') return
        this.#state = 'outside'
      }
      if (this.#state === 'outside') rest = this.#readText(rest)
      const behind = this.#state === 'inside' ? this.#readTagged(rest) : undefined
      if (behind === undefined) return
      rest = behind
    }
  }

  /** Reads text after an opening tag. @returns the text after the closing tag, if the tagged text is reasoning */
  #readTagged(text: string): string | undefined {
    const { open, close } = this.#tags
    const at = text.indexOf(close)
    if (at < 0) {
      const keep = overlap(text, close)
      this.#withheld = text.slice(text.length - keep)
      this.#think(text.slice(0, text.length - keep))
      return undefined
    }
    const isDoubtful = this.#isLate && this.#unproven?.startsWith(open)
    if (isDoubtful && !(this.#repeats(text.slice(0, at)) && this.#hasWord)) {
      this.#state = 'outside'
      this.#write('text', this.#unproven + text)
      return undefined
    }
    // The closing tag proves that `#unproven` is a thought. `#think` writes only what the reasoning field lacks.
    if (this.#unproven !== undefined) this.#isImplied = true
    this.#unproven = undefined
    if (!isDoubtful) this.#think(text.slice(0, at))
    if (this.#thought === undefined) this.#stop(false)
    else {
      this.#isMirrored = true
      // Tagged text before the answer counts as a repetition of the reasoning field, even if the words differ.
      if (!this.#isImplied) this.#thought = ''
    }
    this.#state = 'after'
    return text.slice(at + close.length)
  }

  /**
   * Reads text outside of tags, up to an opening tag. The text inside such a tag may repeat the thought before it.
   * @returns the text after the opening tag; an empty text without such a tag
   */
  #readText(text: string): string {
    const { open } = this.#tags
    const at = this.#isRepeatable() ? text.indexOf(open) : -1
    if (at < 0) {
      const keep = this.#isRepeatable() ? overlap(text, open) : 0
      this.#withheld = text.slice(text.length - keep)
      this.#write('text', text.slice(0, text.length - keep))
      return ''
    }
    this.#write('text', text.slice(0, at))
    this.#state = 'inside'
    this.#isLate = true
    this.#unproven = open
    this.#beyond = ''
    this.#hasWord = false
    return text.slice(at + open.length)
  }

  /** Reads a piece of text between the tags. */
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
   * Whether the text since the opening tag still repeats the text of the reasoning field. Only the new piece is
   * compared, since there may be many pieces. After the whole repetition, only blanks may follow.
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
   * Decides whether the withheld text is reasoning or text of the answer. Called when no later text can contain tags.
   * @param isWhole whether the answer has ended and was not cut off. Text that repeats known reasoning then counts as
   *   the answer
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

  /** Opens a block of this kind, unless the open block is of this kind already. @returns the number of the block */
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

/**
 * Compares a piece with the text that it is expected to repeat, ignoring blanks before both.
 * @returns `beyond`, the part of the piece after the repetition, and `left`, the part of the text that later pieces
 *   must repeat. If the piece repeats nothing, these are the whole piece and ''
 */
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

/** The number of characters at the end of the text that may be the beginning of the tag. */
function overlap(text: string, tag: string): number {
  for (let size = Math.min(tag.length - 1, text.length); size > 0; size--)
    if (text.endsWith(tag.slice(0, size))) return size
  return 0
}
