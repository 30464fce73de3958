import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'

const docs = join(import.meta.dirname, '../docs')
const wordsMax = 1_200
const clicksMax = 2

/** The jobs of issue 50, each with the page that does it and words that its page must have. */
const jobs: Readonly<Record<string, readonly [page: string, words: RegExp]>> = {
  'try it in five minutes': ['quickstart.md', /console\/overview-light\.png/],
  'roll out to a team': ['roll-out.md', /triwire login/],
  'come from LiteLLM': ['coming-from-litellm.md', /import litellm/],
  'come from one-api or new-api': ['coming-from-one-api.md', /import one-api/],
  'run in Kubernetes': ['kubernetes.md', /helm/],
  'put nginx, Caddy, HAProxy or Cloudflare in front': [
    'behind-a-proxy.md',
    /(?=[\s\S]*nginx)(?=[\s\S]*Caddy)(?=[\s\S]*HAProxy)(?=[\s\S]*Cloudflare)/,
  ],
  'bill teams for a month': ['bill-teams.md', /statement/],
  'sign in with an organisation': ['single-sign-on.md', /sign_in/],
  'use Bedrock, Vertex and Azure': ['clouds.md', /(?=[\s\S]*aws)(?=[\s\S]*google)(?=[\s\S]*azure)/],
  'use applications of your own': ['own-apps.md', /(?=[\s\S]*@anthropic-ai\/sdk)(?=[\s\S]*openai)/],
  'see limits and what clients get': ['limits.md', /429/],
  'back up and restore': ['backup.md', /restore/],
  'upgrade and go back': ['upgrade.md', /check --for 0\.2/],
  'find a cause by its symptom': ['troubleshooting.md', /401/],
  'know what is not included': ['not-included.md', /[Ee]mbeddings/],
}

const read = (page: string) => readFileSync(join(docs, page), 'utf8')
/** Pages that a page links to. */
const linksOf = (page: string) =>
  [...read(page).matchAll(/\]\((?!https?:|#)([^)#\s]+\.md)(?:#[^)\s]*)?\)/g)].map(([, to]) => join(dirname(page), to!))

test('issue 50: each job is found from the index in at most two clicks', () => {
  const clicks = new Map([['README.md', 0]])
  for (const [page, count] of clicks)
    if (count < clicksMax && !page.startsWith('..'))
      for (const to of linksOf(page)) if (!clicks.has(to)) clicks.set(to, count + 1)
  for (const [job, [page, words]] of Object.entries(jobs)) {
    assert.ok(clicks.has(page), `${job}: ${page} is not found in ${clicksMax} clicks`)
    assert.match(read(page), words, job)
  }
})

test('issue 50: each job is in the table of jobs, which names its page', () => {
  const table = read('README.md').split('## By subject')[0]!
  assert.deepEqual(
    Object.values(jobs).filter(([page]) => !table.includes(`](${page})`)),
    [],
  )
})

/** Pages of the table of jobs that are reference, and so may be longer. */
const reference = ['servers.md', 'scaling.md', 'metrics.md', 'simulator.md', 'setup.md']

test('issue 50: a tutorial or how-to has at most 1,200 words of text', () => {
  const [table] = read('README.md').split('## By subject')
  const pages = [...table!.matchAll(/\]\(([\w-]+\.md)\)/g)].map(([, page]) => page!)
  const long = pages.filter((page) => {
    const words = read(page)
      .replace(/<!--[\s\S]*?-->/g, '')
      .split(/\s+/)
    return words.filter((word) => /[\p{L}\p{N}]/u.test(word)).length > wordsMax
  })
  assert.deepEqual(
    long.filter((page) => !reference.includes(page)),
    [],
  )
  assert.deepEqual(
    reference.filter((page) => !long.includes(page)),
    [],
    'a page that is short enough leaves the list',
  )
})
