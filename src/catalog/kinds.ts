import { z } from 'zod'

/*
 * The simple kinds of values in the configuration file. Error messages describe valid values. They never repeat the
 * value in the file, which may be a key.
 */

export const text = (cure = 'must be text; a value that looks like a number needs quotes') => z.string({ error: cure })

export const filled = (cure: string) => text().min(1, { error: cure })

export const flag = z.boolean({ error: 'must be true or false' })

export const count = (least: number, most = Number.MAX_SAFE_INTEGER) => {
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`
  const error = `must be a whole number ${range}`
  return z.int({ error }).min(least, { error }).max(most, { error })
}

export const oneOf = <const Words extends readonly [string, ...string[]]>(words: Words) =>
  z.enum(words, { error: `must be one of: ${words.join(', ')}` })

/** Makes the schema of a list. @param what the name of the items, in the plural */
export const listOf = <Item extends z.ZodType>(item: Item, what: string) =>
  z.array(item, { error: `must be a list of ${what}` })

/** A setting that allows or refuses parts of a request that refer to outside things, such as URLs. */
export const passage = oneOf(['pass', 'refuse'])
