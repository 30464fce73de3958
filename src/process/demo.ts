import { createBooks } from '../accounts/books.ts'
import { parseCredits } from '../accounts/credit.ts'
import { openStore } from '../store/sqlite/store.ts'

const demoAccount = 'demo'
const demoCredit = '10'

/** What a start with the built-in catalog found or made: the demo account's new key, or none where there are accounts. */
export type Demo = { key: string | undefined }

/** Makes the demo account in a store that has no account yet; only ever on a first start. @throws StoreError */
export async function createDemo(storePath: string): Promise<Demo> {
  const store = openStore(storePath)
  const books = createBooks(store, Date.now)
  try {
    if ((await books.listAccounts()).length > 0) return { key: undefined }
    await books.createAccount(demoAccount, parseCredits(demoCredit))
    const { key } = await books.createKey(demoAccount)
    return { key }
  } finally {
    store.close()
  }
}

/** What the start says on stdout: the key, shown this once, with a call on each wire that works when pasted. */
export function sayDemo({ key }: Demo, base: string): string {
  const models = 'the built-in simulator answers for sim-messages, sim-chat, sim-responses and more (GET /v1/models).'
  if (key === undefined) {
    const program = programName()
    return [
      `No configuration names a model: ${models}`,
      `Make a key: ${program} key create ${demoAccount}   (accounts: ${program} account list)`,
    ].join('\n')
  }
  const question = [{ role: 'user', content: 'Hello!' }]
  return [
    `No configuration names a model: ${models}`,
    `A demo account with ${demoCredit} credits was made. Its key is shown this once:`,
    '',
    `  ${key}`,
    '',
    'Try it, one call on each wire:',
    '',
    curl(`${base}/v1/messages`, key, { model: 'sim-messages', max_tokens: 200, messages: question }),
    curl(`${base}/v1/chat/completions`, key, { model: 'sim-chat', messages: question }),
    curl(`${base}/v1/responses`, key, { model: 'sim-responses', input: 'Hello!' }),
  ].join('\n')
}

/** What people type to reach this program: npm says so to those it runs. */
function programName(): string {
  return process.env['npm_command'] === undefined ? 'triwire' : 'npx triwire'
}

function curl(url: string, key: string, body: object): string {
  return `curl -s ${url} -H 'authorization: Bearer ${key}' -H 'content-type: application/json' -d '${JSON.stringify(body)}'`
}
