import type { Expectation, Json } from './case.ts'
import { valueAt } from './paths.ts'

/**
 * A matcher is JSON. A text, number, boolean or null matches itself. A list matches a list of as many entries, each by its matcher.
 * An object whose names begin with `$` holds operators, all of which must match. Any other object matches an object that has its
 * members, each by its matcher; further members do not matter. README.md lists the operators.
 */
export type Mismatch = { path: string; expected: string; actual: Json | undefined }

/** Values that `$same` has bound in this run of a case, by their names. */
export type Bindings = Map<string, Json>

/** Lists the parts of an expectation that an observation does not meet. */
export function findMismatches(expectation: Expectation, observation: Json, bindings: Bindings): Mismatch[] {
  return Object.entries(expectation).flatMap(([path, matcher]) =>
    mismatch(matcher, valueAt(observation, path), { path, bindings }),
  )
}

type Place = { path: string; bindings: Bindings }

function mismatch(matcher: Json, actual: Json | undefined, place: Place): Mismatch[] {
  const fail = (expected: string): Mismatch[] => [{ path: place.path, expected, actual }]
  if (Array.isArray(matcher)) {
    if (!Array.isArray(actual)) return fail('a list')
    if (actual.length !== matcher.length) return fail(`${matcher.length} entries`)
    return matcher.flatMap((one, at) => mismatch(one, actual[at], inside(place, `[${at}]`)))
  }
  if (!isObject(matcher)) return Object.is(actual, matcher) ? [] : fail(show(matcher))
  const names = Object.keys(matcher)
  if (names.length > 0 && names.every((name) => name.startsWith('$'))) {
    return names.flatMap((name) => {
      const operator = operators[name]
      if (!operator) throw new Error(`the operator ${name} is unknown; known are ${operatorNames.join(', ')}`)
      return operator(matcher[name]!, actual, { ...place, fail })
    })
  }
  if (!isObject(actual)) return fail('an object')
  return names.flatMap((name) =>
    mismatch(matcher[name]!, Object.hasOwn(actual, name) ? actual[name] : undefined, inside(place, `.${name}`)),
  )
}

type Operator = (
  rule: Json,
  actual: Json | undefined,
  place: Place & { fail(expected: string): Mismatch[] },
) => Mismatch[]

/** Makes an operator of a condition. */
function holds(test: (actual: Json | undefined, rule: never) => boolean, says: (rule: string) => string): Operator {
  return (rule, actual, { fail }) => (test(actual, rule as never) ? [] : fail(says(show(rule))))
}

/** Matches a part of the value with the matcher that the operator holds. */
function within(part: (actual: Json | undefined) => Json | undefined, step: string): Operator {
  return (rule, actual, place) => mismatch(rule, part(actual), inside(place, step))
}

/** Makes an operator of a list: how many of its entries match decides. */
function entries(test: (matching: number, all: number) => boolean, says: string): Operator {
  return (rule, actual, place) => {
    if (!Array.isArray(actual)) return place.fail('a list')
    const matching = actual.filter((entry) => matches(rule, entry, place)).length
    return test(matching, actual.length) ? [] : place.fail(`${says} ${show(rule)}`)
  }
}

