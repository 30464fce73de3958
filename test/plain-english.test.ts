import assert from 'node:assert/strict'
import test from 'node:test'
import { readComments } from '../scripts/support/comments.ts'
import { findFaults } from '../scripts/support/plain-english.ts'

const words = (count: number) => Array.from({ length: count }, (_, index) => `w${index}`).join(' ')

/** Each source with what is found in it: line and the beginning of the message. */
const cases: Readonly<Record<string, readonly string[]>> = {
  '/** What is sent. */': ["1 begins with 'What'"],
  '/** Who waits longer gets a 429. */': ["1 begins with 'Who'"],
  '// Where no key is set, none is sent.': ["1 begins with 'Where'"],
  '/**\n * None is kept.\n */': ["2 begins with 'None'"],
  'let a\n// Nor is it kept.': ["2 begins with 'Nor'"],
  '// It ends the request.': ["1 begins with 'It'"],
  '/** Whoever waits. */': ["1 begins with 'Whoever'", "1 'Whoever': write name the client"],
  '// Whether it is kept. What follows is not the beginning.': [],
  '// Items and whatever they hold.': [],
  '/** Kept.\n *\n * What is in a later paragraph. */': [],
  'f(a) // The client is told,\n// and once more told.': ["1 'told': write returned", "2 'told': write returned"],
  '// A value that is none, and others that are none.': ["1 'is none'", "1 'are none'"],
  '// Undefined if there is none. This is none of ours.': [],
  '// It\n// is\n// none.': ["1 begins with 'It'", "2 'is none'"],
  '// A byte behind the end.': ["1 'behind': write after"],
  '// Runs behind a proxy, behind another reverse proxy; the server behind it; leaves a file behind; has fallen behind.':
    [],
  '// One word behind a word.': ["1 'behind'"],
  '// Two keys are hardly meant.': ["1 'hardly meant': write is probably a mistake"],
  '// The operator: he, his keys, and him.': ["1 'he'", "1 'his'", "1 'him'"],
  '// The same, this, and the others: a `he` in code.': [],
  '// A house of rooms, by an arrow.': ["1 'house'", "1 'rooms': write module", "1 'arrow'"],
  '// There is no room for it; an arrow function.': [],
  [`// ${words(25)}.`]: [],
  [`// ${words(26)}.`]: ['1 a sentence of 26 words'],
  [`/**\n * Short. One ${words(12)}\n * ${words(13)}. Short.\n */`]: ['2 a sentence of 26 words'],
  [`// ${words(20)}.\n// One ${words(20)}?\n// \`code\` ${words(20)}.`]: [],
  [`// ${words(20)}, e.g. ${words(10)}`]: ['1 a sentence of 31 words'],
  [`// \`${words(30)}\` is one word.`]: [],
  [`/** ${words(20)} @param name ${words(20)} @returns ${words(20)} */`]: [],
  [`/**\n * ${words(20)}:\n * - ${words(20)}\n * - ${words(20)}\n *\n *     ${words(40)}\n *\n * | ${words(40)} |\n */`]:
    [],
  '/** Sends it. @param told the text @property his a name */': [],
  '// biome-ignore lint: told': [],
  // Sources without a comment, though they look like one.
  "'// told'; \"/* told */\"; `// told ${'// told'} // told`; 'it\\'s // told'": [],
  'const a = /[/*] told \\/\\/ told/; f(/"/, 1) // none': [],
  '`${`${{ a: 1 }} // told`} // told` // behind': ["1 'behind'"],
  'a = b / c // told\nd = e / f': ["1 'told'"],
  'return /[`]/ // told': ["1 'told'"],
  "<p>Don't</p> // told": ["1 'told'"],
  '<a href="x" />\n{/* told */}': ["2 'told'"],
}

test('the check of comments finds unnamed subjects, words with a better alternative, and long sentences', () => {
  for (const [source, expected] of Object.entries(cases)) {
    const found = findFaults(source).map(({ line, text }) => `${line} ${text}`)
    assert.deepEqual(
      found.map((finding, index) => finding.slice(0, expected[index]?.length)),
      expected,
      source,
    )
  }
})

test('comments on consecutive lines count as one comment, and others do not', () => {
  const source = 'a // one\n// two\n\n// three\n/* four\n * five */\n// six\nb\n// seven'
  assert.deepEqual(
    readComments(source).map(({ lines }) => lines.map(({ line, text }) => `${line}${text}`)),
    [['1 one', '2 two'], ['4 three'], ['5 four', '6 five '], ['7 six'], ['9 seven']],
  )
})
