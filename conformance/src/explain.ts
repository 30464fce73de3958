import { writeAnswer, writeStream } from './answer.ts'
import { writeAsk } from './ask.ts'
import type { Case, Exchange, Json, Wire } from './case.ts'
import { pairsOf } from './load-cases.ts'

/** Shows a case as a page. Its requests and answers are written for the wires of its first pair. */
export function explain(one: Case): string {
  const [pair] = pairsOf(one)
  const { clause, level, title, note } = one
  const steps = (one.client[pair!.client] ?? one.client['*'])!.steps
  const script = one.model && (one.model[pair!.model] ?? one.model['*'])
  const lines = [
    `# ${one.id}`,
    '',
    `${level}: ${title}.`,
    '',
    'sdks' in clause
      ? `Clause: ${clause.sdks.map(({ name, version }) => `${name} ${version}`).join(' and ')}: ${clause.says}`
      : `Clause: ${clause.source}, ${clause.url}, ${clause.day}: ${clause.says}`,
    ...(note ? ['', note] : []),
    '',
    `Pairs: ${pairsOf(one)
      .map(({ client, model }) => `${client}>${model}`)
      .join(', ')}. Shown is the first.`,
  ]
  for (const [at, { request, expect }] of steps.entries()) {
    const { ask, ...rest } = request
    const body = ask ? { body: writeAsk(pair!.client, ask) } : {}
    lines.push('', `## The client asks, step ${at + 1}`, '', show({ ...rest, ...body } as never))
    if (expect) lines.push('', 'It expects:', '', show(expect))
  }
  for (const [at, exchange] of (script?.exchanges ?? []).entries()) {
    lines.push('', `## The model is asked, request ${at + 1}`, '')
    if (exchange.expect) lines.push('It expects:', '', show(exchange.expect), '')
    lines.push(
      'It replies:',
      '',
      showReply(
        pair!.model,
        exchange,
        steps.some(({ request }) => isStream(request as never)),
      ),
    )
  }
  if (!script) lines.push('', 'No model may be asked.')
  if (one.bill) lines.push('', `## The bill`, '', show(one.bill.amount))
  return lines.join('\n')
}

function isStream({ ask, body }: { ask?: { stream?: boolean }; body?: { stream?: boolean } }): boolean {
  return ask?.stream === true || body?.stream === true
}

function showReply(wire: Wire, { reply }: Exchange, stream: boolean): string {
  const { answer, ...rest } = reply
  if (!answer) return show(rest as never)
  const body = writeAnswer(wire, answer, '$model')
  return show({ ...rest, ...(stream ? { events: writeStream(wire, body, answer) } : { json: body }) } as never)
}

function show(value: Json): string {
  return JSON.stringify(value, null, 2)
    .split('\n')
    .map((line) => `    ${line}`)
    .join('\n')
}
