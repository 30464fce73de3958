import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { Answer } from '../../src/inference/answer.ts'
import { runsOf } from '../support/runs.ts'
import { type ClientWire, openStream, pump, pumpJson, type Told } from './pump.ts'
import { call, completion, delta, done, reason } from './upstreams.ts'

/*
 * A thought that comes between tags and in the reasoning field (BUG-6): in one piece or many, in chunks that hold both or one of
 * them, cut at any place, whichever comes first.
 */

const runs = { numRuns: runsOf(300) }
const tags = { open: '<think>', close: '</think>' }

/** What a client was shown: thoughts and text, each put together. */
function shownOf(told: Told): { text: string; thought: string; kinds: string } {
  assert.ok('answer' in (told.outcome as object), JSON.stringify(told.outcome))
  const { blocks } = (told.outcome as { answer: Answer }).answer
  const of = (kind: string) =>
    blocks
      .filter(({ block }) => block.kind === kind)
      .map(({ text }) => text)
      .join('')
  return { text: of('text'), thought: of('reasoning').trim(), kinds: blocks.map(({ block }) => block.kind).join(' ') }
}

function cut(text: string, sizes: readonly number[]): string[] {
  const pieces: string[] = []
  let at = 0
  for (const size of [...sizes, text.length]) {
    pieces.push(text.slice(at, at + size))
    at += size
  }
  return pieces.filter((piece) => piece !== '')
}

/** Chunks with the content and the field: in the same chunk, or in chunks of their own, in either order. */
function stream(
  contents: readonly string[],
  fields: readonly string[],
  order: 'same' | 'field first' | 'content first',
) {
  return chunks(contents, fields, order) + reason('stop') + done
}

function chunks(
  contents: readonly string[],
  fields: readonly string[],
  order: 'same' | 'field first' | 'content first',
) {
  let script = ''
  for (let place = 0; place < Math.max(contents.length, fields.length); place++) {
    const content = contents[place] === undefined ? {} : { content: contents[place] }
    const field = fields[place] === undefined ? {} : { reasoning_content: fields[place] }
    if (order === 'same') script += delta({ ...content, ...field })
    else script += (order === 'field first' ? [field, content] : [content, field]).map((one) => delta(one)).join('')
  }
  return script
}

const words = fc.stringMatching(/^[a-z]([a-z .<>/\n]{0,20}[a-z])?$/).filter((text) => !text.includes('</think>'))
const sizes = fc.array(fc.integer({ min: 1, max: 7 }), { maxLength: 20 })
const orders = fc.constantFrom('same', 'field first', 'content first')
const clients = fc.constantFrom<ClientWire>('messages', 'responses')

test('BUG-6 TS3 reasoning sent both in tags and in the field is shown once, without loss of text, however both are split', () => {
  fc.assert(
    fc.property(
      fc.record({ words, answer: words, sizes, fieldSizes: sizes, order: orders, client: clients }),
      fc.boolean(),
      fc.boolean(),
      (one, showsReasoning, implicitOpen) => {
        const contents = cut(`<think>\n${one.words}</think>\n\n${one.answer}`, one.sizes)
        const options = { showsReasoning, profile: { thinkTags: { ...tags, implicitOpen } } }
        const script = stream(contents, cut(one.words, one.fieldSizes), one.order)
        const shown = shownOf(pump(one.client, 'chat', script, options))
        assert.deepEqual([shown.text, shown.thought], [one.answer, showsReasoning ? one.words : ''])
      },
    ),
    runs,
  )
})

test('BUG-6 TS3 later reasoning sent both in tags and in the field is shown once too', () => {
  const section = fc.record({
    words,
    answer: words,
    sizes,
    fieldSizes: sizes,
    order: fc.constantFrom('same', 'field first'),
  })
  const sections = fc.array(section, { minLength: 2, maxLength: 3 })
  fc.assert(
    fc.property(sections, clients, fc.boolean(), fc.boolean(), (list, client, showsReasoning, implicitOpen) => {
      const scripts = list.map((one) => {
        const contents = cut(`<think>\n${one.words}</think>\n\n${one.answer}`, one.sizes)
        return chunks(contents, cut(one.words, one.fieldSizes), one.order)
      })
      for (const hasCalls of [false, true]) {
        const options = { showsReasoning, profile: { thinkTags: { ...tags, implicitOpen } } }
        const script = scripts.map((part, i) => part + (hasCalls ? call([i, `c${i}`, 'f', '{}']) : '')).join('')
        const shown = shownOf(pump(client, 'chat', script + reason('stop') + done, options))
        const joined = (key: 'words' | 'answer') => list.map((one) => one[key]).join('')
        assert.deepEqual([shown.text, shown.thought], [joined('answer'), showsReasoning ? joined('words') : ''])
      }
    }),
    runs,
  )
})

