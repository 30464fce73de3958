import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import fc from 'fast-check'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { estimateTextTokens } from '../../src/inference/estimate.ts'
import { wires } from '../../src/wires/wires.ts'
import { collect } from '../support/garbage.ts'
import { runsOf } from '../support/runs.ts'
import { pump, pumpJson } from '../translation/pump.ts'
import * as up from '../translation/upstreams.ts'
import { modelOf } from './models.ts'
import { bodies, escaped, type Said, streams, textOf } from './tellings.ts'

const headOf = (wire: ClientWire) => ({
  requestId: 'req_1',
  model: modelOf(wire),
  createdSeconds: 1,
  inputTokensEstimate: 11,
})
const clientOf = (wire: ClientWire) => (wire === 'messages' ? 'chat' : 'messages')

/** What the stream of a model without usage is estimated at, for a client of its own wire. */
function ofStream(wire: ClientWire, script: string, pieceBytes = 1500): number {
  const relay = wires[wire].native.openStream(headOf(wire))
  const bytes = Buffer.from(script)
  for (let at = 0; at < bytes.length; at += pieceBytes) relay.push(bytes.subarray(at, at + pieceBytes))
  assert.notEqual(relay.state, 'failed')
  return relay.estimateOutput()
}

function ofBody(wire: ClientWire, body: string): number {
  const answer = wires[wire].native.readAnswer(Buffer.from(body), headOf(wire))
  assert.ok(answer.state !== 'failed')
  return answer.estimateOutput()
}

/** The same answer on the ways of H-F3. */
function everyWay(wire: ClientWire, said: Said): Record<string, number> {
  const sizes = [3, 5, 1, 17, 4, 60]
  const script = streams[wire](said, sizes)
  return {
    stream: ofStream(wire, script),
    'stream of escapes': ofStream(wire, escaped(script)),
    JSON: ofBody(wire, bodies[wire](said)),
    'JSON of escapes': ofBody(wire, escaped(bodies[wire](said))),
    'translated stream': pump(clientOf(wire), wire, script, { showsReasoning: true }).usage.outputTokens,
    'translated JSON': pumpJson(clientOf(wire), wire, bodies[wire](said)).usage.outputTokens,
  }
}

const fixture = (name: string) => readFileSync(new URL(`../fixtures/samples/${name}`, import.meta.url), 'utf8')
const chinese =
  '灯塔守望者每天清晨都要爬上一百二十级台阶，检查灯具是否清洁，再把昨夜的天气写进日志。海面平静的时候，' +
  '渔船会在日出之前经过岬角，船上的人向他挥手；起雾的日子里，他只能听见远处的汽笛声。有人问他是否觉得孤独，' +
  '他说：孤独并不在于身边有没有人，而在于心里有没有值得等待的事情。'
const russian =
  'Смотритель маяка каждое утро поднимается по ста двадцати ступеням, проверяет стекло фонаря и записывает в журнал, ' +
  'какой была ночь. Когда море спокойно, рыбацкие лодки проходят мимо мыса ещё до рассвета, и люди машут ему рукой; ' +
  'в туманные дни он слышит только далёкие гудки. Его спрашивали, не одиноко ли ему здесь. '
const languages = {
  English: (fixture('prose/lighthouse.txt') + fixture('prose/essay.txt')).slice(0, 4_400),
  Chinese: chinese.repeat(8),
  code: fixture('code/inventory.py').slice(0, 3_600),
  Russian: russian.repeat(9),
}

for (const [language, text] of Object.entries(languages)) {
  for (const wire of clientWireNames) {
    test(`C10 H-F3 ${language} without usage costs the same on every path (${wire} model)`, () => {
      const tokens = estimateTextTokens(text)
      const ways = everyWay(wire, { text })
      assert.deepEqual(ways, Object.fromEntries(Object.keys(ways).map((way) => [way, tokens])))
      const true_ = countTokens(text)
      assert.ok(true_ > 800 && Math.abs(tokens / true_ - 1) < 0.15, `${tokens} for ${true_}`)
    })
  }
}

