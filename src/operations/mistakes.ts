import type { z } from 'zod'
import { type Mistake, ProblemError } from './problem.ts'

type InputIssue = z.core.$ZodRawIssue

const kinds: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
}

/** The error text of a field whose schema has none of its own. It says what is right, and never quotes the value. */
export function sayIssue(issue: InputIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'is missing'
      return `must be ${kinds[issue.expected] ?? issue.expected}`
    case 'too_small':
      return `must ${sayBound(issue.origin, 'at least', Number(issue.minimum))}`
    case 'too_big':
      return `must ${sayBound(issue.origin, 'at most', Number(issue.maximum))}`
    case 'invalid_value':
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.join(', ')}`
    case 'unrecognized_keys':
      return 'is not known here'
  }
  return undefined
}

function sayBound(origin: string, how: string, bound: number): string {
  if (origin === 'string') return how === 'at least' && bound === 1 ? 'not be empty' : `have ${how} ${bound} characters`
  return origin === 'array' || origin === 'map' ? `have ${how} ${bound} members` : `be ${how} ${bound}`
}

/** Makes a problem of all mistakes, each with its field. Each unknown field is a mistake of its own. */
export function invalidFields(issues: readonly z.core.$ZodIssue[]): ProblemError {
  const mistakes = issues.flatMap((issue): Mistake[] => {
    const paths = issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [issue.path]
    return paths.map((path) => ({ pointer: pointerTo(path), detail: issue.message }))
  })
  const { pointer, detail } = mistakes[0]!
  return new ProblemError('invalid_request', pointer === '' ? detail : `${pointer.slice(1)}: ${detail}`, { mistakes })
}

/** Writes a JSON pointer (RFC 6901). */
export function pointerTo(path: readonly PropertyKey[]): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
