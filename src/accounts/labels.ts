/*
 * Labels describe the purpose of a request. The operator declares dimensions with all their values in the configuration
 * (ruling Y21). A label is a text such as `project=apollo`. A key has labels of its own, and may let its client choose
 * in some dimensions.
 */

/** All values that the configuration declares for labels, by dimension. */
export type DeclaredLabels = ReadonlyMap<string, ReadonlySet<string>>

/**
 * The maximum number of labels of a key. A client can add as many labels of other dimensions, so an entry has at most
 * twice this number.
 */
export const labelsMax = 4

/** The most values of labels in a configuration, over all dimensions together. */
export const labelValuesMax = 1_000

/**
 * The form of a label's dimension and value: up to 64 letters, digits and marks. These marks need no quotes in headers
 * and lists.
 */
export const labelWord = /^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,63}$/

export const labelWordCure = 'must be 1 to 64 letters and digits; after the first one also . _ : / @ + - may stand'

function dimensionOf(label: string): string {
  return label.slice(0, label.indexOf('='))
}

/**
 * Parses labels as people write them: `project=apollo,team=red`. @throws RangeError with a message for the person who
 * wrote it
 */
export function parseLabels(text: string): string[] {
  const labels = cut(text, 'labels', 'project=apollo,team=red')
  if (!labels.every((label) => label.split('=').length === 2 && label.split('=').every((word) => labelWord.test(word))))
    throw new RangeError('Write labels as dimensions and values, such as project=apollo,team=red.')
  if (new Set(labels.map(dimensionOf)).size < labels.length)
    throw new RangeError('A key has one label in each dimension.')
  return sorted(labels)
}

/**
 * Parses the dimensions for which a client may choose its own labels, such as `project,team`. @throws RangeError with a
 * message for the person who wrote the text
 */
export function parseDimensions(text: string): string[] {
  const dimensions = cut(text, 'dimensions', 'project,team')
  if (!dimensions.every((word) => labelWord.test(word))) throw new RangeError('Write dimensions such as project,team.')
  return dimensions.sort()
}

function cut(text: string, what: string, example: string): string[] {
  const words = [...new Set(text.split(',').map((word) => word.trim()))]
  if (words.includes('')) throw new RangeError(`Write ${what} with commas between them, such as ${example}.`)
  if (words.length > labelsMax) throw new RangeError(`A key has ${labelsMax} ${what} at most.`)
  return words
}

/** Returns an error message if a word is not declared. A word is a label (`project=apollo`) or only a dimension. */
export function undeclaredMistake(declared: DeclaredLabels, words: readonly string[]): string | undefined {
  for (const word of words) {
    const [dimension = '', value] = word.split('=')
    const values = declared.get(dimension)
    if (values === undefined)
      return `There is no dimension "${dimension}": declare it in the configuration, under labels.`
    if (value !== undefined && !values.has(value))
      return `"${value}" is no value of ${dimension}: declare it in the configuration, under labels.`
  }
  return undefined
}

/** Formats the labels of a key or an entry for a store, with commas. @param labels sorted by dimension */
function formatLabels(labels: readonly string[]): string {
  return labels.join(',')
}

/**
 * Returns the labels of a request: those of its key, replaced where the client chose others.
 * @param chosen the value of the header: labels separated by commas
 * @returns the labels as an entry stores them; undefined without labels. `'forbidden'` if the client chose a label that
 *   the key may not choose, or that the configuration does not declare
 */
export function labelsOfRequest(
  chosen: string | undefined,
  {
    labels = [],
    mayChoose = [],
  }: { labels?: readonly string[] | undefined; mayChoose?: readonly string[] | undefined },
  declared: DeclaredLabels,
): { labels: string | undefined } | 'forbidden' {
  const all = new Map(labels.map((label) => [dimensionOf(label), label]))
  const words = chosen === undefined ? [] : chosen.split(',').map((word) => word.trim())
  const seen = new Set<string>()
  for (const word of words) {
    // A list in a header may have empty members (RFC 9110 5.6.1.2).
    if (word === '') continue
    const dimension = dimensionOf(word)
    const isAllowed = mayChoose.includes(dimension) && declared.get(dimension)?.has(word.slice(dimension.length + 1))
    if (!isAllowed || seen.has(dimension)) return 'forbidden'
    seen.add(dimension)
    all.set(dimension, word)
  }
  return { labels: all.size === 0 ? undefined : formatLabels(sorted([...all.values()])) }
}

function sorted(labels: readonly string[]): string[] {
  return labels.toSorted((one, other) => (dimensionOf(one) < dimensionOf(other) ? -1 : 1))
}