test('BUG-6 TS3 tags after text are dropped while the field has the thought, and stay text if they hold something else', () => {
  const plain = fc.stringMatching(/^[a-z]([a-z .\n]{0,20}[a-z])?$/)
  const section = fc.record({ before: plain, thought: plain, sizes, fieldSizes: sizes })
  fc.assert(
    fc.property(
      fc.array(section, { minLength: 1, maxLength: 3 }),
      fc.record({ end: plain, client: clients, isWhole: fc.boolean(), isMirror: fc.boolean() }),
      fc.boolean(),
      (list, { end, client, isWhole, isMirror }, showsReasoning) => {
        const options = { showsReasoning, profile: { thinkTags: { ...tags, implicitOpen: false } } }
        // The text may repeat the thought, so it begins with a letter that no thought has.
        const parts = (isWhole ? list.slice(0, 1) : list).map((one) => ({
          ...one,
          before: `É${one.before}`,
          tagged: isMirror ? `<think>\n${one.thought}</think>\n` : `<think>Ö ${one.thought}</think>`,
        }))
        const text = parts.map(({ before, tagged }) => before + (isMirror ? '' : tagged)).join('') + end
        const thought = parts.map((one) => one.thought).join('')
        let shown: { text: string; thought: string }
        if (isWhole) {
          const content = parts.map(({ before, tagged }) => before + tagged).join('') + end
          shown = shownOf(pumpJson(client, 'chat', completion({ content, reasoning_content: thought }), options))
        } else {
          const scripts = parts.map((one, i) => {
            const rest = one.tagged + (i === parts.length - 1 ? end : '')
            // The field comes along with the tags, as MiniMax mirrors it, or with the text before them.
            const inOne = chunks(cut(one.before + rest, one.sizes), [one.thought], 'field first')
            const apart =
              delta({ content: one.before }) + chunks(cut(rest, one.sizes), cut(one.thought, one.sizes), 'same')
            return one.sizes.length % 2 === 0 ? apart : inOne
          })
          shown = shownOf(pump(client, 'chat', scripts.join('') + reason('stop') + done, options))
        }
        assert.equal(shown.text, text)
        if (showsReasoning) assert.equal(shown.thought.replaceAll(/\s/g, ''), thought.replaceAll(/\s/g, ''))
        else assert.equal(shown.thought, '')
      },
    ),
    runs,
  )
})

const early = fc.stringMatching(/^[a-m]([a-m .<\n]{0,20}[a-m])?$/)
const late = fc.stringMatching(/^[n-z]([n-z .\n]{0,20}[n-z])?$/)

test('BUG-6 TS3 text that ends with a closing tag but has no opening one is kept, whether or not the field repeats it', () => {
  const letters = (text: string, which: RegExp) => text.match(which)?.join('') ?? ''
  fc.assert(
    fc.property(
      fc.record({ text: early, answer: early, field: late, sizes, fieldSizes: sizes, order: orders, client: clients }),
      fc.boolean(),
      fc.boolean(),
      (one, isMirror, isClosed) => {
        const { text, answer, field } = one
        const contents = cut(isClosed ? `${text}</think>${answer}` : text, one.sizes)
        const fields = isMirror ? cut(text, one.sizes) : cut(field, one.fieldSizes)
        const options = { showsReasoning: true, profile: { thinkTags: { ...tags, implicitOpen: true } } }
        const shown = shownOf(pump(one.client, 'chat', stream(contents, fields, one.order), options))
        if (isMirror && isClosed) assert.deepEqual([shown.text, shown.thought], [answer, text])
        if (isMirror) return
        // The answer may be shown as a thought where nothing ends it; the word for its end may then be text.
        const all = (shown.thought + shown.text).replace('</think>', '')
        assert.equal(
          [...letters(all, /[a-m]/g)].sort().join(''),
          [...letters(text + (isClosed ? answer : ''), /[a-m]/g)].sort().join(''),
        )
        assert.equal(letters(shown.thought, /[n-z]/g), letters(field, /[n-z]/g))
      },
    ),
    runs,
  )
})

test('BUG-6 a whole answer with both forms shows the reasoning once', () => {
  fc.assert(
    fc.property(words, words, fc.boolean(), (thought, answer, implicitOpen) => {
      for (const begin of implicitOpen ? ['<think>', ''] : ['<think>']) {
        const body = completion({ content: `${begin}${thought}</think>${answer}`, reasoning_content: `${thought}\n` })
        const options = { showsReasoning: true, profile: { thinkTags: { ...tags, implicitOpen } } }
        const shown = shownOf(pumpJson('messages', 'chat', body, options))
        assert.deepEqual(shown, { text: answer, thought, kinds: 'reasoning text' })
      }
    }),
    runs,
  )
})

test('BUG-6 an answer with only the field, or only tags, is unchanged', () => {
  fc.assert(
    fc.property(words, words, sizes, fc.boolean(), (thought, answer, cuts, implicitOpen) => {
      const options = { showsReasoning: true, profile: { thinkTags: { ...tags, implicitOpen } } }
      const field = pump('messages', 'chat', stream(cut(answer, cuts), [thought], 'field first'), options)
      assert.deepEqual(shownOf(field), { text: answer, thought, kinds: 'reasoning text' })
      const tagged = pump(
        'messages',
        'chat',
        stream(cut(`<think>${thought}</think>${answer}`, cuts), [], 'same'),
        options,
      )
      assert.deepEqual(shownOf(tagged), { text: answer, thought, kinds: 'reasoning text' })
    }),
    runs,
  )
})