for (const wire of clientWireNames) {
  test(`C10 reasoning, text, names and arguments count on every path, each once (${wire} model)`, () => {
    // In a whole message the input stands as the model's server wrote it, and is counted so.
    const city = wire === 'messages' ? 'Tokyo' : '東京'
    const args = `{"path": "src/main.ts", "city": "${city}", "why": "it \\"must\\" stay\\n", "n": 12345678901234567890}`
    const said = {
      reasoning: 'Let me see: 让我想一想。 ',
      text: 'I will read it. 😀 ',
      call: { name: 'read_file', args },
    }
    const tokens = estimateTextTokens(textOf(said))
    const ways = everyWay(wire, said)
    assert.deepEqual(ways, Object.fromEntries(Object.keys(ways).map((way) => [way, tokens])))
  })

  test(`C10 the cuts of a ${wire} stream into deltas and pieces change nothing`, () => {
    const anyText = fc.string({ minLength: 1, maxLength: 3_000, unit: fc.constantFrom(...'ab Z9_-"\\\n\t{}é漢字ж😀') })
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(anyText, sizes, fc.boolean(), fc.integer({ min: 1, max: 400 }), (text, cut, escapes, bytes) => {
        const script = streams[wire]({ text, call: { name: 'f', args: JSON.stringify({ text }) } }, cut)
        const tokens = estimateTextTokens(`${text}f${JSON.stringify({ text })}`)
        assert.equal(ofStream(wire, escapes ? escaped(script) : script, bytes), tokens)
      }),
      { numRuns: runsOf(60) },
    )
  })
}

test('C10 a terminal event that repeats the output is not counted twice, and additional output in it is counted', () => {
  const output = [up.message(0, 'Fourteen words are said here, once in deltas and once more at the end.')]
  const tokens = estimateTextTokens('Fourteen words are said here, once in deltas and once more at the end.')
  const last = up.terminal('completed', output, { usage: null })
  const deltas = ['Fourteen words are said here,', ' once in deltas and once more at the end.']
  assert.equal(ofStream('responses', up.events(up.created, ...up.wholeMessage(0, ...deltas), last)), tokens)
  assert.equal(ofStream('responses', up.events(up.created, last)), tokens)
  assert.equal(ofStream('responses', up.events(up.created, ...up.wholeMessage(0, deltas[0]!), last)), tokens)
  const emptied = up.terminal('completed', [], { usage: null })
  assert.equal(ofStream('responses', up.events(up.created, ...up.wholeMessage(0, ...deltas), emptied)), tokens)
})

test('C10 output of a cut responses stream that came only in done events counts', () => {
  const script = up.events(
    up.created,
    up.added(0, up.functionCall(0, 'read_file', '')),
    up.itemDone(0, up.functionCall(0, 'read_file', '{"path":"a.ts"}')),
    up.added(1, up.message(1)),
    up.itemDone(1, up.message(1, 'Hello there.')),
  )
  assert.equal(ofStream('responses', script), estimateTextTokens('read_file{"path":"a.ts"}Hello there.'))
})

test('C10 sealed and binary output does not count as text', () => {
  const sealed = { ...up.summary(0, 'Hm.'), encrypted_content: 'x'.repeat(9_000) }
  const image = { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'x'.repeat(9_000) }
  const audio = { type: 'response.audio.delta', delta: 'x'.repeat(9_000) }
  const last = up.terminal('completed', [sealed, image], { usage: null })
  const script = up.events(up.created, up.added(0, sealed), audio, up.itemDone(0, sealed), last)
  assert.equal(ofStream('responses', script), estimateTextTokens('Hm.'))
  const redacted = { type: 'redacted_thinking', data: 'x'.repeat(9_000) }
  const body = { type: 'message', content: [redacted, { type: 'text', text: 'Hm.' }] }
  assert.equal(ofBody('messages', JSON.stringify(body)), estimateTextTokens('Hm.'))
})

test('C10 raw reasoning and its summary count once', () => {
  const raw = { type: 'response.reasoning_text.delta', item_id: 'rs_hosted_0', output_index: 0, content_index: 0 }
  const script = up.events(
    up.created,
    up.added(0, { ...up.summary(0), summary: [] }),
    { ...raw, delta: 'All that I thought of it.' },
    up.summaryDelta(0, 0, 'I thought.'),
    up.textDelta(1, ' So: yes.'),
  )
  assert.equal(ofStream('responses', script), estimateTextTokens('All that I thought of it. So: yes.'))
})

test('C10 C7 every choice of a chat answer is counted', () => {
  const choices = ['One answer.', ' Another answer.'].map((content, index) => ({
    index,
    message: { role: 'assistant', content },
    finish_reason: 'stop',
  }))
  const tokens = estimateTextTokens('One answer. Another answer.')
  assert.equal(ofBody('chat', up.completion({}, 'stop', { choices, usage: undefined })), tokens)
  const script = ['One', ' Another', ' answer.', ' answer.'].map((content, i) =>
    up.delta({ content }, { index: i % 2 }),
  )
  assert.equal(ofStream('chat', script.join('')), estimateTextTokens('One Another answer. answer.'))
  const first = '"finish_reason":null}'
  const second = '{"index":1,"delta":{"reasoning_content":"d "},"finish_reason":null}'
  const both = ['a ', 'b ', 'c '].map(up.reasoning).join('') + up.reasoning('c ').replace(first, `${first},${second}`)
  assert.equal(ofStream('chat', both), estimateTextTokens('a b c c d '))
})

