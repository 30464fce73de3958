import { Rejection, type SimulatorWire } from './prompt.ts'
import { checkScript, type Script, ScriptError, type ScriptStep } from './script.ts'

type Directive = { key: keyof ScriptStep; inner?: string; read: (text: string) => unknown }

/** The keys that may follow a `?` in a model name: those of a script in query form, with short names for inner keys. */
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
 * Selects the step for a model name. `script:NAME`, or the name of a script, selects that script; `sim` and any other name
 * select the default. Directives after a `?` override the script. In a script, a turn overrides the script's own keys, and
 * `by_wire` overrides both. While its `first` has unused steps, one of them is used instead of all these.
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

/** The number of used steps of each `first`. It starts again if the script is replaced. */
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
