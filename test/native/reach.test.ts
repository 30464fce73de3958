import assert from 'node:assert/strict'
import test from 'node:test'
import type { Model } from '../../src/catalog/model.ts'
import { profileNames, resolveProfile } from '../../src/catalog/profiles.ts'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { GatewayError } from '../../src/errors.ts'
import { checkFields } from '../../src/wires/requests/checks.ts'
import { ClientBody } from '../../src/wires/requests/client-body.ts'
import { wires } from '../../src/wires/wires.ts'
import { modelOf } from './models.ts'

type Fields = Record<string, unknown>

function adapt(wire: ClientWire, fields: Fields | string, more: Partial<Model> = {}): Fields {
  const base = { model: 'm', ...(wire === 'messages' && { max_tokens: 5 }), [fieldOf[wire]]: [] }
  const text = typeof fields === 'string' ? fields : JSON.stringify({ ...base, ...fields })
  const body = new ClientBody(Buffer.from(text))
  checkFields(wires[wire].client, body)
  const context = { scopedKey: undefined, isOurSeal: () => false }
  return JSON.parse(wires[wire].native.adaptRequest(body, modelOf(wire, more), context).body.toString())
}

const fieldOf = { messages: 'messages', chat: 'messages', responses: 'input' } as const

function refusedAt(path: string) {
  return (error: unknown) => {
    assert.ok(error instanceof GatewayError)
    assert.equal(error.code, 'invalid_body')
    assert.equal(error.param, path.split(/[.[]/)[0])
    assert.ok(error.message.startsWith(`${path}: `), error.message)
    return true
  }
}

const turn = (...content: unknown[]) => [{ role: 'user', content }]
const hosted = { type: 'mcp', server_url: 'https://x.example' }

const hostedCases: [ClientWire, string, Fields][] = [
  ['chat', 'web_search_options', { web_search_options: {} }],
  ['chat', 'plugins', { plugins: [{ id: 'web' }] }],
  ['chat', 'search_parameters', { search_parameters: { mode: 'on' } }],
  ['chat', 'tools[0]', { tools: [{ type: 'web_search' }] }],
  ['messages', 'mcp_servers', { mcp_servers: [{ type: 'url', url: 'https://x.example' }] }],
  ['messages', 'container', { container: { skills: [] } }],
  ['messages', 'tools[0]', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
  [
    'messages',
    'messages[0].content[0].tool[0]',
    {
      messages: [
        {
          role: 'system',
          content: [{ type: 'tool_addition', tool: { type: 'tool_definition', definition: { type: 'mcp_toolset' } } }],
        },
      ],
    },
  ],
  ['responses', 'tools[0]', { tools: [hosted] }],
  ['responses', 'input[0].tools[0]', { input: [{ type: 'additional_tools', tools: [hosted] }] }],
]

for (const [wire, path, fields] of hostedCases) {
  test(`B12 C7 U12 a request that runs a tool of the provider passes, or is refused if the entry says so: ${wire} ${path}`, () => {
    assert.doesNotThrow(() => adapt(wire, fields))
    assert.throws(() => adapt(wire, fields, { hostedTools: 'refuse' }), refusedAt(path))
  })
}

test('U12 T6 tools that a vendor defines and the client runs pass, although the entry refuses hosted tools', () => {
  for (const type of ['bash_20250124', 'text_editor_20250728', 'memory_20250818', 'custom'])
    assert.doesNotThrow(() => adapt('messages', { tools: [{ type, name: 'f' }] }, { hostedTools: 'refuse' }), type)
})

const image = (url: string) => ({ type: 'image_url', image_url: { url } })
const block = (source: Fields) => ({ type: 'image', source })
const result = (...content: unknown[]) => ({ type: 'tool_result', tool_use_id: 't', content })

const mediaCases: [ClientWire, string, Fields][] = [
  ['chat', 'messages[0].content[0].image_url', { messages: turn(image('http://169.254.169.254/latest')) }],
  [
    'chat',
    'messages[0].content[1].image_url',
    { messages: turn({ type: 'text', text: 'x' }, image('file:///etc/passwd')) },
  ],
  [
    'chat',
    'messages[0].content[0].video_url',
    { messages: turn({ type: 'video_url', video_url: { url: 'https://x.example' } }) },
  ],
  ['chat', 'messages[0].content[0].audio_url', { messages: turn({ type: 'audio_url', audio_url: 'ftp://x.example' }) }],
  [
    'messages',
    'messages[0].content[0].source.url',
    { messages: turn(block({ type: 'url', url: 'https://x.example' })) },
  ],
  [
    'messages',
    'messages[0].content[0].content[0].source.url',
    { messages: turn(result(block({ type: 'url', url: 'https://x.example' }))) },
  ],
  [
    'messages',
    'messages[0].content[0].source.content[0].source.url',
    {
      messages: turn({
        type: 'document',
        source: { type: 'content', content: [block({ type: 'url', url: 'http://x' })] },
      }),
    },
  ],
  [
    'responses',
    'input[0].content[0].image_url',
    { input: turn({ type: 'input_image', image_url: 'https://x.example' }) },
  ],
  ['responses', 'input[0].content[0].file_url', { input: turn({ type: 'input_file', file_url: 'https://x.example' }) }],
  [
    'responses',
    'input[0].output[0].image_url',
    {
      input: [{ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image', image_url: 'http://x' }] }],
    },
  ],
]

for (const [field, value] of [
  ['image', 'http://x.example'],
  ['video', 'HTTPS://x.example'],
  ['video', ['data:,x', 'http://x.example']],
  ['image', { url: ' file:///etc/passwd' }],
  ['input_audio', { url: 'http://x.example', format: 'mp3' }],
  ['input_audio', { data: 'gopher://x.example' }],
  ['input_audio', { data: '//localhost/v' }],
  ['image_embeds', { 'a b': '//x.example/v' }],
] as const) {
  mediaCases.push(['chat', `messages[0].content[0].${field}`, { messages: turn({ type: 'x', [field]: value }) }])
  mediaCases.push(['chat', `messages[0].content[0].${field}`, { messages: turn({ [field]: value }) }])
}

const address = 'https://x.example/v'
const dataCases: [wire: ClientWire, path: string, message: object][] = [
  ['chat', '.content[0].file.file_data', { content: [{ type: 'file', file: { filename: 'a', file_data: address } }] }],
  ['responses', '.content[0].file_data', { content: [{ type: 'input_file', file_data: ` ${address}` }] }],
  ['messages', '.content[0].source.data', { content: [{ type: 'image', source: { type: 'base64', data: address } }] }],
  ['messages', '.content[0].source.data', { content: [{ type: 'x', source: { data: '//x.example', data_: '' } }] }],
  ['chat', '.images', { content: 'a', images: [address] }],
  ['chat', '.images', { content: 'a', images: [{ type: 'image_url', image_url: { url: address } }] }],
  ['chat', '.content[0].videos', { content: [{ type: 'video', videos: [address] }] }],
]
for (const [wire, path, message] of dataCases) {
  const field = wire === 'responses' ? 'input' : 'messages'
  mediaCases.push([wire, `${field}[0]${path}`, { [field]: [{ role: 'user', ...message }] }])
}

test('BRK-8 text in the source of a document is not an address, and neither is data', () => {
  const sources = [
    { type: 'text', media_type: 'text/plain', data: 'http://x.example is a page' },
    { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' },
  ]
  for (const source of sources)
    assert.doesNotThrow(() =>
      adapt('messages', { messages: turn({ type: 'document', source }) }, { remoteMedia: 'refuse' }),
    )
})

test('BRK-8 data in any of these fields is not an address', () => {
  const sound = '//uQxAAA'.repeat(40)
  for (const data of ['/9j/4AAQSkZJRg==', 'data:image/png;base64,iVBORw0KGgo=', sound, 'UklGRg=='])
    for (const field of ['image', 'video', 'input_audio'])
      for (const value of [data, [data], { data, format: 'mp3', id: `//${'A'.repeat(200)}` }])
        assert.doesNotThrow(() =>
          adapt(
            'chat',
            { messages: turn({ type: 'x', [field]: value }, { type: 'text', text: 'http://x.example' }) },
            { remoteMedia: 'refuse' },
          ),
        )
})

for (const [wire, path, fields] of mediaCases) {
  test(`B13 U12 an address that the upstream would fetch passes, or is refused: ${wire} ${path}`, () => {
    assert.doesNotThrow(() => adapt(wire, fields))
    assert.throws(() => adapt(wire, fields, { remoteMedia: 'refuse' }), refusedAt(path))
  })
}

test('B13 U12 an address is found behind escapes, and in the last of repeated members', () => {
  const bodies = [
    String.raw`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image\u005furl":{"\u0075rl":"\u0068ttp://x"}}]}]}`,
    `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,x"},"image_url":{"url":" http://x"}}]}]}`,
  ]
  for (const body of bodies) {
    assert.throws(() => adapt('chat', body, { remoteMedia: 'refuse' }), refusedAt('messages[0].content[0].image_url'))
  }
})

/** Members of a part that are harmless, and others of the same name that are not. */
const twins: [wire: ClientWire, path: string, harmless: string, other: string, body: (members: string) => string][] = [
  ...(
    [
      ['chat', 'image_url', '{"url":"data:,x"}', '{"url":"http://x"}'],
      ['chat', 'image_url', '"data:,x"', '"\\u0020 http://x"'],
      ['chat', 'file', '{"file_data":"x"}', '{"file_id":"file-1"}'],
    ] as const
  ).map(([wire, field, harmless, other]): (typeof twins)[number] => [
    wire,
    `messages[0].content[0].${field}`,
    `"${field}":${harmless}`,
    `"${field}":${other}`,
    (members) => `{"model":"m","messages":[{"role":"user","content":[{"type":"x",${members}}]}]}`,
  ]),
  [
    'chat',
    'messages[0].content[0].image_url',
    '"url":"data:,x"',
    '"url":"http://x"',
    (members) => `{"model":"m","messages":[{"role":"user","content":[{"image_url":{${members}}}]}]}`,
  ],
  [
    'chat',
    'messages[0].content[0].image_url',
    '"content":[]',
    '"content":[{"image_url":"http://x"}]',
    (members) => `{"model":"m","messages":[{"role":"user",${members}}]}`,
  ],
  [
    'messages',
    'messages[0].content[0].source.url',
    '"type":"base64"',
    '"type":"url"',
    (members) =>
      `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"image","source":{${members},"url":"http://x"}}]}]}`,
  ],
  [
    'chat',
    'tools[0]',
    '"type":"function"',
    '"type":"web_search"',
    (members) => `{"model":"m","messages":[],"tools":[{${members},"function":{"name":"f"}}]}`,
  ],
  [
    'messages',
    'messages[0].content[0].tool[0]',
    '"definition":{"type":"custom"}',
    '"definition":{"type":"mcp_toolset"}',
    (members) =>
      `{"model":"m","max_tokens":5,"messages":[{"role":"system","content":[{"type":"tool_addition","tool":{${members}}}]}]}`,
  ],
  [
    'responses',
    'input[0].tools[0]',
    '"tools":[]',
    '"tools":[{"type":"mcp"}]',
    (members) => `{"model":"m","input":[{"type":"additional_tools",${members}}]}`,
  ],
]

for (const [wire, path, harmless, other, body] of twins) {
  test(`Y12 every repetition of a member in a checked part is judged, wherever it is: ${wire} ${path}`, () => {
    const refusing = { remoteMedia: 'refuse', storedFiles: 'refuse', hostedTools: 'refuse' } as const
    assert.doesNotThrow(() => adapt(wire, body(harmless), refusing))
    for (const members of [[harmless, other], [other, harmless], [harmless, other, harmless], [other]]) {
      assert.throws(
        () => adapt(wire, body(members.join(',')), refusing),
        (error) => error instanceof GatewayError && error.message.startsWith(path),
        members.join(),
      )
    }
  })
}

test('Y12 T11 every repetition of a member counts for whether an item is a reference, or reasoning of ours', () => {
  const ask = (members: string) => `{"model":"m","input":[{${members},"id":"i"},{"role":"user","content":"a"}]}`
  for (const members of [
    '"type":"message","type":"item_reference"',
    '"type":"item_reference","type":"message"',
    '"type":"message","type":null',
    '"type":"message","type":"item\\u005freference"',
  ])
    assert.throws(() => adapt('responses', ask(members)), /refer to stored ones/)
  assert.doesNotThrow(() => adapt('responses', ask('"type":"message","role":"user","role":"user"')))
  const { input } = adapt('responses', ask('"type":"reasoning","type":"message","summary":[]'))
  assert.equal((input as unknown[]).length, 1)
})

test('U12 data, links in texts and addresses in arguments of calls are not fetched media', () => {
  const data = 'data:image/png;base64,AA=='
  const passing: [ClientWire, Fields][] = [
    [
      'chat',
      {
        messages: turn(image(data), image(` ${data.toUpperCase()}`), {
          type: 'text',
          text: '"image_url" https://x.example',
        }),
      },
    ],
    [
      'messages',
      {
        messages: [
          {
            role: 'assistant',
            content: [
              { type: 'tool_use', id: 't', name: 'f', input: { type: 'url', url: 'https://x.example', file_id: 'f' } },
            ],
          },
        ],
      },
    ],
    ['messages', { messages: turn({ type: 'search_result', source: 'https://x.example', title: 't', content: [] }) }],
    ['responses', { input: turn({ type: 'input_image', image_url: data }) }],
    ['responses', { input: 'look at "image_url": https://x.example' }],
  ]
  for (const [wire, fields] of passing) {
    assert.doesNotThrow(() => adapt(wire, fields, { remoteMedia: 'refuse', storedFiles: 'refuse' }))
  }
})

const storedCases: [ClientWire, string, Fields][] = [
  ['chat', 'messages[0].content[0].file.file_id', { messages: turn({ type: 'file', file: { file_id: 'file-1' } }) }],
  ['messages', 'messages[0].content[0].source.file_id', { messages: turn(block({ type: 'file', file_id: 'file_1' })) }],
  ['messages', 'messages[0].content[0].file_id', { messages: turn({ type: 'container_upload', file_id: 'file_1' }) }],
  ['responses', 'input[0].content[0].file_id', { input: turn({ type: 'input_file', file_id: 'file-1' }) }],
  ['responses', 'prompt', { prompt: { id: 'pmpt_1' } }],
]

for (const [wire, path, fields] of storedCases) {
  test(`B12 U12 objects stored at the provider are passed on, or refused: ${wire} ${path}`, () => {
    assert.doesNotThrow(() => adapt(wire, fields))
    assert.throws(() => adapt(wire, fields, { storedFiles: 'refuse' }), refusedAt(path))
  })
}

test('B13 U12 self-hosted servers are not given addresses by default, providers are', () => {
  const refusing = profileNames.filter((name) =>
    (['chat', 'messages', 'responses'] as const).some((wire) => {
      try {
        return resolveProfile(wire, name).remoteMedia === 'refuse'
      } catch {
        return false
      }
    }),
  )
  assert.deepEqual(refusing.sort(), ['litellm', 'llama-cpp', 'ollama', 'vllm'])
  for (const wire of ['chat', 'messages', 'responses'] as const)
    assert.equal(resolveProfile(wire, 'vllm').remoteMedia, 'refuse')
})

test('B12 C7 fields that cost more than the tokens, or bypass the cap, are dropped unless the entry allows them', () => {
  const fields = {
    service_tier: 'priority',
    speed: 'fast',
    inference_geo: 'us',
    priority: 9,
    best_of: 20,
    n_predict: 99_999,
    chat_template: '{{ x }}',
  }
  const kept = (more: Partial<Model>) => Object.keys(adapt('chat', fields, more)).filter((name) => name in fields)
  assert.deepEqual(kept({}), [])
  assert.deepEqual(kept({ allowedFields: new Set(Object.keys(fields)) }), Object.keys(fields))
  const free = { service_tier: 'default', priority: 0, best_of: 1 }
  assert.deepEqual(
    Object.keys(adapt('chat', free)).filter((name) => name in free),
    Object.keys(free),
  )
})

test('B12 C7 spec 1.7 a chat request stores nothing, and asks for at most 128 choices and no audio', () => {
  assert.equal(adapt('chat', { store: true })['store'], false)
  assert.equal('store' in adapt('chat', {}), false)
  const refused = (fields: Fields, param: string) =>
    assert.throws(
      () => adapt('chat', fields),
      (error) => error instanceof GatewayError && error.code === 'invalid_body' && error.param === param,
    )
  refused({ n: 129 }, 'n')
  refused({ modalities: ['text', 'audio'] }, 'modalities')
  refused({ audio: { voice: 'x' } }, 'audio')
  assert.equal(adapt('chat', { n: 128, modalities: ['text'] })['n'], 128)
})

const schema = {
  type: 'object',
  properties: { type: { type: ['string', 'null'] }, n: { type: 'integer' }, list: { type: 'array', items: {} } },
}

test('C14 a request that uses tools or stored content has no limits on the counts of its answer', () => {
  const isSelfContained = (wire: ClientWire, fields: Fields | string) => {
    const base = { model: 'm', max_tokens: 5, [fieldOf[wire]]: [] }
    const text = typeof fields === 'string' ? fields : JSON.stringify({ ...base, ...fields })
    const context = { scopedKey: undefined, isOurSeal: () => false }
    return wires[wire].native.adaptRequest(new ClientBody(Buffer.from(text)), modelOf(wire), context).isSelfContained
  }
  for (const [wire, path, fields] of [...hostedCases, ...mediaCases, ...storedCases]) {
    if (path.includes('audio_url')) continue
    assert.equal(isSelfContained(wire, fields), false, `${wire} ${path}`)
  }
  for (const type of ['mcp', 'shell', 'local_shell', 'computer', 'computer_use_preview', 'code_interpreter'])
    assert.equal(isSelfContained('responses', { tools: [{ type }] }), false, type)
  // Tools of Groq, OpenRouter, xAI, Zhipu and Moonshot.
  for (const type of ['code_interpreter', 'openrouter:web_fetch', 'code_execution', 'retrieval', 'builtin_function'])
    for (const wire of ['chat', 'messages', 'responses'] as const)
      assert.equal(isSelfContained(wire, { tools: [{ name: 'f' }, { type, name: 'g' }] }), false, `${wire} ${type}`)
  assert.equal(isSelfContained('responses', { context_management: [{ type: 'compaction' }] }), false)
  const hidden = String.raw`{"model":"m","messages":[{"content":[{"image\u005furl":{"url":"http:\/\/x"}}]}]}`
  assert.equal(isSelfContained('chat', hidden), false)
  for (const blank of ['', ' ', '\t\n  '])
    assert.equal(
      isSelfContained('chat', `{"model":"m","messages":[{"content":[{"image"${blank}:${blank}"http://x"}]}]}`),
      false,
    )
  const plain: [ClientWire, Fields | string][] = [
    ['chat', { messages: turn({ type: 'text', text: '// see a/b, é \u2028' }), tools: [{ type: 'function' }] }],
    ['messages', { messages: turn(block({ type: 'base64', media_type: 'image/png', data: 'AA//' })) }],
    ['responses', { input: 'hello', tools: [{ type: 'function', name: 'f' }] }],
    ['messages', { tools: [{ name: 'f', input_schema: schema, cache_control: { type: 'ephemeral' } }] }],
    ['responses', { tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'custom', format: { type: 'text' } }] }] }],
    ['chat', String.raw`{"model":"m","messages":[{"content":"caf\u00e9 \u003cb\u003e \u0026"}]}`],
  ]
  for (const [wire, fields] of plain) assert.equal(isSelfContained(wire, fields), true, JSON.stringify(fields))
})
