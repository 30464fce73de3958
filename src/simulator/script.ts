import { readFile } from 'node:fs/promises'
import { LineCounter, parseDocument } from 'yaml'
import { z } from 'zod'
import { Rejection, type SimulatorWire } from './prompt.ts'

/*
 * The keys of a script for a simulated model. Without a key, the default behaviour applies. docs/simulator.md explains
 * the keys with examples.
 */

const anyObject = z.record(z.string(), z.unknown())
const ms = z.number().min(0).max(3_600_000)

const event = z.union([
  z.strictObject({
    /**
     * The name of the event. The default is the `type` of the data, on wires that name their events. If null or empty,
     * there is no `event:` line.
     */
    event: z.string().nullable().optional(),
    /** An object is written as JSON, and a string unchanged. */
    data: z.union([z.string(), anyObject, z.array(z.unknown())]).optional(),
    comment: z.string().optional(),
    /** Text that is sent unchanged, without framing. */
    raw: z.string().optional(),
    delay_ms: ms.optional(),
  }),
  /** A short form of `{data: …}`, e.g. `'[DONE]'`. */
  z.string(),
])

const cut = z.strictObject({
  /** The number of whole events before the cut. A negative number counts from the end. */
  after_events: z.int().optional(),
  after_bytes: z.int().min(0).optional(),
  how: z.enum(['reset', 'end', 'hang', 'error']).optional(),
  /** The error object of `how: error`, in the form of the wire. */
  error: anyObject.optional(),
})

const plainStep = z.strictObject({
  status: z.int().min(200).max(599).optional(),
  headers: z.record(z.string(), z.string()).optional(),
  retry_after: z.number().min(0).optional(),
  /** JSON or text that is sent instead of an answer, even if a stream was requested. */
  body: z.unknown().optional(),
  content_type: z.string().optional(),
  reply: z.string().optional(),
  /** The number of tokens of a generated text, which is sent instead of `reply`. */
  tokens: z.int().min(0).max(1_000_000).optional(),
  reasoning: z.string().optional(),
  tool_calls: z
    .array(
      z.strictObject({
        name: z.string(),
        namespace: z.string().optional(),
        /** An object, or the raw text of the arguments. Default: a sample of the tool's schema. */
        arguments: z.union([anyObject, z.string()]).optional(),
        id: z.string().optional(),
      }),
    )
    .optional(),
  finish: z.string().optional(),
  usage: z.union([z.literal('none'), anyObject]).optional(),
  /** The exact events of the stream, instead of the usual events of the wire. */
  events: z.array(event).optional(),
  /** The delay before the status line. */
  head_delay_ms: ms.optional(),
  /** The delay between the head and the first event. */
  first_delay_ms: ms.optional(),
  /** The delay before each event after the first. */
  delay_ms: ms.optional(),
  cut: cut.optional(),
  /** The number of bytes in each write. */
  split: z.int().min(1).optional(),
  sse: z
    .strictObject({ crlf: z.boolean().optional(), bom: z.boolean().optional(), no_last_blank: z.boolean().optional() })
    .optional(),
})

const step = plainStep.extend({
  /** Steps that are used once each before this step, for example to simulate a temporary error. */
  first: z.array(plainStep).min(1).optional(),
})

const script = step.extend({
  /**
   * The steps of the script. The number of assistant turns in the request selects the step. The last step is also used
   * for all larger numbers.
   */
  turns: z.array(step).min(1).optional(),
  by_wire: z.strictObject({ messages: step.optional(), chat: step.optional(), responses: step.optional() }).optional(),
})

const scriptName = z
  .string()
  .regex(/^(?!sim$)(?!script:)[^?\s]+$/, 'a script name has no space and no "?" and is not "sim"')
const scriptFile = z.record(scriptName, script)

/** The behaviour for one request: the step of a script that fits the request's turn and wire. */
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

/** Checks a script that is a value and not YAML. @throws ScriptError */
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
    // A mistake is reported at the line of its key. The parent node has the key. A list item has no key, so its own
    // line is used.
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

/**
 * Returns the mistakes of an issue that zod reports. For a union, these are the mistakes of the branch that fits best.
 * The path of an unknown key ends with this key.
 */
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

type Directive = { key: keyof ScriptStep; inner?: string; read: (text: string) => unknown }

