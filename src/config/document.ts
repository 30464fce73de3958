import {
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  Scalar,
  visit,
  type YAMLParseError,
} from 'yaml'
import type { ConfigProblem } from './problem.ts'

export type Path = readonly PropertyKey[]

/** A configuration file as plain values, with their lines. */
export type Document = {
  value: unknown
  /** Mistakes in the YAML and in `${…}` references. */
  problems: ConfigProblem[]
  /**
   * Returns the 1-based line of a value. A missing value gets the line of its key, or of the nearest map or list around
   * it.
   */
  lineOf(path: Path): number
}

/** Returns a replacement for a value that names a variable which is not set, or undefined to report a mistake. */
type StandIn = (path: string) => string | undefined

/** Reads YAML 1.2, and replaces `${NAME}` and `${NAME:-default}` in values but not in keys. `$${` means `${`. */
export function readDocument(source: string, env: NodeJS.ProcessEnv, standIn: StandIn = () => undefined): Document {
  if (source.includes('\0')) return unreadable(1, 'is not UTF-8: it looks like UTF-16; save it as UTF-8')
  const lines = new LineCounter()
  const document = parseDocument(source, { lineCounter: lines })
  const lineAt = (offset: number) => lines.linePos(offset).line
  const [mistake] = document.errors
  if (mistake) {
    const line = lineAt(mistake.pos[0])
    return unreadable(line, explainSyntax(mistake, source.split('\n')[line - 1] ?? ''))
  }

  const problems: ConfigProblem[] = []
  let lost: number | undefined
  visit(document, {
    Alias(_, alias) {
      if (alias.resolve(document) === undefined) lost ??= alias.range?.[0] ?? 0
    },
    Scalar(place, scalar, ancestors) {
      if (place === 'key' || typeof scalar.value !== 'string' || !scalar.value.includes('${')) return
      const path = formatPath(pathOf(ancestors, scalar))
      const complain = (message: string) =>
        void problems.push({ path, line: lineAt(scalar.range![0]), message: `${path} ${message}` })
      scalar.value = interpolate(scalar, env, complain, standIn(path))
    },
  })
  if (lost !== undefined)
    return unreadable(
      lineAt(lost),
      'refers to an anchor that is not set before it; text that begins with `*` needs quotes',
    )
  try {
    return { value: document.toJS() ?? {}, problems, lineOf }
  } catch {
    return unreadable(1, 'refers to its own anchors too often; write the values out')
  }

  function lineOf(path: Path): number {
    let node: unknown = document.contents
    let offset = isNode(node) ? node.range?.[0] : undefined
    for (const step of path) {
      if (isAlias(node)) node = node.resolve(document)
      let next: unknown
      if (isMap(node)) {
        const pair = node.items.find(
          ({ key }) => isScalar(key) && snakeCase(String(key.value)) === snakeCase(String(step)),
        )
        if (pair) offset = (pair.key as Node).range?.[0] ?? offset
        next = pair?.value
      } else if (isSeq(node)) {
        next = node.items[Number(step)]
        if (isNode(next)) offset = next.range?.[0] ?? offset
      }
      if (!next) break
      node = next
    }
    return lineAt(offset ?? 0)
  }
}

/**
 * Matches an unquoted reference (`${NAME}`) inside braces or brackets. YAML reads the reference's own braces as a map.
 */
const bareReference = /[{[,].*:\s*\$\{|[[,]\s*\$\{/

/** Describes the first YAML error as the end of a sentence. No value is quoted, because a value may be a secret key. */
function explainSyntax({ code, message }: YAMLParseError, line: string): string {
  if (code === 'MULTIPLE_DOCS') return 'holds more than one document here: take out the line `---`, or what follows it'
  const text = message.split('\n')[0]!.replace(/(: ".*| at line \d+, column \d+:)$/, '')
  const cure = bareReference.test(line) ? `; within braces and brackets a reference needs quotes: "\${NAME}"` : ''
  return `is not valid YAML: ${text}${cure}`
}

function unreadable(line: number, message: string): Document {
  return { value: undefined, problems: [{ path: '', line, message: `the file ${message}` }], lineOf: () => line }
}

/** Converts `max_field` to `maxField`. */
export function camelCase(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** Converts `maxField` to `max_field`. */
export function snakeCase(key: string): string {
  return key.replace(/([a-z0-9])([A-Z])/g, (_, before: string, letter: string) => `${before}_${letter.toLowerCase()}`)
}

/** Formats a path as `catalog.models[0].id`. */
export function formatPath(path: Path): string {
  let text = ''
  for (const step of path) text += typeof step === 'number' ? `[${step}]` : `${text && '.'}${String(step)}`
  return text
}

function interpolate(
  scalar: Scalar,
  env: NodeJS.ProcessEnv,
  complain: (message: string) => void,
  standIn: string | undefined,
): unknown {
  const source = String(scalar.value)
  let isUnset = false
  const text = source.replace(/\$\$\{|\$\{([^}]*)\}?/g, (match, reference: string | undefined) => {
    if (match === '$${') return '${'
    const parts = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s.exec(reference ?? '')
    if (!parts || !match.endsWith('}')) {
      complain(
        `has a reference that is neither \${NAME} nor \${NAME:-default}; write $\${ for the characters themselves`,
      )
      return match
    }
    const [, name = '', fallback] = parts
    // As in a shell, the default after `:-` also replaces an empty variable.
    const value = fallback === undefined ? env[name] : env[name] || fallback
    isUnset ||= value === undefined
    if (value === undefined && standIn === undefined)
      complain(`needs the environment variable ${name}, which is not set; set it, or write \${${name}:-default}`)
    return value ?? match
  })
  if (isUnset && standIn !== undefined) return standIn
  // A value may consist of one unquoted reference, such as `${NAME}`. If the variable's text then has the form of a
  // number or a boolean, the value is a number or a boolean.
  const isBare = scalar.type === Scalar.PLAIN && /^\$\{[^}]*\}$/.test(source)
  if (isBare && /^-?\d+(\.\d+)?$/.test(text)) return Number(text)
  if (isBare && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

/** Returns the path of a scalar. @param ancestors the nodes from the root to its parent */
function pathOf(ancestors: readonly unknown[], scalar: Scalar): Path {
  const path: PropertyKey[] = []
  for (const [depth, node] of ancestors.entries()) {
    const child = ancestors[depth + 1] ?? scalar
    if (isSeq(node)) path.push(node.items.indexOf(child))
    else if (isMap(node)) {
      const pair = child as { key?: unknown }
      path.push(isScalar(pair.key) ? String(pair.key.value) : '?')
    }
  }
  return path
}
