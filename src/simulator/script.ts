import { readFile } from 'node:fs/promises'
import { LineCounter, parseDocument } from 'yaml'
import { z } from 'zod'

/*
 * The keys of a script for a simulated model. A missing key leaves the default behaviour as it is. docs/simulator.md explains
 * them with examples.
 */

const anyObject = z.record(z.string(), z.unknown())
const ms = z.number().min(0).max(3_600_000)

const event = z.union([
  z.strictObject({
    /** If missing, the `type` of the data is used on wires that name their events. Null or empty: no `event:` line. */
    event: z.string().nullable().optional(),
    /** An object is written as JSON, a string as it is. */
    data: z.union([z.string(), anyObject, z.array(z.unknown())]).optional(),
    comment: z.string().optional(),
    /** Bytes that are sent as they are, without framing. */
    raw: z.string().optional(),
    delay_ms: ms.optional(),
  }),
  /** Short for `{data: …}`, e.g. `'[DONE]'`. */
  z.string(),
])

const cut = z.strictObject({
  /** The number of whole events before the cut; a negative number counts from the end. */
  after_events: z.int().optional(),
  after_bytes: z.int().min(0).optional(),
  how: z.enum(['reset', 'end', 'hang', 'error']).optional(),
  /** The error object of `how: error`, in the wire's own form. */
  error: anyObject.optional(),
})

const plainStep = z.strictObject({
  status: z.int().min(200).max(599).optional(),
  headers: z.record(z.string(), z.string()).optional(),
  retry_after: z.number().min(0).optional(),
  /** JSON or text that is sent instead of an answer, also if a stream was asked for. */
  body: z.unknown().optional(),
  content_type: z.string().optional(),
  reply: z.string().optional(),
  /** The number of tokens of a made-up text, instead of a reply. */
  tokens: z.int().min(0).max(1_000_000).optional(),
  reasoning: z.string().optional(),
  tool_calls: z
    .array(
      z.strictObject({
        name: z.string(),
        namespace: z.string().optional(),
        /** An object, or the raw text of the arguments. If missing, it is made from the tool's schema. */
        arguments: z.union([anyObject, z.string()]).optional(),
        id: z.string().optional(),
      }),
    )
    .optional(),
  finish: z.string().optional(),
  usage: z.union([z.literal('none'), anyObject]).optional(),
  /** The exact stream, instead of the one that the wire would make. */
  events: z.array(event).optional(),
  /** The delay before the status line. */
  head_delay_ms: ms.optional(),
  /** The delay between the head and the first event. */
  first_delay_ms: ms.optional(),
  /** The delay before each further event. */
  delay_ms: ms.optional(),
  cut: cut.optional(),
  /** The number of bytes in each write. */
  split: z.int().min(1).optional(),
  sse: z
    .strictObject({ crlf: z.boolean().optional(), bom: z.boolean().optional(), no_last_blank: z.boolean().optional() })
    .optional(),
})

const step = plainStep.extend({
  /** Steps that are used once each before this step, for failures that pass. */
  first: z.array(plainStep).min(1).optional(),
})

const script = step.extend({
  /** One step for each number of assistant turns in the request; the last one is used for all further ones. */
  turns: z.array(step).min(1).optional(),
  by_wire: z.strictObject({ messages: step.optional(), chat: step.optional(), responses: step.optional() }).optional(),
})

const scriptName = z
  .string()
  .regex(/^(?!sim$)(?!script:)[^?\s]+$/, 'a script name has no space and no "?" and is not "sim"')
const scriptFile = z.record(scriptName, script)

/** The behaviour for one request: a script after its turn and wire were chosen. */
export type ScriptStep = z.infer<typeof step>
export type ScriptedEvent = z.infer<typeof event>
export type Script = z.infer<typeof script>

/** An invalid script. The message has the path and, for YAML, the line. */
export class ScriptError extends Error {}

/** Reads one script in YAML. @throws ScriptError */
export function parseScript(text: string): Script {
  return parseYaml(text, script)
}

/** Reads a YAML map from names to scripts. @throws ScriptError */
export function parseScripts(text: string): Map<string, Script> {
  return new Map(Object.entries(parseYaml(text, scriptFile)))
}

/** Reads the scripts of a YAML file. @throws ScriptError, and errors of reading the file */
export async function loadScripts(path: string): Promise<Map<string, Script>> {
  return parseScripts(await readFile(path, 'utf8'))
}

/** Checks a script that was not made from YAML. @throws ScriptError */
export function checkScript(value: unknown): Script {
  const result = script.safeParse(value)
  if (!result.success) throw new ScriptError(explain(result.error.issues))
  return result.data
}

function parseYaml<Out>(text: string, schema: z.ZodType<Out>): Out {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines })
  const broken = document.errors[0]
  if (broken) throw new ScriptError(broken.message)
  const result = schema.safeParse(document.toJS())
  if (result.success) return result.data
  throw new ScriptError(explain(result.error.issues, lineOf))

  function lineOf(path: PropertyKey[]): number | undefined {
    // The line is that of the key, which only the parent knows. A list item has no key, so its own line is used.
    const parent = path.length > 1 ? document.getIn(path.slice(0, -1), true) : document.contents
    const name = String(path.at(-1))
    const items = (parent as { items?: { key?: { value?: unknown; range?: number[] } }[] } | undefined)?.items
    const key = items?.find((pair) => String(pair.key?.value) === name)?.key
    const node = key ?? (document.getIn(path, true) as { range?: number[] } | undefined)
    return node?.range ? lines.linePos(node.range[0]!).line : undefined
  }
}

type Issue = z.core.$ZodIssue

function explain(
  issues: readonly Issue[],
  lineOf: (path: PropertyKey[]) => number | undefined = () => undefined,
): string {
  const sentences = issues
    .flatMap((issue) => deepest(issue, []))
    .map(({ path, message }) => {
      const line = path.length === 0 ? undefined : lineOf(path)
      const place = path.map(String).join('.') || 'script'
      return `${place}${line === undefined ? '' : ` (line ${line})`}: ${message}`
    })
  return sentences.join('\n')
}

/** Reports an unknown key at its own path. For a union, reports the mistakes of the branch that matched best. */
function deepest(issue: Issue, above: PropertyKey[]): { path: PropertyKey[]; message: string }[] {
  const path = [...above, ...issue.path]
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...path, key], message: 'unknown key' }))
  }
  if (issue.code === 'invalid_union') {
    const branches = issue.errors.map((errors) => errors.flatMap((error) => deepest(error, path)))
    const best = branches.sort((a, b) => (b[0]?.path.length ?? 0) - (a[0]?.path.length ?? 0))[0]
    if (best && (best[0]?.path.length ?? 0) > path.length) return best
  }
  if (issue.code === 'invalid_key') return issue.issues.map(({ message }) => ({ path, message }))
  return [{ path, message: issue.message }]
}
