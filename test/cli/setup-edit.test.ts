import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { editSettings } from '../../src/cli/setup/edit/edit.ts'
import { readJsonc } from '../../src/cli/setup/edit/jsonc.ts'
import { readToml } from '../../src/cli/setup/edit/toml.ts'
import type { SettingsFile } from '../../src/programs/program.ts'
import { runsUpTo } from '../support/runs.ts'

/*
 * Files of people's own, with our settings put in: what must come out to the byte for the forms people write, and laws
 * for files that nobody thought of.
 */

const toml: SettingsFile = {
  path: '~/config.toml',
  format: 'toml',
  text: `model = "big"
provider = "triwire"

[providers.triwire]
url = "http://gateway.example/v1"
size = 4
`,
  without: [['old']],
}

const tomlCases: [name: string, before: string, after: string][] = [
  ['an empty file', '', toml.text],
  [
    'keys, comments and tables of others',
    `# mine, of 2024
approval = "never" # keep

model = "gpt" # the old one
old = true

# servers
[mcp.a]
args = ["x", # one
  "y"]

[projects."/home/me"]
trust = "yes"
`,
    `# mine, of 2024
approval = "never" # keep

model = "big" # the old one
provider = "triwire"

# servers
[mcp.a]
args = ["x", # one
  "y"]

[projects."/home/me"]
trust = "yes"

[providers.triwire]
url = "http://gateway.example/v1"
size = 4
`,
  ],
  [
    'no key before the first table, and a comment of that table',
    '# about a\n[a]\nb = 1\n',
    'model = "big"\nprovider = "triwire"\n\n# about a\n[a]\nb = 1\n\n[providers.triwire]\nurl = "http://gateway.example/v1"\nsize = 4\n',
  ],
  [
    'a table of ours from another time',
    'model = "big"\nprovider = "triwire"\n[providers.triwire] # ours\nsize = 3\nnote = """\n[providers]\n"""\n[z]\n',
    'model = "big"\nprovider = "triwire"\n[providers.triwire] # ours\nsize = 4\nnote = """\n[providers]\n"""\nurl = "http://gateway.example/v1"\n[z]\n',
  ],
  [
    'inline tables',
    'model = "big"\nprovider = "triwire"\nproviders = { x = { url = "y" } }\n',
    'model = "big"\nprovider = "triwire"\nproviders = { x = { url = "y" }, triwire.url = "http://gateway.example/v1", triwire.size = 4 }\n',
  ],
  [
    'dotted keys, and CRLF',
    'model = "big"\r\nprovider = "triwire"\r\nproviders.triwire.size = 3\r\n\r\n[a]\r\n',
    'model = "big"\r\nprovider = "triwire"\r\nproviders.triwire.size = 4\r\nproviders.triwire.url = "http://gateway.example/v1"\r\n\r\n[a]\r\n',
  ],
  [
    'a byte order mark, and no newline at the end',
    '\ufeff[a]\nb = 1979-05-27T07:32:00Z',
    '\ufeffmodel = "big"\nprovider = "triwire"\n\n[a]\nb = 1979-05-27T07:32:00Z\n\n[providers.triwire]\nurl = "http://gateway.example/v1"\nsize = 4\n',
  ],
]

const json: SettingsFile = {
  path: '~/settings.json',
  format: 'json',
  text: JSON.stringify({ env: { A: '1' }, models: [{ name: 'triwire', id: 'big' }] }),
  lists: { models: 'name' },
  without: [['env', 'OLD']],
}

const jsonCases: [name: string, before: string, after: string][] = [
  ['an empty file', '', json.text],
  [
    'comments, trailing commas, keys and entries of others',
    `// mine
{
    /* a
       block */
    "theme": "dark", // keep
    "env": {
        "B": "2",
    },
    "models": [
        // the one at work
        { "name": "work", "id": "x" },
        {
            "name": "triwire",
            "id": "small"
        }
    ],
}
`,
    `// mine
{
    /* a
       block */
    "theme": "dark", // keep
    "env": {
        "B": "2",
        "A": "1",
    },
    "models": [
        // the one at work
        { "name": "work", "id": "x" },
        {
            "name": "triwire",
            "id": "big"
        }
    ],
}
`,
  ],
  [
    'a comment in the line of the last member',
    '{\n  "theme": "dark", // why\n  "env": {\n    "B": "2" // two\n  } // of env\n}\n',
    '{\n  "theme": "dark", // why\n  "env": {\n    "B": "2", // two\n    "A": "1"\n  }, // of env\n  "models": [\n    {\n      "name": "triwire",\n      "id": "big"\n    }\n  ]\n}\n',
  ],
  [
    'tabs, and CRLF',
    '{\r\n\t"env": {\r\n\t\t"OLD": "1",\r\n\t\t"A": "0"\r\n\t}\r\n}\r\n',
    '{\r\n\t"env": {\r\n\t\t"A": "1"\r\n\t},\r\n\t"models": [\r\n\t\t{\r\n\t\t\t"name": "triwire",\r\n\t\t\t"id": "big"\r\n\t\t}\r\n\t]\r\n}\r\n',
  ],
]

