/**
 * The first words of all commands of the table of operations, in its order, with their descriptions. The table itself
 * is loaded only if one of its commands is typed (test/cli/lazy.test.ts compares the two).
 */
export const tableCommands: Readonly<Record<string, string>> = {
  account: 'who pays: make, list, suspend and credit accounts',
  key: 'what clients authenticate with: make, list, revoke and rotate keys',
  person: 'people who use keys: bring in a list, rename, link and erase them',
  session: 'where people are signed in: list sessions, and end one',
  ledger: 'what was paid for what: list, show, sum, check and export entries',
  usage: 'what was used and what it cost: as a time series, or as a table of every row',
  statement: "show the statement of an account's month: balances, credits, use, and the entries that prove it",
  models: 'list the models that clients can name',
  status: 'tell how the server is: version, readiness, ledger, load',
  needs: 'list what an operator should act on now, the worst first, each with the act',
  clock: 'the clock that dates entries: confirm one that is in doubt',
  upstreams: 'show how each upstream account is: ready, or left alone for what and how long',
  upstream: 'an upstream of the running server: try it now, disable it, enable it again',
  requests:
    'list the last requests, those that failed too; older ones from the ledger, which has those that were billed',
  explain: 'tell why a request was answered as it was: attempts, losses, usage, price, settlement',
  webhooks: 'list the webhooks of the configuration, and the result of the last message',
  operator: 'who may operate over HTTP: make, list and revoke tokens',
  audit: 'list what was changed, by whom and from where, the newest first',
}
