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
    take: (account, around) => {
      const { IDENTITY_ENDPOINT: address, IDENTITY_HEADER: word } = around.env
      const asked = { headers: { 'x-identity-header': word! }, metadata: 'link' } as const
      return askIdentity(address!, '2019-08-01', asked, account, around)
    },
  },
  {
    name: 'managed identity of the machine',
    applies: () => true,
    take: (account, around) => {
      const asked = { headers: { metadata: 'true' }, metadata: machineHosts }
      return askIdentity(`${machineOf(around)}/metadata/identity/oauth2/token`, '2018-02-01', asked, account, around)
    },
  },
]

/** Takes a token of Microsoft Entra. @throws Error in words for operators, without a secret */
export async function takeAzure(account: AzureAccount, around: SourceAround): Promise<CloudToken> {
  return (await takeFirst(azureSources, account, around))!
}

async function askEntra(
  account: AzureAccount,
  proof: Record<string, string>,
  source: string,
  around: SourceAround,
): Promise<CloudToken> {
  const { env } = around
  const [of, as] = [account.tenant ?? env['AZURE_TENANT_ID'], clientOf(account, around)]
  if (!of || !as) throw new Error('`tenant` and `client` are needed (or AZURE_TENANT_ID and AZURE_CLIENT_ID)')
  const authority = (env['AZURE_AUTHORITY_HOST'] || 'https://login.microsoftonline.com').replace(/\/+$/, '')
  const base = /^https?:\/\//.test(authority) ? authority : `https://${authority}`
  const form = formOf({ grant_type: 'client_credentials', client_id: as, scope: account.scope, ...proof })
  const { text } = await askSource(around, `${base}/${encodeURIComponent(of)}/oauth2/v2.0/token`, form)
  const { bearer, lifeMs } = readOAuth(text, 'the answer of Entra')
  return { use: { bearer }, source, identity: `client ${as}`, lifeMs }
}

async function askIdentity(
  address: string,
  version: string,
  asked: Parameters<typeof askSource>[2],
  account: AzureAccount,
  around: SourceAround,
): Promise<CloudToken> {
  const client = clientOf(account, around)
  const query = { 'api-version': version, resource: resourceOf(account.scope), ...(client && { client_id: client }) }
  const { text } = await askSource(around, `${address}?${new URLSearchParams(query)}`, asked)
  const { bearer, lifeMs } = readManaged(text, around)
  const identity = client ? `client ${client}` : 'the identity of the machine'
  return { use: { bearer }, source: 'managed identity', identity, lifeMs }
}

/** Returns the id of the application, or of the managed identity if a machine has several. */
function clientOf({ client }: AzureAccount, { env }: SourceAround): string | undefined {
  return client ?? env['AZURE_CLIENT_ID']
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
