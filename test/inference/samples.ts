import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'

export type Sample = {
  kind: string
  /** The file it was cut from. */
  source: string
  text: string
  /** What the o200k vocabulary makes of it. */
  tokens: number
  /** Weights are fitted on one half of the files; accuracy is stated of the other. */
  half: 'fit' | 'report'
}

/** Not English: fitted and shown, but not part of what is promised. */
export const otherLanguages = 'languages'

const root = new URL('../../', import.meta.url)

/** Ours by the name of their folder, and texts that the lockfile pins. */
const sources: [kind: string, glob: string][] = [
  ['prose', 'test/fixtures/samples/prose/*'],
  ['markdown', 'test/fixtures/samples/markdown/*'],
  ['code', 'test/fixtures/samples/code/*'],
  ['code', 'test/fixtures/samples/records/*'],
  ['licence', 'node_modules/{openai,typescript,yaml,zod}/LICENSE*'],
  ['markdown', 'node_modules/undici/docs/docs/**/*.md'],
  [
    'markdown',
    'node_modules/{commander,fast-check,yaml,zod,openai,undici,pure-rand,json-schema-to-ts}/{README,Readme,CHANGELOG}.md',
  ],
  ['markdown', 'node_modules/@biomejs/biome/README.md'],
  ['javascript', 'node_modules/undici/lib/{core,dispatcher,handler,cache,mock}/*.js'],
  ['javascript', 'node_modules/commander/lib/*.js'],
  ['javascript', 'node_modules/yaml/dist/{compose,schema,parse,nodes}/*.js'],
  ['typescript', 'node_modules/openai/src/{,core/,lib/,internal/}*.ts'],
  ['typescript', 'node_modules/zod/src/v4/{core,classic,mini}/*.ts'],
  ['typescript', 'node_modules/@types/node/*.d.ts'],
  [
    'json',
    'node_modules/{openai,zod,undici,commander,fast-check,typescript,yaml,@types/node,@biomejs/biome,@anthropic-ai/sdk}/*.json',
  ],
  ['json', 'node_modules/undici/docs/docs/*.json'],
  [otherLanguages, 'node_modules/@biomejs/biome/README.*.md'],
  [otherLanguages, 'node_modules/zod/src/v4/locales/*.ts'],
]

/** Characters per sample, in turn: from about 200 to about 1,500 tokens. */
const sliceChars = [1_000, 1_600, 2_600, 4_000, 5_600]
const slicesPerFileMax = 4

/** Texts of 200 tokens and more. */
export function readSamples(): Sample[] {
  const samples: Sample[] = []
  for (const [kind, glob] of sources) {
    for (const source of globSync(glob, { cwd: root })
      .map((path) => path.replaceAll('\\', '/'))
      .sort()) {
      const text = readFileSync(new URL(source, root), 'utf8').replaceAll('\r\n', '\n')
      for (const [index, slice] of cut(text).entries()) {
        // By files, so that no file helps to judge itself; a language is often one file only, so there by slices.
        const half = halfOf(kind === otherLanguages ? `${source}#${index}` : source)
        const tokens = countTokens(slice)
        if (tokens >= 200) samples.push({ kind: kindOf(kind, source), source, text: slice, tokens, half })
      }
    }
  }
  return samples
}

function halfOf(name: string): Sample['half'] {
  return createHash('sha256').update(name).digest()[0]! % 2 === 0 ? 'fit' : 'report'
}

function kindOf(kind: string, source: string): string {
  return kind === 'code' ? source.slice(source.lastIndexOf('.') + 1) : kind
}

/** At most `slicesPerFileMax` pieces of whole lines, evenly spread over the file. */
function cut(text: string): string[] {
  const slices: string[] = []
  let at = 0
  for (let turn = 0; at < text.length; turn++) {
    const line = text.indexOf('\n', at + sliceChars[turn % sliceChars.length]!)
    const end = line < 0 ? text.length : line + 1
    slices.push(text.slice(at, end))
    at = end
  }
  const step = Math.max(1, slices.length / slicesPerFileMax)
  return slices.filter((_, index) => Math.floor(index / step) !== Math.floor((index - 1) / step))
}