const operators: { readonly [name: string]: Operator } = {
  $equals: holds(
    (actual, rule) => equals(actual, rule),
    (rule) => `exactly ${rule}`,
  ),
  $absent: holds(
    (actual, rule) => (actual === undefined) === rule,
    () => 'absent',
  ),
  $present: holds(
    (actual, rule) => (actual !== undefined) === rule,
    () => 'present',
  ),
  $empty: holds(
    (actual, rule) => isEmpty(actual) === rule,
    (rule) => (rule === 'true' ? 'absent, null or empty' : 'neither absent nor null nor empty'),
  ),
  $oneOf: (rule, actual, place) =>
    (rule as Json[]).some((one) => matches(one, actual, place)) ? [] : place.fail(`one of ${show(rule)}`),
  $not: (rule, actual, place) => (matches(rule, actual, place) ? place.fail(`not ${show(rule)}`) : []),
  $all: (rule, actual, place) => (rule as Json[]).flatMap((one) => mismatch(one, actual, place)),
  $matches: holds(
    (actual, rule: string) => typeof actual === 'string' && new RegExp(rule, 'su').test(actual),
    (rule) => `a text that matches ${rule}`,
  ),
  $contains: holds(
    (actual, rule: string) => typeof actual === 'string' && actual.includes(rule),
    (rule) => `a text with ${rule} in it`,
  ),
  $type: holds(
    (actual, rule: string) => (rule === 'integer' ? Number.isInteger(actual) : typeOf(actual) === rule),
    (rule) => `of the type ${rule}`,
  ),
  $atLeast: holds(
    (actual, rule: number) => typeof actual === 'number' && actual >= rule,
    (rule) => `at least ${rule}`,
  ),
  $atMost: holds(
    (actual, rule: number) => typeof actual === 'number' && actual <= rule,
    (rule) => `at most ${rule}`,
  ),
  $near: holds(
    (actual, rule: number) => typeof actual === 'number' && Math.abs(actual - rule) <= 1e-9,
    (rule) => `${rule} to a billionth`,
  ),
  $length: within(
    (actual) => (typeof actual === 'string' || Array.isArray(actual) ? actual.length : undefined),
    '|length',
  ),
  $json: within((actual) => valueAt({ text: actual ?? null }, 'text|json'), '|json'),
  $join: within((actual) => valueAt({ list: actual ?? null }, 'list|join'), '|join'),
  $keys: within((actual) => (isObject(actual) ? Object.keys(actual) : undefined), '|keys'),
  $base64: within(
    (actual) => (typeof actual === 'string' ? Buffer.from(actual, 'base64').toString() : undefined),
    ' from base64',
  ),
  $each: entries((matching, all) => matching === all, 'each entry'),
  $some: entries((matching) => matching > 0, 'an entry that is'),
  $none: entries((matching) => matching === 0, 'no entry that is'),
  $one: entries((matching) => matching === 1, 'exactly one entry that is'),
  $ordered(rule, actual, place) {
    if (!Array.isArray(actual)) return place.fail('a list')
    let at = 0
    for (const one of rule as Json[]) {
      while (at < actual.length && !matches(one, actual[at], place)) at++
      if (at === actual.length)
        return place.fail(`in this order, others between them: ${show(rule)}; missing ${show(one)}`)
      mismatch(one, actual[at++], place)
    }
    return []
  },
  $same(rule, actual, { bindings, fail }) {
    const name = String(rule)
    if (actual === undefined || actual === null) return fail(`a value for "${name}"`)
    const bound = bindings.get(name)
    if (bound === undefined) bindings.set(name, actual)
    return bound === undefined || equals(bound, actual) ? [] : fail(`the same as before for "${name}": ${show(bound)}`)
  },
  $different: holds(
    (actual) => Array.isArray(actual) && new Set(actual.map((entry) => JSON.stringify(entry))).size === actual.length,
    () => 'entries that all differ',
  ),
  $ascending: holds(
    (actual) =>
      Array.isArray(actual) &&
      actual.every((entry, at) => typeof entry === 'number' && (at === 0 || entry > Number(actual[at - 1]))),
    () => 'numbers, each above the one before',
  ),
}

/** The names of all operators, for the documentation and its test. */
export const operatorNames: readonly string[] = Object.keys(operators)

/** Tries a matcher. What it binds lasts only if it matches. */
function matches(matcher: Json, actual: Json | undefined, { path, bindings }: Place): boolean {
  const trial = new Map(bindings)
  if (mismatch(matcher, actual, { path, bindings: trial }).length > 0) return false
  for (const [name, value] of trial) bindings.set(name, value)
  return true
}

/** Compares JSON; the order of members does not matter. */
export function equals(a: Json | undefined, b: Json | undefined): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((entry, at) => equals(entry, b[at]))
  if (!isObject(a) || !isObject(b)) return Object.is(a, b)
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && equals(a[name], b[name]))
  )
}

function inside<P extends Place>(place: P, step: string): Place {
  return { path: place.path + step, bindings: place.bindings }
}

function isEmpty(value: Json | undefined): boolean {
  return (
    value === undefined ||
    value === null ||
    value === '' ||
    (typeof value === 'object' && Object.keys(value).length === 0)
  )
}

function isObject(value: Json | undefined): value is { [name: string]: Json } {
  return typeOf(value) === 'object'
}

function typeOf(value: Json | undefined): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
}

function show(value: Json): string {
  const text = JSON.stringify(value)
  return text.length > 300 ? `${text.slice(0, 300)}…` : text
}
