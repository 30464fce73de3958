/*
 * What to do about an answer that is none, by its status. The gateway's own words come first; these say where to turn.
 */
const cures: Readonly<Record<number, string>> = {
  402: 'give the account credit: triwire account credit',
  403: 'ask whoever runs the gateway what this key may use',
  404: 'check --base-url, and the model against GET /v1/models',
  413: 'something before the gateway limits its bodies to a few kilobytes',
  429: 'wait a minute, or ask fewer models with --model',
}

/** What to do about a status, with the id under which the gateway's log has the request. */
export function cureFor(status: number, requestId: string | null): string {
  if (status >= 300 && status < 400) return 'name the address that it redirects to as --base-url'
  const logged = requestId ? `look for ${requestId} in the gateway's log` : 'look into the log of the server'
  return cures[status] ?? logged
}
