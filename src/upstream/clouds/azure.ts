import type { AzureAccount } from '../../config/config.ts'
import {
  askSource,
  type CloudSource,
  type CloudToken,
  formOf,
  readMembers,
  readOAuth,
  readSource,
  type SourceAround,
  takeFirst,
} from './sources.ts'

const machineHosts = new Set(['169.254.169.254'])

/** The sources of a credential, in the order of use (learn.microsoft.com/entra/identity-platform, and msal 1.39). */
const azureSources: readonly CloudSource<AzureAccount>[] = [
  {
    name: 'client secret',
    applies: ({ secret, secretFile }, { env }) => !!(secret ?? secretFile ?? env['AZURE_CLIENT_SECRET']),
    take: async (account, around) => {
      const { secret, secretFile } = account
      const text = secretFile ? await readSource(secretFile, 'the file of the client secret') : secret?.reveal()
      return askEntra(
        account,
        { client_secret: (text ?? around.env['AZURE_CLIENT_SECRET']!).trim() },
        'client secret',
        around,
      )
    },
  },
  {
    name: 'workload identity',
    applies: (_, { env }) => !!env['AZURE_FEDERATED_TOKEN_FILE'],
    take: async (account, around) => {
      const assertion = await readSource(around.env['AZURE_FEDERATED_TOKEN_FILE']!, 'the federated token')
      const type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
      const fields = { client_assertion_type: type, client_assertion: assertion.trim() }
      return askEntra(account, fields, 'workload identity', around)
    },
  },
  {
    name: 'managed identity of the service',
    applies: (_, { env }) => !!env['IDENTITY_ENDPOINT'] && !!env['IDENTITY_HEADER'],
    take: ({ client, scope }, around) => {
      const { IDENTITY_ENDPOINT: address, IDENTITY_HEADER: word } = around.env
      const query = { 'api-version': '2019-08-01', resource: resourceOf(scope), ...(client && { client_id: client }) }
      const headers = { 'x-identity-header': word! }
      return askIdentity(`${address}?${new URLSearchParams(query)}`, headers, client, 'link', around)
    },
  },
  {
    name: 'managed identity of the machine',
    applies: () => true,
    take: ({ client, scope }, around) => {
      const query = { 'api-version': '2018-02-01', resource: resourceOf(scope), ...(client && { client_id: client }) }
      const address = `${machineOf(around)}/metadata/identity/oauth2/token?${new URLSearchParams(query)}`
      return askIdentity(address, { metadata: 'true' }, client, machineHosts, around)
    },
  },
]

/** Takes a token of Microsoft Entra. @throws Error in words for operators, without a secret */
export async function takeAzure(account: AzureAccount, around: SourceAround): Promise<CloudToken> {
  return (await takeFirst(azureSources, account, around))!
}

async function askEntra(
  { tenant, client, scope }: AzureAccount,
  proof: Record<string, string>,
  source: string,
  around: SourceAround,
): Promise<CloudToken> {
  const { env } = around
  const [of, as] = [tenant ?? env['AZURE_TENANT_ID'], client ?? env['AZURE_CLIENT_ID']]
  if (!of || !as) throw new Error('`tenant` and `client` are needed (or AZURE_TENANT_ID and AZURE_CLIENT_ID)')
  const authority = (env['AZURE_AUTHORITY_HOST'] || 'https://login.microsoftonline.com').replace(/\/+$/, '')
  const base = /^https?:\/\//.test(authority) ? authority : `https://${authority}`
  const form = formOf({ grant_type: 'client_credentials', client_id: as, scope, ...proof })
  const { text } = await askSource(around, `${base}/${encodeURIComponent(of)}/oauth2/v2.0/token`, form)
  const { bearer, lifeMs } = readOAuth(text, 'the answer of Entra')
  return { use: { bearer }, source, identity: `client ${as}`, lifeMs }
}

async function askIdentity(
  address: string,
  headers: Record<string, string>,
  client: string | undefined,
  metadata: typeof machineHosts | 'link',
  around: SourceAround,
): Promise<CloudToken> {
  const { text } = await askSource(around, address, { headers, metadata })
  const { bearer, lifeMs } = readManaged(text, around)
  const identity = client ? `client ${client}` : 'the identity of the machine'
  return { use: { bearer }, source: 'managed identity', identity, lifeMs }
}

/** App Service reports when a token expires (`expires_on`), in Unix seconds, but not always its lifetime. */
function readManaged(text: string, around: SourceAround): { bearer: string; lifeMs: number } {
  const where = 'the answer of the managed identity'
  const { expires_on: end, expires_in: life, ...rest } = readMembers(text, where, [])
  const seconds = life ?? Number(end) - Math.floor(around.nowMs() / 1_000)
  return readOAuth(JSON.stringify({ ...rest, expires_in: seconds }), where)
}

/** Returns the address of the metadata service. Azure's own libraries (azure-identity) read the same variable. */
function machineOf({ env }: SourceAround): string {
  return (env['AZURE_POD_IDENTITY_AUTHORITY_HOST'] || 'http://169.254.169.254').replace(/\/+$/, '')
}

function resourceOf(scope: string): string {
  return scope.replace(/\/\.default$/, '')
}