test('BUG-6 the reported case, and the same answer that ends without text', () => {
  const options = { showsReasoning: true, profile: { thinkTags: { ...tags, implicitOpen: false } } }
  const play = (script: string) => shownOf(pump('messages', 'chat', script, options))
  const both =
    delta({ content: '<think>\nI ', reasoning_content: 'I ' }) +
    delta({ content: 'think\n', reasoning_content: 'think\n' })
  assert.deepEqual(play(both + delta({ content: '</think>\n\nHello' }) + reason('stop') + done), {
    ...{ text: 'Hello', thought: 'I think', kinds: 'reasoning text' },
  })
  // Cut within the thought, and a call right after it.
  assert.deepEqual(play(both + reason('length') + done), { text: '', thought: 'I think', kinds: 'reasoning' })
  const called = call([0, 'c', 'f', '{}']) + reason('tool_calls') + done
  assert.deepEqual(play(both + delta({ content: '</think>' }) + called), {
    ...{ text: '', thought: 'I think', kinds: 'reasoning tool_call' },
  })
  assert.equal(play(delta({ reasoning_content: 'hm' }) + called).kinds, 'reasoning tool_call')
})

test('BUG-6 untagged text that is longer than the reasoning is text, and an answer equal to the reasoning is shown', () => {
  const options = { showsReasoning: true, profile: { thinkTags: { ...tags, implicitOpen: true } } }
  const play = (script: string) => shownOf(pump('messages', 'chat', script, options))
  const field = delta({ reasoning_content: 'OK' })
  const end = reason('stop') + done
  for (const answer of ['OK', 'OK now', 'O', '\nOK', 'OK\n', '<']) {
    for (const pieces of [[answer], [...answer]]) {
      const shown = play(field + pieces.map((content) => delta({ content })).join('') + end)
      assert.equal(shown.text.trim(), answer.trim())
      assert.equal(shown.thought, 'OK')
    }
  }
  // Blanks beyond the thought still belong to it, and a cap cuts within it.
  const blanks = delta({ content: 'O' }) + delta({ content: 'K\n' }) + delta({ content: '\n' })
  assert.equal(play(field + blanks + delta({ content: '</think>Hi' }) + end).text, 'Hi')
  assert.equal(play(field + blanks + reason('length') + done).text, '')
  // Text that is longer is shown at once.
  const live = openStream('messages', 'chat', options)
  assert.match(live.push(Buffer.from(field + delta({ content: 'OK' }) + delta({ content: ' now' }))), /OK now/)
})

test('BUG-6 B10 reasoning sent piece by piece in its field and in tags is folded, however many pieces there are', () => {
  const pieces = Array.from({ length: 20_000 }, (_, place) => `${place} `)
  const both = pieces.map((piece) => delta({ content: piece }) + delta({ reasoning_content: piece })).join('')
  for (const [implicitOpen, begin] of [
    [false, '<think>'],
    [true, ''],
  ] as const) {
    const options = { showsReasoning: true, profile: { thinkTags: { ...tags, implicitOpen } } }
    const script =
      delta({ content: begin || pieces[0]! }) + delta({ reasoning_content: begin ? '' : pieces[0]! }) + both
    const shown = shownOf(
      pump('messages', 'chat', script + delta({ content: '</think>Hi' }) + reason('stop') + done, options),
    )
    const thought = (begin ? '' : pieces[0]!) + pieces.join('')
    assert.deepEqual(shown, { text: 'Hi', thought: thought.trim(), kinds: 'reasoning text' })
  }
})

test('B10 the number of shown blocks is bounded, whatever the filters do', () => {
  const live = openStream('messages', 'chat', { showsReasoning: true })
  const turn = delta({ reasoning_content: 'a' }) + delta({ content: 'b' })
  for (let i = 0; i < 4_900; i++) live.push(Buffer.from(turn))
  assert.equal(live.state, 'shown')
  for (let i = 0; i < 200; i++) live.push(Buffer.from(turn))
  assert.equal(live.state, 'failed')
})

test('BUG-6 long reasoning that is repeated in small pieces of text is dropped', () => {
  const options = { showsReasoning: true, profile: { thinkTags: { ...tags, implicitOpen: true } } }
  const pieces = Array.from({ length: 40_000 }, (_, place) => `${place}`.padStart(5))
  const again = pieces.map((content) => delta({ content })).join('') + delta({ content: '</think>Hi' })
  const script = delta({ reasoning_content: pieces.join('') }) + again + reason('stop') + done
  const shown = shownOf(pump('messages', 'chat', script, options))
  assert.deepEqual([shown.text, shown.thought], ['Hi', pieces.join('').trim()])
})
