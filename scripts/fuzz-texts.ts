/**
 * Translates random requests in several ways. All must give the same body, losses, names, stops, repeated members or
 * error:
 *
 *     node bin/node.mjs scripts/fuzz-texts.ts [inputs] [seed] [another checkout]
 *
 * Long texts of a request are carried as JSON source. Here the ways are: all texts, the long ones, or none. The code of
 * another checkout is a further way.
 */
import { join, resolve } from 'node:path'
import type { ClientWire } from '../src/catalog/wire-names.ts'

/** A client's body as JSON text, with its wire and its destination. */
type TextCase = { from: ClientWire; to: ClientWire; profile: string | undefined; body: string }

/** Translates a case. @returns the result as text, a body or an error */
type Translation = (input: TextCase) => string

const wireNames = ['messages', 'chat', 'responses'] as const

/** The least size of a text that is carried as its source, in bytes: any text, the default, or none. */
const sizes = [3, undefined, Number.POSITIVE_INFINITY]

export async function loadTranslations(root: string): Promise<{ translations: Translation[]; profiles: string[] }> {
  const load = (path: string) => import(join(root, path))
  const { ClientBody } = await load('src/wires/requests/client-body.ts')
  const { checkFields } = await load('src/wires/requests/checks.ts')
  const { wires } = await load('src/wires/wires.ts')
  const { resolveProfile, profileNames } = await load('src/catalog/profiles.ts')
  const translate = ({ from, to, profile, body }: TextCase, textBytesMin: number | undefined): string => {
    const { client } = wires[from]
    const model = {
      ...{ id: 'm', entryId: 'm', aliases: [], wire: to, routes: [], upstreamModel: 'up', outputTokensMax: 8192 },
      ...{ priceVersion: 'v1', allowedFields: new Set(), profile: resolveProfile(to, profile) },
      ...{ hostedTools: 'pass', implicitKey: 'off', remoteMedia: 'pass', storedFiles: 'pass' },
    }
    try {
      // Earlier versions have a list of keys and no size.
      const keys = Array.isArray(client.keptKeys) ? client.keptKeys : { ...client.keptKeys, textBytesMin }
      const asked = new ClientBody(Buffer.from(body), keys)
      checkFields(client, asked)
      const request = client.decodeRequest(asked, { cacheKey: 'k', unseal: () => undefined })
      const encoded = wires[to].model.encodeRequest(request, model)
      const { losses, names, stops, localStops } = encoded
      const sent = JSON.parse(encoded.body.toString(), (_, value) =>
        typeof value === 'string' ? value.replace(schemaInWords, inOneSpelling) : value,
      )
      const { echo } = request
      const repeated = echo && { members: JSON.parse(`{${echo}}`), isOneLine: !/[\n\r]/.test(echo) }
      return JSON.stringify({ sent, losses, names: [...names], stops, localStops, repeated })
    } catch (error) {
      const { message, param } = error as Error & { param?: string }
      return `${(error as Error).constructor.name} ${param}: ${message}`
    }
  }
  return {
    translations: sizes.map((size) => (input: TextCase) => translate(input, size)),
    profiles: profileNames.filter((name: string) =>
      wireNames.every((wire) => {
        try {
          return resolveProfile(wire, name) !== undefined
        } catch {
          return false
        }
      }),
    ),
  }
}

/** Matches a schema in instructions for a model (R-JSON). It has the client's escapes if it was carried as source. */
const schemaInWords = /(?<=nothing else:\n).*/s

function inOneSpelling(json: string): string {
  return json.replace(/\\\\|(?:\\u[0-9a-f]{4})+|\\\//gi, (escapes) =>
    JSON.stringify(JSON.parse(`"${escapes}"`)).slice(1, -1),
  )
}

export type TextCount = { inputs: number; translated: number; refused: number; faults: string[] }

