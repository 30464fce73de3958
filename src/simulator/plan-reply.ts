import { findAskedCalls } from './asked-calls.ts'
import type { PromptCounts } from './prefix-cache.ts'
import type { Prompt, PromptTurn, ReplyCall, SimulatedReply } from './prompt.ts'
import { sampleSchema } from './schema-sample.ts'
import type { ScriptStep } from './script.ts'
import { countTokens, tokenize } from './tokens.ts'

/** The most characters of a question or of a tool result that an answer repeats. */
const quoteCharactersMax = 200

/** Plans the answer as the script's step says. Whatever the step does not set is derived from the prompt. */
export function planReply(prompt: Prompt, step: ScriptStep, counts: PromptCounts): SimulatedReply {
  const turn = lastTurn(prompt)
  const asked = ownText(turn)
  const isScripted = step.reply !== undefined || step.tokens !== undefined || step.tool_calls !== undefined
  const isAfterResults = turn.results.length > 0 && asked === '' && prompt.choice.mode !== 'required'
  const asksNothing = isScripted || isAfterResults
  const defaultCalls = asksNothing
    ? []
    : findAskedCalls(prompt, asked).map(({ tool, arguments: text }) => {
        return { id: undefined, name: tool.name, namespace: tool.namespace, arguments: text, isCut: false }
      })
  const calls = step.tool_calls?.map((call) => scriptedCall(prompt, call)) ?? defaultCalls
  const text = step.reply ?? (step.tokens === undefined ? undefined : filler(step.tokens))
  const isReasoning = step.reasoning !== undefined || prompt.reasoning !== 'none'
  const reply: SimulatedReply = {
    reasoning: isReasoning ? (step.reasoning ?? thoughtAbout(asked, calls)) : undefined,
    isReasoningShown: step.reasoning !== undefined || prompt.reasoning === 'shown',
    text: text ?? (calls.length > 0 || isScripted ? '' : defaultText(prompt, turn, asked)),
    calls,
    finish: calls.length > 0 ? 'tool_calls' : 'stop',
    stopSequence: undefined,
    rawFinish: step.finish,
    counts: { ...counts, outputTokens: 0, reasoningTokens: 0 },
    rawUsage: step.usage,
  }
  stopAtSequence(reply, prompt.stops)
  cutAtMax(reply, prompt.outputTokensMax)
  return reply
}

/** Returns the user's turns since the last assistant turn as one. Operator turns, such as reminders, are left out. */
function lastTurn(prompt: Prompt): PromptTurn {
  const talk = prompt.turns.filter((turn) => turn.side !== 'operator')
  const lastUser = talk.findLastIndex((turn) => turn.side === 'user')
  const before = talk.findLastIndex((turn, index) => turn.side === 'assistant' && index < lastUser)
  const run = talk.slice(before + 1, lastUser + 1)
  return {
    side: 'user',
    texts: run.flatMap((turn) => turn.texts),
    images: 0,
    files: 0,
    results: run.flatMap((turn) => turn.results),
    calls: [],
  }
}

const wrapped = /^\s*<([\w-]+)>[\s\S]*<\/\1>\s*$/

/**
 * Returns the user's last text in a turn. A text in a tag comes from an agent, so it is used only if the turn has no
 * other text and no tool results.
 */
function ownText(turn: PromptTurn): string {
  const said = turn.texts.filter((text) => text.trim() !== '')
  const own = said.findLast((text) => !wrapped.test(text))
  return (own ?? (turn.results.length > 0 ? '' : (said.at(-1) ?? ''))).trim()
}

function scriptedCall(prompt: Prompt, call: NonNullable<ScriptStep['tool_calls']>[number]): ReplyCall {
  const tool = prompt.tools.find((one) => one.name === call.name)
  const given = call.arguments ?? (sampleSchema(tool?.schema ?? { type: 'object' }) as Record<string, unknown>)
  return {
    id: call.id,
    name: call.name,
    namespace: call.namespace ?? tool?.namespace,
    arguments: typeof given === 'string' ? given : JSON.stringify(given),
    isCut: false,
  }
}

const fillerWords = 'The simulator writes a long answer so that you can watch how it comes in. '

