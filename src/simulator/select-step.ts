import { Rejection, type SimulatorWire } from './prompt.ts'
import { checkScript, type Script, ScriptError, type ScriptStep } from './script.ts'

type Directive = { key: keyof ScriptStep; inner?: string; read: (text: string) => unknown }

/** What a model name may carry behind a `?`: a script's keys in query form, inner keys with their short names. */
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
 * What a model name asks for: `sim` and unknown names the default, `script:NAME` and the name of a script that script;
 * behind a `?` come directives, which win over the script. Of the script's own keys a turn wins over the script, and
 * `by_wire` over both; while something of its `first` is left, that is done in the place of all these.
 * @throws Rejection 404 for an unknown `script:`, 400 for a directive that is not understood.
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

/** How much of each list of `first` was done; a script that is put in again begins anew. */
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
    const directive = directives[name]
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
