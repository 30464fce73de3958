/**
 * Converts a typed amount of credits to the API's form, which has a point before the decimals: `12,50` is `12.50`,
 * `1.250,50` and `1 250,50` are `1250.50`. What follows the number, such as `/day`, stays. A text with two meanings, such
 * as `1,250`, is returned as it is. The gateway refuses it and says how amounts are written.
 */
export function readAmount(text: string): string {
  const trimmed = text.trim()
  const [, sign = '', number = '', rest = ''] = /^([+\-−]?)([\d.,'’\s]*\d)(\s*\/.*)?$/.exec(trimmed) ?? []
  const plain = number && readNumber(number)
  return plain ? `${sign.replace('−', '-')}${plain}${rest.replaceAll(/\s/g, '')}` : trimmed
}

/** The forms of numbers, and the mark before the decimals in each. */
const forms: readonly [form: RegExp, decimal: '.' | ',' | undefined][] = [
  [/^\d+(\.\d+)?$/, '.'],
  [/^(0|\d+),(\d{1,2}|\d{4,})$|^0,\d+$/, ','],
  [/^\d{1,3}(,\d{3})+\.\d+$/, '.'],
  [/^\d{1,3}(\.\d{3})+,\d+$/, ','],
  [/^\d{1,3}([\s'’]\d{3})+(\.\d+)?$/, '.'],
  [/^\d{1,3}([\s'’]\d{3})+,\d+$/, ','],
  [/^\d{1,3}((,\d{3}){2,}|(\.\d{3}){2,})$/, undefined],
]

function readNumber(number: string): string | undefined {
  const found = forms.find(([form]) => form.test(number))
  if (!found) return undefined
  const [whole = '', fraction] = found[1] === undefined ? [number] : number.split(found[1])
  return whole.replaceAll(/\D/g, '') + (fraction === undefined ? '' : `.${fraction}`)
}
