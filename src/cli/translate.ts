import { createReadStream } from 'node:fs'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { type ClientWire, clientWireNames } from '../catalog/wire-names.ts'
import type { DescribedAnswer, DescribedRequest, RefusedTranslation, Translation } from '../live/translation.ts'
import { type GlobalOptions, numberFrom } from './options.ts'
import { formatFields, formatRows, printError, unreadable } from './print.ts'

type TranslateOptions = GlobalOptions & {
  from: ClientWire
  model?: string
  upstream?: string
  account?: string
  header: ReadonlyMap<string, string>
  answer?: string
  status?: number
}

/** The largest answer, in bytes. A server has the same limit for answers that are not streams. */
const answerBytesMax = 32 * 1_048_576

/** Adds `translate`, which shows the request for a model or the answer for a client. It sends nothing. */
export function addTranslateCommand(program: Command): void {
  program
    .command('translate')
    .argument('[request]', 'a file with the body of the request, or - for stdin')
    .description('show what the gateway would send to a model for a request, or to a client for an answer')
    .addOption(
      new Option('--from <wire>', 'the wire that the client speaks').choices(clientWireNames).makeOptionMandatory(),
    )
    .option('--model <model>', 'a model of the catalog (default: the model that the request names)')
    .option('--upstream <name>', 'the upstream for the request, if the model has several (default: the first)')
    .option(
      '--answer <file>',
      'a file with an answer of the model, a stream or JSON (- for stdin): show what the client would get',
    )
    .option('--status <status>', 'the HTTP status of that answer', numberFrom(200, 599))
    .option(
      '--header <line>',
      'a header that the client sends, such as "x-session-id: a"; the option can be repeated',
      readHeader,
      new Map(),
    )
    .option('--account <id>', 'the id of the account that sends the request, for fields that are scoped to an account')
    .action(async (request: string | undefined, _options, command: Command) => {
      const options = command.optsWithGlobals<TranslateOptions>()
      checkUse(request, options, command)
      const { glanceAtConfig } = await import('../config/load.ts')
      const { describeTranslation } = await import('../live/translation.ts')
      const config = glanceAtConfig(options)
      // One byte more than the limit is read. If there is such a byte, the body is too large.
      const bytes = request === undefined ? undefined : await read(request, config.limits.bodyBytesMax + 1)
      const answer = options.answer === undefined ? undefined : await readAnswer(options.answer)
      const told = await describeTranslation(config, options.from, bytes, options.model, {
        headers: options.header,
        ...(options.account !== undefined && { accountId: options.account }),
        ...(options.upstream !== undefined && { upstream: options.upstream }),
        ...(answer && { answer: { body: answer, ...(options.status !== undefined && { status: options.status }) } }),
      })
      if (!told.ok) refuse(told, options)
      else tell(told, options)
    })
}

function checkUse(request: string | undefined, { model, answer, status }: TranslateOptions, command: Command): void {
  if (request === undefined && answer === undefined)
    command.error('error: name a file with the request (- for stdin), or an answer with --answer')
  if (request === undefined && model === undefined)
    command.error('error: without a request name the model: --model <model>')
  if (request === '-' && answer === '-') command.error('error: request and answer cannot both be read from stdin')
  if (status !== undefined && answer === undefined) command.error('error: --status is for --answer')
}

function readHeader(line: string, before: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const [, name, value] = /^([\w!#$%&'*+.^`|~-]+)\s*:\s*(.*?)\s*$/.exec(line) ?? []
  if (name === undefined || value === undefined)
    throw new InvalidArgumentError('Write it like "anthropic-beta: context-1m".')
  return new Map(before).set(name.toLowerCase(), value)
}

async function readAnswer(file: string): Promise<Buffer> {
  const bytes = await read(file, answerBytesMax + 1)
  if (bytes.length > answerBytesMax)
    throw new Error(`${file} is larger than ${answerBytesMax} bytes, and no server takes it`)
  return bytes
}

/** Reads at most `bytesMax` bytes. */
async function read(file: string, bytesMax: number): Promise<Buffer> {
  const input = file === '-' ? process.stdin : createReadStream(file, { end: bytesMax - 1 })
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of input) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes >= bytesMax) break
    }
  } catch (error) {
    throw unreadable(file, error, 'name a file, or - for stdin')
  }
  return Buffer.concat(chunks).subarray(0, bytesMax)
}

/** Prints the error response that the client would get. */
function refuse({ refusal }: RefusedTranslation, { json }: TranslateOptions): void {
  const { status, code, param, message } = refusal
  process.exitCode = 1
  if (json) console.log(JSON.stringify({ ok: false, refusal }))
  const place = param === null ? '' : `, param ${param}`
  printError(
    { code: 'failed', message: json ? message : `triwire: refused with ${status} ${code}${place}: ${message}` },
    json ?? false,
  )
}

function tell(told: Translation, { json }: TranslateOptions): void {
  const { answer } = told
  if (answer && (answer.status !== 200 || answer.outcome !== 'ok')) process.exitCode = 1
  if (json) {
    console.log(JSON.stringify(told))
    return
  }
  const { from, to, model, upstream } = told
  const request = told.path === undefined ? undefined : told
  const head = `${from} to ${to}: ${model}, served by ${upstream}`
  console.error(
    [head, request && describeRequest(request), answer && describeAnswer(answer)].filter(Boolean).join('\n\n'),
  )
  const body = (answer ?? request)!.body
  // A program or a file gets exactly the body. A terminal also gets a line break.
  process.stdout.write(process.stdout.isTTY && !body.endsWith('\n') ? `${body}\n` : body)
}

function describeRequest({ path, headers, fields, losses }: DescribedRequest): string {
  const head = [`POST ${path}`, ...headers.map(([name, value]) => `${name}: ${value}`)].join('\n')
  const table = (rows: readonly object[]) => formatRows(['field', 'what', 'why'], rows)
  return [head, table(fields), losses.length > 0 ? `losses\n${table(losses)}` : 'no losses'].join('\n\n')
}

function describeAnswer(answer: DescribedAnswer): string {
  const { status, content_type, cut, outcome, cause, usage, usage_source, cost, doubts } = answer
  const { calls, ...counters } = usage ?? {}
  return formatFields({
    answer: `${status} ${content_type}${cut ? ', cut' : ''}`,
    outcome: cause === null ? outcome : `${outcome} (${cause})`,
    ...(usage ? counters : { usage: 'none, nothing is billed' }),
    ...(calls && { calls }),
    ...(usage && { 'usage from': usage_source, cost }),
    doubts: doubts.length > 0 ? doubts.join(', ') : 'none',
  })
}
