/**
 * The first words of all commands in the table of operations, in its order, with their descriptions. The table is
 * loaded only if one of its commands is typed (test/cli/lazy.test.ts compares this list with the table).
 */
export const tableCommands: Readonly<Record<string, string>> = {
  account: 'accounts, which pay for requests: make, list, suspend and credit them',
  key: 'keys, with which clients authenticate: make, list, revoke and rotate them',
  person: 'people who use keys: import, rename, link and erase them',
  session: 'sessions of people who have signed in: list them, and end one',
  ledger: 'the ledger of all credits and debits: list, show, sum, verify and export its entries',
  usage: 'show what was used and what it cost: as a time series, or as a table of all rows',
  statement: 'show the monthly statement of an account: balances, credits, use, and the entries that prove them',
  models: 'list the models that clients can use',
  status: 'show the state of the server: version, readiness, ledger and load',
  needs: 'list what an operator should do now, the most urgent first',
  clock: 'the clock that dates entries: confirm that it is right, if the gateway doubts it',
  upstreams: 'show the state of each upstream account; if an account is not used, also show why and for how long',
  upstream: 'an upstream of the running server: retry it, disable it, enable it again',
  requests:
    'list the last requests, including failed ones; older requests come from the ledger, which has only billed requests',
  explain:
    'explain the answer to a request: attempts, fields that were lost in translation, usage, price and settlement',
  webhooks: 'list the webhooks of the configuration, each with the result of its last message',
  operator: 'tokens of people who operate the gateway over HTTP: make, list and revoke them',
  audit: 'list changes, the newest first: what was changed, by whom, and from which address',
}
