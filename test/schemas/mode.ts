import { z } from 'zod'

/**
 * How an answer came about. `translated`: all of it is ours, so that a key or an event we do not document is a mistake.
 * `native`: the provider's own words pass (ruling P2); what the specification names must be there, more may be.
 */
export type Mode = 'translated' | 'native'

/** The words of which both modes of a schema are made; types are inferred from the strict one. */
export function wordsOf(mode: Mode) {
  const isNative = mode === 'native'
  return {
    object: (isNative ? z.looseObject : z.strictObject) as typeof z.strictObject,

    /** What the official types or strict clients want and the specification does not name: ours to write, not to demand. */
    ours: <T extends z.ZodType>(schema: T): T => (isNative ? (schema.nullish() as unknown as T) : schema),

    /** A closed list of ours; a provider may have longer ones. */
    word: <T extends z.ZodType<string>>(schema: T): T => (isNative ? (z.string() as unknown as T) : schema),

    /** A provider's kinds that we do not know pass too, the known ones only in their shape. */
    kinds<T extends z.ZodDiscriminatedUnion>(union: T): T {
      if (!isNative) return union
      const known = union.options.flatMap((option) => [...(option._zod.propValues?.['type'] ?? [])])
      const other = z.looseObject({ type: z.string().refine((type) => !known.includes(type)) })
      return z.union([union, other]) as unknown as T
    },
  }
}

export const count = z.int().nonnegative()
export const seconds = z.int().positive()
export const someText = z.string().min(1)
