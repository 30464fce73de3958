import type { Setting } from './peer.ts'

/** Sets the peer up as its first operator: a provider, a route from our model to the provider's, and a key. @returns the key */
export async function setUpRouter({ port, origin, secret }: Setting): Promise<string> {
  let cookie = ''
  await post('setup/initialize', { password: `${secret}X!` })
  const provider = await post('providers', {
    name: 'bench',
    api_key: 'upstream-key',
    is_active: 1,
    endpoints: [{ api_type: 'openai', base_url: origin, api_key: 'upstream-key' }],
    models: [{ name: 'upstream-model', capabilities: ['text', 'image'] }],
  })
  const targets = [{ backend_model: 'upstream-model', provider_id: provider['id'] }]
  await post('mapping-groups', { client_model: 'bench', rule: JSON.stringify({ targets }) })
  return String((await post('router-keys', { name: 'bench' }))['key'])

  async function post(what: string, body: object): Promise<Record<string, unknown>> {
    const answer = await fetch(`http://127.0.0.1:${port}/admin/api/${what}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', cookie },
      body: JSON.stringify(body),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${what}: ${answer.status} ${text}`)
    cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? cookie
    return (JSON.parse(text) as { data?: Record<string, unknown> }).data ?? {}
  }
}
