/** The addresses of all pages of an operator, with the ids of one account, key and request. */
export function pagesOf({
  account,
  key,
  request,
}: {
  account?: string
  key?: string
  request?: string
} = {}): string[] {
  return [
    '',
    'finance',
    'requests',
    ...(request ? [`requests/${request}`] : []),
    'accounts',
    ...(account ? [`accounts/${account}`] : []),
    'keys',
    ...(key ? [`keys/${key}`] : []),
    'models',
    'models/reasoner',
    'upstreams',
    'upstreams/sim',
    'playground',
    'translate',
    'setup',
    'setup/claude-code',
    'webhooks',
    'audit',
    'operators',
  ]
}
