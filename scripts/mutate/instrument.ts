import type { Mutant } from './operators.ts'

/**
 * Returns the code with every change in it, each with a switch: `__mutant(7)` says whether change 7 is on. So each file
 * is made once, and a run chooses a change by number. A change contains the original text, so if two overlap, only the
 * outer one takes effect.
 */
export function instrument(code: string, mutants: readonly Mutant[]): string {
  const marks: { at: number; isClosing: boolean; order: number; text: string }[] = []
  const places = Map.groupBy(mutants, ({ kind, start, end }) => `${kind} ${start} ${end}`)
  let order = 0
  for (const here of places.values()) {
    order++
    const { kind, start, end, id } = here[0]!
    const open = (at: number, text: string) => marks.push({ at, isClosing: false, order, text })
    const close = (at: number, text: string) => marks.push({ at, isClosing: true, order, text })
    if (kind === 'body') open(start + 1, `if(__mutant(${id}))return;`)
    else if (kind === 'statement') {
      open(start, `{if(!__mutant(${id})){`)
      close(end, '}}')
    } else {
      open(start, `(${here.map((one) => `__mutant(${one.id})?(${one.after}):`).join('')}(`)
      close(end, '))')
    }
  }
  marks.sort((one, other) => {
    if (one.at !== other.at) return one.at - other.at
    if (one.isClosing !== other.isClosing) return one.isClosing ? -1 : 1
    return one.isClosing ? other.order - one.order : one.order - other.order
  })
  let text = ''
  let from = 0
  for (const mark of marks) {
    text += code.slice(from, mark.at) + mark.text
    from = mark.at
  }
  return text + code.slice(from)
}
