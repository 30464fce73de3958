/** A token's kind in a model file: ordinary text, one that only the template writes, or one that prompts may write too. */
const kinds = { plain: 1, control: 3, spoken: 4 }

/** The tokens of a model, the 256 bytes first. A token may hold any bytes, also part of a character. */
export class Vocabulary {
  readonly texts: string[] = []
  readonly kinds: number[] = []
  readonly #ids = new Map<string, number>()

  constructor() {
    for (let byte = 0; byte < 256; byte++) this.#add(letterOf(byte), kinds.plain)
  }

  add(piece: string | Buffer): number {
    return this.#add(lettersOf(piece), kinds.plain)
  }

  addControl(name: string): number {
    return this.#add(name, kinds.control)
  }

  addSpoken(name: string): number {
    return this.#add(name, kinds.spoken)
  }

  id(piece: string): number {
    const id = this.#ids.get(lettersOf(piece))
    if (id === undefined) throw new Error(`${JSON.stringify(piece)} is no token`)
    return id
  }

  #add(text: string, kind: number): number {
    if (this.#ids.has(text)) throw new Error(`${JSON.stringify(text)} is a token already`)
    this.#ids.set(text, this.texts.length)
    this.kinds.push(kind)
    return this.texts.push(text) - 1
  }
}

/** The tokenizer writes bytes as printable letters: those that print stand for themselves, the others follow U+00FF. */
export function lettersOf(piece: string | Buffer): string {
  return Array.from(Buffer.from(piece as string), letterOf).join('')
}

const isPrinted = (byte: number) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173)
const others = Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => !isPrinted(byte))

function letterOf(byte: number): string {
  return String.fromCharCode(isPrinted(byte) ? byte : 256 + others.indexOf(byte))
}
