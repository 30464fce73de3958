import { readFile } from 'node:fs/promises'
import { LineCounter, parseDocument } from 'yaml'
import { z } from 'zod'

/*
 * What a scripted model does, key by key. Absent keys leave the default behaviour as it is. docs/simulator.md explains
 * them with examples.
 */

const anyObject = z.record(z.string(), z.unknown())
const ms = z.number().min(0).max(3_600_000)

const event = z.union([
  z.strictObject({
    /** Absent: the `type` of the data, on the wires that name their events. Null or empty: no `event:` line. */
    event: z.string().nullable().optional(),
    /** An object is written as JSON; a string as it is. */
    data: z.union([z.string(), anyObject, z.array(z.unknown())]).optional(),
    comment: z.string().optional(),
    /** Bytes as they are, without any framing. */
    raw: z.string().optional(),
    delay_ms: ms.optional(),
  }),
  /** Short for `{data: …}`, e.g. `'[DONE]'`. */
  z.string(),
])

const cut = z.strictObject({
  /** Whole events that are sent before; a negative number counts from the end. */
  after_events: z.int().optional(),
  after_bytes: z.int().min(0).optional(),
  how: z.enum(['reset', 'end', 'hang', 'error']).optional(),
  /** The error object of `how: error`, in the wire's own shape. */
  error: anyObject.optional(),
})

const plainStep = z.strictObject({
  status: z.int().min(200).max(599).optional(),
  headers: z.record(z.string(), z.string()).optional(),
  retry_after: z.number().min(0).optional(),
  /** JSON or text sent instead of an answer, also where a stream was asked for. */
  body: z.unknown().optional(),
  content_type: z.string().optional(),
  reply: z.string().optional(),
  /** A text of so many tokens instead of a reply. */
  tokens: z.int().min(0).max(1_000_000).optional(),
  reasoning: z.string().optional(),
  tool_calls: z
    .array(
      z.strictObject({
        name: z.string(),
        namespace: z.string().optional(),
        /** An object, or the raw text of the arguments; absent: made from the tool's schema. */
        arguments: z.union([anyObject, z.string()]).optional(),
        id: z.string().optional(),
      }),
    )
    .optional(),
  finish: z.string().optional(),
  usage: z.union([z.literal('none'), anyObject]).optional(),
  /** The exact stream, instead of the one the wire would make. */
  events: z.array(event).optional(),
  /** Before the status line. */
  head_delay_ms: ms.optional(),
  /** Between the head and the first event. */
  first_delay_ms: ms.optional(),
  /** Before each further event. */
  delay_ms: ms.optional(),
  cut: cut.optional(),
  /** Bytes per write. */
  split: z.int().min(1).optional(),
  sse: z
    .strictObject({ crlf: z.boolean().optional(), bom: z.boolean().optional(), no_last_blank: z.boolean().optional() })
    .optional(),
})

const step = plainStep.extend({
  /** What is done instead, once each, before the step itself is: failures that pass. */
  first: z.array(plainStep).min(1).optional(),
})

const script = step.extend({
  /** One step for each assistant turn that the request already holds; the last one stays. */
  turns: z.array(step).min(1).optional(),
  by_wire: z.strictObject({ messages: step.optional(), chat: step.optional(), responses: step.optional() }).optional(),
})

const scriptName = z
  .string()
  .regex(/^(?!sim$)(?!script:)[^?\s]+$/, 'a script name has no space and no "?" and is not "sim"')
const scriptFile = z.record(scriptName, script)

/** What is done for one request: a script with its turn and wire chosen. */
export type ScriptStep = z.infer<typeof step>
export type ScriptedEvent = z.infer<typeof event>
export type Script = z.infer<typeof script>

/** A script that is not understood. The message names the path and, for YAML, the line. */
export class ScriptError extends Error {}

/** One script in YAML. @throws ScriptError */
export function parseScript(text: string): Script {
  return parseYaml(text, script)
}

/** A YAML map of name to script. @throws ScriptError */
export function parseScripts(text: string): Map<string, Script> {
  return new Map(Object.entries(parseYaml(text, scriptFile)))
}

/** The scripts of a YAML file. @throws ScriptError, and what reading the file throws. */
export async function loadScripts(path: string): Promise<Map<string, Script>> {
  return parseScripts(await readFile(path, 'utf8'))
}

/** A script that was not made from YAML, checked. @throws ScriptError */
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
    // The key's own line, so the parent is asked for its pairs; a list item stands for itself.
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

/** An unknown key gets the key's own path; of a union's branches the one that understood most tells what is wrong. */
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