test('C10 mirrored reasoning counts once, text beside empty fields once, and a repeated name once', () => {
  const mirrored = (words: string) =>
    up.delta({ content: '', reasoning: words, reasoning_details: [{ type: 'reasoning.text', text: words }] })
  const named = (args: string) => up.call([0, 'call_1', 'read_file', args])
  const script =
    up.delta({ role: 'assistant', content: '' }) +
    ['I', ' think', ' so.'].map(mirrored).join('') +
    [' Yes', ' it', ' is.'].map((content) => up.delta({ reasoning_content: '', content, refusal: null })).join('') +
    ['{"pa', 'th":', '"a"}'].map(named).join('')
  assert.equal(ofStream('chat', script), estimateTextTokens('I think so. Yes it is.read_file{"path":"a"}'))
})

test('C10 a custom call of a chat answer counts with its name and its input', () => {
  const custom = (rest: object) => ({ index: 0, type: 'custom', custom: rest })
  const tool_calls = [{ ...custom({ name: 'apply_patch', input: 'lines of a patch' }), id: 'call_1' }]
  const tokens = estimateTextTokens('apply_patchlines of a patch')
  assert.equal(ofBody('chat', up.completion({ tool_calls }, 'tool_calls', { usage: undefined })), tokens)
  const pieces = [{ name: 'apply_patch', input: '' }, { input: 'lines of' }, { input: ' a patch' }]
  const script = pieces.map((piece) => up.delta({ tool_calls: [custom(piece)] })).join('')
  assert.equal(ofStream('chat', script), tokens)
})

test('C10 text after a common beginning counts too, whatever came before', () => {
  const both = (content: string) => up.delta({ content, tool_calls: [{ index: 0, function: { arguments: content } }] })
  const script = ['a ', 'b ', 'c '].map(up.text).join('') + ['d ', 'e ', 'f '].map(both).join('')
  assert.equal(ofStream('chat', script), estimateTextTokens('a b c d d e e f f '))
})

test('C10 a messages call with its input in the start event, or without input, counts as the translated one does', () => {
  const start = (input: object) => up.blockStart(0, { type: 'tool_use', id: 'toolu_1', name: 'now', input })
  for (const [begin, input] of [
    [start({}), '{}'],
    [start({ zone: 'UTC' }), '{"zone":"UTC"}'],
    [start({}) + up.blockDelta(0, { type: 'input_json_delta', partial_json: '{"zone":1}' }), '{"zone":1}'],
    [start({ a: 1 }) + up.blockDelta(0, { type: 'input_json_delta', partial_json: '{"zone":1}' }), '{"zone":1}'],
  ] as const) {
    const script = up.messageStart({}) + begin + up.blockStop(0) + up.messageDelta('tool_use', {}) + up.messageStop
    assert.equal(ofStream('messages', script), estimateTextTokens(`now${input}`))
    assert.equal(pump('chat', 'messages', script).usage.outputTokens, estimateTextTokens(`now${input}`))
  }
})

for (const wire of clientWireNames) {
  test(`C10 a ${wire} stream of any length keeps none of its text in memory`, () => {
    const all = streams[wire]({ text: '漢字 and words, '.repeat(4_000) }, [13]).split(/(?<=\n\n)/)
    const isDelta = (frame: string) => /delta/.test(frame) && frame.includes('words')
    const deltas = all.slice(1).filter(isDelta)
    const relay = wires[wire].native.openStream(headOf(wire))
    relay.push(Buffer.from(all.slice(0, Math.max(1, all.findIndex(isDelta))).join('')))
    const play = () => {
      for (const frame of deltas) relay.push(Buffer.from(frame))
    }
    const growth = () => {
      collect()
      const before = process.memoryUsage().heapUsed
      for (let round = 0; round < 20; round++) play()
      collect()
      return process.memoryUsage().heapUsed - before
    }
    // What the engine compiles meanwhile is no text, and comes once: the least of three is what each round keeps.
    const grown = Math.min(growth(), growth(), growth())
    assert.ok(grown < 200_000, `${grown} bytes more for ${deltas.length * 20 * 13} characters`)
    assert.ok(relay.estimateOutput() > 100_000)
  })
}