describe('N-F7, X15: settings are added to a user’s file, and everything else stays', () => {
  for (const [file, cases] of [
    [toml, tomlCases],
    [json, jsonCases],
  ] as const) {
    for (const [name, before, after] of cases) {
      test(`${file.format}: ${name}`, () => {
        assert.equal(editSettings(before, file), after)
        // Asked again, there is nothing to do.
        assert.equal(editSettings(after, file), after)
      })
    }
  }

  const refused: [name: string, file: SettingsFile, before: string, why: RegExp][] = [
    ['TOML that is none', toml, 'a = 1\nb = = 2\n', /^Error: line 2 is not TOML/],
    ['JSON that is none', json, '{\n  "a": 1,,\n}', /^Error: line 2 is not JSON/],
    ['a list where a map is wanted', json, '[]', /no map of settings/],
    ['a list of tables where a table is wanted', toml, '[[providers]]\na = 1\n', /./],
    ['a value where a table is wanted', toml, 'providers = 1\n', /./],
  ]
  for (const [name, file, before, why] of refused) {
    test(`${name} is refused`, () => assert.throws(() => editSettings(before, file), why))
  }
})

/** What TOML writes plainly and what it quotes. */
const key = fc.constantFrom('a', 'b-1', 'model', 'providers', 'triwire', 'size', 'x y', 'd.e', 'é')
const scalar = fc.oneof(
  fc.integer({ min: -99, max: 99 }).map(String),
  fc.boolean().map(String),
  fc.string({ maxLength: 6 }).map((text) => JSON.stringify(text).replaceAll('\u007f', '\\u007f')),
  fc.constantFrom(
    "'lit # no comment'",
    '"""\n[a]\nmodel = 1\n"""',
    '[1, # one\n 2]',
    '0x1f',
    '1979-05-27',
    '{ p = 1, q = { r = "s" } }',
  ),
)
const quoted = (name: string) => (/^[\w-]+$/.test(name) ? name : JSON.stringify(name))
const dotted = fc.array(key, { minLength: 1, maxLength: 3 }).map((keys) => keys.map(quoted).join('.'))
const line = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(dotted, scalar).map(([name, value]) => `${name} = ${value}`) },
  { weight: 2, arbitrary: dotted.map((name) => `[${name}]`) },
  fc.constantFrom('', '# a comment', '  # [a] = "b"', '[[list]]', '\t'),
)
const tomlText = fc
  .tuple(fc.array(fc.tuple(line, fc.constantFrom('', ' # why')), { maxLength: 12 }), fc.constantFrom('\n', '\r\n'))
  .map(([lines, eol]) => lines.map(([text, tail]) => `${text}${text.endsWith('"""') ? '' : tail}`).join(eol) + eol)
  .filter((text) => {
    try {
      readToml(text)
      return true
    } catch {
      return false
    }
  })

const jsonText = fc
  .tuple(fc.json({ maxDepth: 3 }), fc.constantFrom('// a\n', '/* b */', '', '\n\n'))
  .filter(([text]) => text.startsWith('{'))
  .map(([text, comment]) => comment + text.replaceAll(',', `,${comment}`))
  .filter((text) => {
    try {
      readJsonc(text)
      return true
    } catch {
      return false
    }
  })

function holds(theirs: unknown, ours: unknown): boolean {
  if (typeof ours !== 'object' || ours === null || Array.isArray(ours))
    return JSON.stringify(theirs) === JSON.stringify(ours)
  return Object.entries(ours).every(([name, value]) => holds((theirs as Record<string, unknown>)?.[name], value))
}

/** Every comment of a text that stands on a line of its own, in order. */
function comments(text: string): string[] {
  return text.split(/\r?\n/).filter((one) => /^\s*#/.test(one))
}

test('N-F7: in any TOML file of a user our settings take effect, all else stays, and a second run does nothing', () => {
  let edited = 0
  const numRuns = runsUpTo(150)
  fc.assert(
    fc.property(tomlText, (before) => {
      let after: string
      try {
        after = editSettings(before, toml)
      } catch {
        // A form that cannot be added to is left alone; the cases above tell which are not.
        return
      }
      edited++
      assert.ok(holds(readToml(after), readToml(toml.text)))
      assert.deepEqual(comments(after), comments(before))
      assert.equal(editSettings(after, toml), after)
    }),
    { numRuns },
  )
  assert.ok(edited > numRuns / 3, `${edited} of ${numRuns} were edited`)
})

test('N-F7: in any JSON file of a user our settings take effect, and a second run does nothing', () => {
  fc.assert(
    fc.property(jsonText, (before) => {
      const plain = { ...json, lists: {} }
      const after = editSettings(before, plain)
      assert.ok(holds(readJsonc(after), readJsonc(json.text)))
      assert.equal(editSettings(after, plain), after)
    }),
    { numRuns: runsUpTo(100) },
  )
})