/** @param others further translations, which must give the same results */
export async function fuzzTexts(inputs: number, seed: number, others: Translation[] = []): Promise<TextCount> {
  const { translations, profiles } = await loadTranslations(resolve(import.meta.dirname, '..'))
  const random = createRandom(seed)
  const count: TextCount = { inputs, translated: 0, refused: 0, faults: [] }
  for (let i = 0; i < inputs; i++) {
    const from = random.pick(wireNames)
    const to = random.pick(wireNames.filter((wire) => wire !== from))
    const input = { from, to, profile: random.pick([undefined, ...profiles]), body: new BodyMaker(random, from).body() }
    const results = [...translations, ...others].map((translate) => translate(input))
    if (results[0]!.startsWith('{')) count.translated++
    else count.refused++
    if (new Set(results).size === 1 && !/^(?!GatewayError|\{)/.test(results[0]!)) continue
    if (count.faults.length < 5) count.faults.push([JSON.stringify(input), ...results].join('\n'))
  }
  return count
}

type Random = { below(limit: number): number; pick<T>(list: readonly T[]): T; chance(share: number): boolean }

/** Creates a seeded xorshift generator, so that the same seed makes the same bodies. */
function createRandom(seed: number): Random {
  let state = seed >>> 0 || 1
  const below = (limit: number) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state % limit
  }
  return { below, pick: (list) => list[below(list.length)]!, chance: (share) => below(1_000) < share * 1_000 }
}

/** Pieces of JSON strings: words that readers search, white space, escapes, single surrogates, beginnings of tokens. */
// biome-ignore format: pieces in rows
const units = [
  'a', 'Error: ', 'eRRor', ' ', '\\n', '\\t', '\\"', '\\\\', '\\/', '\\u0000', '\\ud83d', '\\ude00', '\\ud83d\\ude00', 'é', '😀', '\u3000',
  '\\u00e9', '\\u00a0', '\u00a0', '\ufeff', '\u2028', '\ufffd', '\u007f', '\\u007fk', '\u007fs', 'x-anthropic-billing-header: v=1;',
  '\\u0078-a-billing-header:\\n', '_raw_arguments', 'base64', 'file_data', '{\\"a\\":1}', '\\u007b', 'data:text/plain,', '\\u0020',
]

type Member = [key: string, value: string]

class BodyMaker {
  readonly #random: Random
  readonly #wire: ClientWire
  #tools = 0

  constructor(random: Random, wire: ClientWire) {
    this.#random = random
    this.#wire = wire
  }