function filler(tokens: number): string {
  const pattern = tokenize(fillerWords.trimEnd())
  pattern[0] = ` ${pattern[0]}`
  return Array.from({ length: tokens }, (_, index) => pattern[index % pattern.length])
    .join('')
    .trimStart()
}

function thoughtAbout(asked: string, calls: ReplyCall[]): string {
  const names = calls.map((call) => call.name).join(' and ')
  const plan = names === '' ? 'I can answer this at once.' : `I need ${names} for this.`
  return asked === '' ? `The tools have answered. ${plan}` : `The user says: ${quote(asked)} ${plan}`
}

function defaultText(prompt: Prompt, turn: PromptTurn, asked: string): string {
  if (prompt.format) return JSON.stringify(sampleSchema(prompt.format.schema))
  if (turn.results.length > 0 && asked === '') {
    const results = turn.results.map(({ callId, text }) => `${calledName(prompt, callId)} returned ${quote(text)}`)
    return `The tool ${results.join(', the tool ')}.`
  }
  const said = asked === '' ? 'You said nothing.' : `You said: ${quote(asked)}`
  return `${said} I am a simulated model and saw ${inventory(prompt)}.`
}

function calledName(prompt: Prompt, callId: string): string {
  const calls = prompt.turns.flatMap((turn) => turn.calls)
  return calls.findLast((call) => call.id === callId)?.name ?? callId
}

function inventory(prompt: Prompt): string {
  const sum = (of: (turn: PromptTurn) => number) => prompt.turns.reduce((total, turn) => total + of(turn), 0)
  const names = prompt.tools.slice(0, 3).map((tool) => tool.name)
  const more = prompt.tools.length > names.length ? ', …' : ''
  const tools = prompt.tools.length > 0 ? [`${count(prompt.tools.length, 'tool')} (${names.join(', ')}${more})`] : []
  const images = sum((turn) => turn.images)
  const files = sum((turn) => turn.files)
  const things = [
    count(prompt.turns.length, 'message'),
    ...tools,
    ...(images > 0 ? [count(images, 'image')] : []),
    ...(files > 0 ? [count(files, 'file')] : []),
  ]
  return things.join(', ')
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

function quote(text: string): string {
  const characters = [...text]
  return characters.length <= quoteCharactersMax
    ? `"${text}"`
    : `"${characters.slice(0, quoteCharactersMax).join('')}…"`
}

/** Cuts the answer at the stop sequence that occurs first. If two begin at the same place, the longer one counts. */
function stopAtSequence(reply: SimulatedReply, stops: string[]): void {
  let at = Number.POSITIVE_INFINITY
  for (const stop of stops) {
    const found = reply.text.indexOf(stop)
    if (found < 0 || found > at || (found === at && stop.length < reply.stopSequence!.length)) continue
    at = found
    reply.stopSequence = stop
  }
  if (reply.stopSequence === undefined) return
  reply.text = reply.text.slice(0, at)
  reply.calls = []
  reply.finish = 'stop_sequence'
}

/** Cuts reasoning, text and arguments at the maximum number of tokens, and counts the output. */
function cutAtMax(reply: SimulatedReply, tokensMax: number): void {
  let left = tokensMax
  const take = (text: string): string => {
    const tokens = tokenize(text)
    if (tokens.length <= left) {
      left -= tokens.length
      return text
    }
    const kept = tokens.slice(0, left).join('')
    left = 0
    reply.finish = 'length'
    return kept
  }
  if (reply.reasoning !== undefined) reply.reasoning = take(reply.reasoning)
  if (reply.finish === 'length') reply.text = ''
  else reply.text = take(reply.text)
  const calls: ReplyCall[] = []
  for (const call of reply.calls) {
    if (reply.finish === 'length') break
    const kept = take(call.arguments)
    calls.push({ ...call, arguments: kept, isCut: kept !== call.arguments })
  }
  if (reply.finish === 'length') reply.stopSequence = undefined
  reply.calls = calls
  const reasoningTokens = countTokens(reply.reasoning ?? '')
  const callTokens = calls.reduce((sum, call) => sum + countTokens(call.arguments), 0)
  reply.counts.reasoningTokens = reasoningTokens
  reply.counts.outputTokens = Math.max(1, reasoningTokens + countTokens(reply.text) + callTokens)
}
