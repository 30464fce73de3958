/**
 * Converts a typed amount of credits to the API's form, which has a point before the decimals: `12,50` is `12.50`,
 * `1.250,50` and `1 250,50` are `1250.50`. What follows the number, such as `/day`, stays. A text of another form is
 * returned as it is. The gateway refuses it and says how amounts are written.
 */
export function readAmount(text: string): string {
  const { sign, number, rest } = splitAmount(text)
  const plain = number && readNumber(number)
  return plain ? `${sign}${plain}${rest}` : text.trim()
}

/**
 * Explains why an amount cannot be sent as it is typed. In `1.000` and `1,250`, the mark stands before decimals in some
 * countries, and before thousands in others. @returns undefined for an amount with one meaning
 */
export function findDoubt(text: string): string | undefined {
  const { sign, number, rest } = splitAmount(text)
  const [, whole, digits] = /^([1-9]\d{0,2})[.,](\d{3})$/.exec(number) ?? []
  if (!whole || !digits) return undefined
  const decimals = digits.endsWith('0') ? digits.slice(0, 2) : `${digits}0`
  const forms = `${sign}${whole}${digits}${rest} or ${sign}${whole}.${decimals}${rest}`
  return `"${text.trim()}" has two meanings: write ${forms}`
}

function splitAmount(text: string) {
  const [, sign = '', number = '', rest = ''] = /^([+\-−]?)([\d.,'’\s]*\d)(\s*\/.*)?$/.exec(text.trim()) ?? []
  return { sign: sign.replace('−', '-'), number, rest: rest.replaceAll(/\s/g, '') }
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