  body(): string {
    return { messages: this.#messages, chat: this.#chat, responses: this.#responses }[this.#wire].call(this)
  }

  #messages(): string {
    const { pick } = this.#random
    return this.#object([
      ['model', '"m"'],
      ...this.#maybe(0.7, 'system', () => this.#content()),
      ...this.#maybe(0.6, 'tools', () => this.#list([1, 2, 3], () => this.#tool('input_schema'))),
      [
        'messages',
        this.#list([1, 2, 4, 7], () => pick([this.#user, this.#user, this.#assistant, this.#operator]).call(this)),
      ],
      ['max_tokens', '500'],
      ...this.#maybe(0.2, 'metadata', () =>
        this.#object([
          ['user_id', this.#text()],
          ['description', this.#text()],
        ]),
      ),
      ...this.#maybe(0.1, 'output_config', () => `{"format":{"type":"json_schema","schema":${this.#schema()}}}`),
      ...this.#maybe(0.1, 'stop_sequences', () => this.#list([1, 2], () => this.#text())),
      ...this.#maybe(0.05, 'thinking', () => pick([this.#text(), '{"type":"enabled","budget_tokens":2000}'])),
    ])
  }

  #chat(): string {
    const { pick } = this.#random
    const message = () =>
      pick([this.#user, this.#user, this.#chatAssistant, this.#chatAssistant, this.#chatTool, this.#operator]).call(
        this,
      )
    return this.#object([
      ['model', '"m"'],
      ...this.#maybe(0.6, 'tools', () =>
        this.#list([1, 2, 3], () => `{"type":"function","function":${this.#tool('parameters')}}`),
      ),
      ['messages', this.#list([1, 2, 4, 7], message)],
      ...this.#maybe(0.1, 'response_format', () => `{"type":"json_schema","json_schema":${this.#format()}}`),
      ...this.#maybe(0.1, 'stop', () => this.#text()),
      ...this.#maybe(0.1, 'user', () => this.#text()),
    ])
  }

  #responses(): string {
    const { pick } = this.#random
    const item = () =>
      pick([this.#user, this.#user, this.#operator, this.#item, this.#item, this.#responsesAssistant]).call(this)
    const namespace = () =>
      this.#object([
        ...([
          ['type', '"namespace"'],
          ['name', pick(['"ns"', '"functions"'])],
        ] as Member[]),
        ...this.#maybe(0.7, 'description', () => this.#text()),
        ['tools', this.#list([1, 2], () => this.#tool('parameters', '"function"'))],
      ])
    return this.#object([
      ['model', '"m"'],
      ...this.#maybe(0.6, 'instructions', () => this.#text()),
      ...this.#maybe(0.6, 'tools', () =>
        this.#list([1, 2], () => (this.#random.chance(0.3) ? namespace() : this.#tool('parameters', '"function"'))),
      ),
      ['input', this.#random.chance(0.1) ? this.#text() : this.#list([1, 2, 4, 7], item)],
      ...this.#maybe(0.1, 'text', () => `{"format":{"type":"json_schema",${this.#format().slice(1)}}`),
      ...this.#maybe(0.1, 'metadata', () => this.#object([['text', this.#text()]])),
    ])
  }

  #user(): string {
    return this.#object([
      ['role', '"user"'],
      ['content', this.#random.chance(0.4) ? this.#text() : this.#list([1, 2, 3], () => this.#userPart())],
    ])
  }

  #userPart(): string {
    if (this.#wire !== 'messages') return this.#textPart()
    const { pick } = this.#random
    const source = () =>
      this.#object([
        ['type', pick(['"text"', '"content"'])],
        ['data', this.#text()],
        ['content', this.#content()],
      ])
    switch (this.#random.below(6)) {
      case 0:
      case 1: {
        const image = '{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}'
        return this.#object([
          ...([
            ['type', '"tool_result"'],
            ['tool_use_id', this.#id()],
          ] as Member[]),
          ...this.#maybe(0.9, 'content', () =>
            this.#random.chance(0.2) ? `[${image},${this.#textPart()}]` : this.#content(),
          ),
          ...this.#maybe(0.3, 'is_error', () => 'true'),
        ])
      }
      case 2:
        return this.#object([
          ['type', '"document"'],
          ['source', source()],
          ['title', this.#text()],
          ['context', this.#text()],
        ])
      case 3:
        return this.#object([
          ['type', '"search_result"'],
          ['title', this.#text()],
          ['source', this.#text()],
          ['content', this.#content()],
        ])
      default:
        return this.#textPart()
    }
  }

  #assistant(): string {
    const call = () =>
      this.#object([
        ['type', '"tool_use"'],
        ['id', this.#id()],
        ['name', '"f"'],
        ['input', this.#json()],
      ])
    const block = () => {
      switch (this.#random.below(7)) {
        case 0:
        case 1:
          return call()
        case 2:
          return this.#object([
            ['type', '"thinking"'],
            ['thinking', this.#text()],
            ['signature', '"s"'],
          ])
        case 3:
          return this.#object([
            ['type', '"compaction"'],
            ['content', this.#text()],
          ])
        default:
          return this.#textPart()
      }
    }
    return this.#object([
      ['role', '"assistant"'],
      ['content', this.#random.chance(0.3) ? this.#text() : this.#list([1, 2, 3, 4], block)],
    ])
  }

  #chatAssistant(): string {
    const call = () => {
      const words = this.#object([
        ['name', '"f"'],
        ['arguments', this.#arguments()],
      ])
      return this.#object([
        ['id', this.#id()],
        ['type', '"function"'],
        ['function', words],
      ])
    }
    return this.#object([
      ['role', '"assistant"'],
      ...this.#maybe(0.8, 'content', () => this.#random.pick(['null', this.#content()])),
      ...this.#maybe(0.3, this.#random.pick(['reasoning_content', 'reasoning']), () => this.#text()),
      ...this.#maybe(0.1, 'refusal', () => this.#text()),
      ...this.#maybe(0.6, 'tool_calls', () => this.#list([1, 2], call)),
    ])
  }

  #chatTool(): string {
    return this.#object([
      ['role', '"tool"'],
      ['tool_call_id', this.#id()],
      ...this.#maybe(0.9, 'content', () => this.#content()),
    ])
  }

  #responsesAssistant(): string {
    return this.#object([
      ['type', '"message"'],
      ['role', '"assistant"'],
      ['content', this.#content('output_text')],
    ])
  }

  #item(): string {
    switch (this.#random.below(4)) {
      case 0:
        return this.#object([
          ['type', '"function_call"'],
          ['call_id', this.#id()],
          ['name', '"f"'],
          ['arguments', this.#arguments()],
        ])
      case 1: {
        const part = () =>
          this.#object([
            ['type', '"summary_text"'],
            ['text', this.#text()],
          ])
        return this.#object([
          ['type', '"reasoning"'],
          ['summary', this.#list([0, 1, 2], part)],
          ...this.#maybe(0.3, 'encrypted_content', () => this.#text()),
        ])
      }
      default:
        return this.#object([
          ['type', '"function_call_output"'],
          ['call_id', this.#id()],
          ['output', this.#content()],
        ])
    }
  }

  #operator(): string {
    const role = this.#wire === 'messages' ? '"system"' : this.#random.pick(['"system"', '"developer"'])
    return this.#object([
      ['role', role],
      ['content', this.#content()],
    ])
  }

  #content(type?: string): string {
    return this.#random.chance(0.4) ? this.#text() : this.#list([0, 1, 1, 2, 3], () => this.#textPart(type))
  }

  #textPart(type = this.#wire === 'responses' ? 'input_text' : 'text'): string {
    const { pick, chance } = this.#random
    return this.#object([
      ['type', `"${type}"`],
      ['text', chance(0.01) ? pick(['5', 'null', '{}', '[]', '{"input":1}']) : this.#text()],
      ...this.#maybe(0.1, 'cache_control', () => '{"type":"ephemeral"}'),
    ])
  }

  #tool(schemaKey: string, type?: string): string {
    const words: Member[] = [
      ['name', `"t${this.#tools++}"`],
      [
        'description',
        this.#random.pick([this.#text(), this.#text(), 'null', ...(this.#random.chance(0.05) ? ['3'] : [])]),
      ],
      [schemaKey, this.#schema()],
    ]
    return this.#object(type === undefined ? words : [['type', type], ...words])
  }

  #format(): string {
    return this.#object([
      ['name', '"n"'],
      ['schema', this.#schema()],
      ...this.#maybe(0.3, 'description', () => this.#text()),
    ])
  }

  #schema(): string {
    return this.#random.pick([
      `{"type":"object","properties":{"a":{"type":"string","description":"${'d'.repeat(80)}"}}}`,
      '{ "properties":{} }',
      `{${' '.repeat(70)}"type":"object"}`,
      '{}',
      '{"anyOf":[{"type":"object","properties":{"x":{}}}]}',
      `{"$comment":"${'é'.repeat(70)}","type":"object"}`,
      `{"type":"object","description":${this.#text()},"properties":{"text":{"type":"array"}}}`,
    ])
  }

  #arguments(): string {
    return this.#random.pick([
      this.#text(),
      this.#json(),
      JSON.stringify(this.#json()),
      JSON.stringify(` ${this.#json()}`),
    ])
  }

  #json(): string {
    return this.#random.pick([
      '{}',
      '{"a": 1.0,"b":[12345678901234567890]}',
      '{ "_raw_arguments" : "x" }',
      `{"content":"${'y'.repeat(100)}","text":"\\ud800"}`,
      ...(this.#random.chance(0.1) ? ['[1]', 'null', this.#text()] : []),
    ])
  }

  #id(): string {
    return this.#random.pick(['"c1"', '"c1"', '"c2"', '"c3"', `"${'c'.repeat(70)}"`])
  }

  #text(): string {
    const only = this.#random.chance(0.2) ? this.#random.pick(units) : undefined
    const count = this.#random.pick([0, 1, 2, 5, 30, 90])
    return `"${Array.from({ length: count }, () => only ?? this.#random.pick(units)).join('')}"`
  }

  #maybe(share: number, key: string, value: () => string): Member[] {
    return this.#random.chance(share) ? [[key, value()]] : []
  }

  #list(lengths: readonly number[], make: () => string): string {
    return `[${Array.from({ length: this.#random.pick(lengths) }, make).join(',')}]`
  }

  /** Makes an object, sometimes with an escaped key, a repeated member or white space. */
  #object(members: Member[]): string {
    const space = () => this.#random.pick(['', '', '', ' ', '\n  '])
    const all = this.#random.chance(0.03) ? [...members, [members.at(-1)![0], this.#text()] as Member] : members
    const written = all.map(([key, value]) => `${space()}${this.#key(key)}${space()}:${space()}${value}`)
    return `{${written.join(`${space()},`)}${space()}}`
  }

  #key(key: string): string {
    const code = key.charCodeAt(0).toString(16).padStart(4, '0')
    return this.#random.chance(0.01) ? `"\\u${code}${key.slice(1)}"` : `"${key}"`
  }
}

if (process.argv[1] === import.meta.filename) {
  const [inputs, seed, checkout] = process.argv.slice(2)
  const others = checkout ? (await loadTranslations(resolve(checkout))).translations.slice(0, 1) : []
  const { faults, ...count } = await fuzzTexts(Number(inputs ?? 20_000), Number(seed ?? 1), others)
  for (const fault of faults) console.error(`${fault}\n`)
  console.log(count)
  if (faults.length > 0) process.exitCode = 1
}