/**
 * The settings that may follow a `?` in a model name. A setting sets the value of `key` in the script. With `inner`, it
 * sets only that member of the value.
 */
const directives: Record<string, Directive> = {
  status: { key: 'status', read: Number },
  retry_after: { key: 'retry_after', read: Number },
  body: { key: 'body', read: String },
  content_type: { key: 'content_type', read: String },
  reply: { key: 'reply', read: String },
  tokens: { key: 'tokens', read: Number },
  reasoning: { key: 'reasoning', read: String },
  call: { key: 'tool_calls', read: (names) => names.split(',').map((name) => ({ name })) },
  finish: { key: 'finish', read: String },
  usage: { key: 'usage', read: String },
  head_delay_ms: { key: 'head_delay_ms', read: Number },
  first_delay_ms: { key: 'first_delay_ms', read: Number },
  delay_ms: { key: 'delay_ms', read: Number },
  cut_events: { key: 'cut', inner: 'after_events', read: Number },
  cut_bytes: { key: 'cut', inner: 'after_bytes', read: Number },
  cut_how: { key: 'cut', inner: 'how', read: String },
  split: { key: 'split', read: Number },
  crlf: { key: 'sse', inner: 'crlf', read: isTrue },
  bom: { key: 'sse', inner: 'bom', read: isTrue },
  no_last_blank: { key: 'sse', inner: 'no_last_blank', read: isTrue },
}

/**
 * Selects the step for a model name. `script:NAME`, or the name of a script, selects that script. Any other name, such
 * as `sim`, selects the default. Unused steps of `first` come before the script's own keys. A turn overrides top-level
 * keys, and `by_wire` overrides both. Directives after a `?` override the step.
 * @throws Rejection 404 for an unknown `script:`, 400 for an invalid directive
 */
export function selectStep(
  scripts: ReadonlyMap<string, Script>,
  model: string,
  wire: SimulatorWire,
  assistantTurns: number,
): ScriptStep {
  const mark = model.indexOf('?')
  const name = mark < 0 ? model : model.slice(0, mark)
  const { turns, by_wire, ...base } = findScript(scripts, name)
  const turn = turns?.[Math.min(assistantTurns, turns.length - 1)]
  const { first, ...lasting } = { ...base, ...turn, ...by_wire?.[wire] }
  const step = (first && takeNext(first)) ?? lasting
  return mark < 0 ? step : withDirectives(step, model.slice(mark + 1))
}

/**
 * How many steps of each list `first` were used. If a script is replaced, the list of the new script begins at step 0.
 */
const taken = new WeakMap<readonly ScriptStep[], number>()

function takeNext(first: readonly ScriptStep[]): ScriptStep | undefined {
  const index = taken.get(first) ?? 0
  taken.set(first, index + 1)
  return first[index]
}

function findScript(scripts: ReadonlyMap<string, Script>, name: string): Script {
  const prefix = 'script:'
  if (!name.startsWith(prefix)) return scripts.get(name) ?? {}
  const script = scripts.get(name.slice(prefix.length))
  if (script) return script
  const known = [...scripts.keys()].join(', ') || 'none'
  throw new Rejection({
    status: 404,
    message: `The simulator has no script "${name.slice(prefix.length)}". Known: ${known}.`,
    param: 'model',
    code: 'model_not_found',
  })
}

function withDirectives(step: ScriptStep, query: string): ScriptStep {
  const changed: Record<string, unknown> = { ...step }
  for (const [name, text] of new URLSearchParams(query)) {
    const directive = Object.hasOwn(directives, name) ? directives[name] : undefined
    if (!directive) throw wrong(`"${name}" is not a directive. Known: ${Object.keys(directives).join(', ')}.`)
    const { key, inner, read } = directive
    changed[key] = inner ? { ...(changed[key] as object | undefined), [inner]: read(text) } : read(text)
  }
  try {
    return checkScript(changed)
  } catch (error) {
    if (error instanceof ScriptError) throw wrong(error.message)
    throw error
  }
}

function wrong(message: string): Rejection {
  return new Rejection({ status: 400, message: `Directives in the model name: ${message}`, param: 'model' })
}

function isTrue(text: string): boolean {
  return text !== '0' && text !== 'false'
}
