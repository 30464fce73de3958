/*
 * The token requests of Google's and Microsoft's JavaScript libraries for the settings of `tokens.py`, and the tokens that
 * google-auth-library and jsonwebtoken verify. Nothing is sent. A library gets a client of HTTP that notes requests.
 *
 * With IDENTITY_ENDPOINT in the environment, the requests are those for the managed identity of a service. Libraries remember the
 * first answer of their process, so each of them gets a process of its own.
 *
 *     node scripts/clouds/javascript.mjs google-auth-library|@azure/msal-node|@azure/identity FOLDER
 *     node scripts/clouds/javascript.mjs jwts FOLDER PUBLIC-KEY < TOKENS
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const [what, folder, keyFile] = process.argv.slice(2)
const require = createRequire(join(folder, 'x'))
const scopes = ['https://ai.azure.com/.default']
const [clientId, tenant] = ['the-client', 'the-tenant']
const ofService = process.env['IDENTITY_ENDPOINT'] && 'managed identity of the service'
const login = `https://login.microsoftonline.com/${tenant}`

function show(name, { method, url, body, headers }) {
  const { pathname: path, searchParams } = new URL(url)
  const text = `${body ?? ''}`
  const fields = text.startsWith('{') ? JSON.parse(text) : Object.fromEntries(new URLSearchParams(text))
  const small = Object.fromEntries(Object.entries(headers).map(([header, value]) => [header.toLowerCase(), `${value}`]))
  const about = path.endsWith('generateAccessToken') ? `${name} impersonation` : name
  const query = Object.fromEntries(searchParams)
  console.log(JSON.stringify({ name: about, method, path, query, fields, headers: small }))
}

const answer = {
  ...{ access_token: 't', expires_in: 3_600, token_type: 'Bearer', expires_on: 4_070_908_800, resource: 'r' },
  ...{ accessToken: 't', expireTime: '2099-01-01T00:00:00Z' },
}
const discovery = {
  token_endpoint: `${login}/oauth2/v2.0/token`,
  ...{ authorization_endpoint: `${login}/a`, issuer: `${login}/v2.0`, jwks_uri: `${login}/k` },
  ...{ tenant_discovery_endpoint: `${login}/v2.0/.well-known/openid-configuration`, metadata: [] },
}
const isDiscovery = (url) => /openid-configuration|discovery\/instance/.test(`${url}`)

async function showGoogle() {
  const { GoogleAuth } = require('google-auth-library')
  const { Gaxios } = require('gaxios')
  for (const [name, type, file] of [
    ['service account', 'service_account', 'service-account.json'],
    ['federation', 'external_account', 'external-account.json'],
  ]) {
    // The library gives its own client no other one for the exchange of a token.
    Gaxios.prototype.request = async ({ url, method, data, headers }) => {
      const body = data instanceof URLSearchParams ? data : JSON.stringify(data)
      show(name, { method, url, body, headers: Object.fromEntries(new Headers(headers)) })
      return { data: answer }
    }
    const auth = new GoogleAuth({ scopes: ['https://www.googleapis.com/auth/cloud-platform'] })
    const client = auth.fromJSON(JSON.parse(readFileSync(join(folder, file), 'utf8')), { type })
    client.scopes = auth.scopes
    await client.getAccessToken()
  }
}

async function showMsal() {
  const { ConfidentialClientApplication, ManagedIdentityApplication } = require('@azure/msal-node')
  const networkOf = (name) => {
    const ask = (method) => async (url, options) => {
      if (!isDiscovery(url)) show(name, { method, url, body: options?.body, headers: options?.headers ?? {} })
      return { status: 200, headers: {}, body: isDiscovery(url) ? discovery : answer }
    }
    return { sendGetRequestAsync: ask('GET'), sendPostRequestAsync: ask('POST') }
  }
  if (ofService) return showManaged(ofService)
  for (const [name, credential] of [
    ['client secret', { clientSecret: 'the-secret' }],
    ['workload identity', { clientAssertion: async () => 'federated-word' }],
  ]) {
    const app = new ConfidentialClientApplication({
      auth: { clientId, authority: login, ...credential },
      system: { networkClient: networkOf(name) },
    })
    await app.acquireTokenByClientCredential({ scopes })
  }
  await showManaged('managed identity of the machine')

  async function showManaged(name) {
    const app = new ManagedIdentityApplication({
      managedIdentityIdParams: { userAssignedClientId: clientId },
      system: { networkClient: networkOf(name) },
    })
    await app.acquireToken({ resource: 'https://ai.azure.com' })
  }
}

async function showIdentity() {
  const identity = require('@azure/identity')
  const { createHttpHeaders } = require('@azure/core-rest-pipeline')
  const httpOf = (name) => ({
    async sendRequest(request) {
      const { url, method, body } = request
      const isProbe = !request.headers.has('metadata') && url.includes('169.254.169.254')
      if (!isDiscovery(url) && !isProbe) show(name, { method, url, body, headers: request.headers.toJSON() })
      const bodyAsText = JSON.stringify(isDiscovery(url) ? discovery : answer)
      return {
        status: isProbe ? 400 : 200,
        headers: createHttpHeaders({ 'content-type': 'application/json' }),
        bodyAsText,
        request,
      }
    },
  })
  const of = (name) => ({ httpClient: httpOf(name) })
  const showManaged = (name) => new identity.ManagedIdentityCredential({ clientId, ...of(name) }).getToken(scopes)
  if (ofService) return showManaged(ofService)
  await new identity.ClientSecretCredential(tenant, clientId, 'the-secret', of('client secret')).getToken(scopes)
  const tokenFilePath = join(folder, 'federated')
  const workload = { tenantId: tenant, clientId, tokenFilePath, ...of('workload identity') }
  await new identity.WorkloadIdentityCredential(workload).getToken(scopes)
  await showManaged('managed identity of the machine')
}

/** Prints the header and the claims of each token. */
async function verifyTokens() {
  const { OAuth2Client } = require('google-auth-library')
  const { verify } = require('jsonwebtoken')
  const key = readFileSync(keyFile, 'utf8')
  const client = new OAuth2Client()
  for (const token of readFileSync(0, 'utf8').trim().split('\n')) {
    const { header, payload } = verify(token, key, { algorithms: ['RS256'], complete: true })
    const ticket = await client.verifySignedJwtWithCertsAsync(token, { [header.kid]: key }, payload.aud, [payload.iss])
    console.log(JSON.stringify([ticket.getEnvelope(), ticket.getPayload()]))
    if (JSON.stringify(ticket.getPayload()) !== JSON.stringify(payload)) throw new Error('the two read another token')
  }
}

const parts = {
  'google-auth-library': showGoogle,
  '@azure/msal-node': showMsal,
  '@azure/identity': showIdentity,
  jwts: verifyTokens,
}
await parts[what]()
