/** Every page of an operator, by its address; of one account, key and request by their ids. */
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
