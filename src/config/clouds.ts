import { z } from 'zod'
import { filled, oneOf, text } from '../catalog/kinds.ts'
import type { SigningPlace } from '../clouds/sigv4.ts'
import * as field from './fields.ts'

/* Settings of accounts that use a cloud's credentials, not a key. AWS host names usually contain region and service. */

const regionCure = 'must be a region such as eu-central-1'

const aws = z.strictObject({
  region: text(regionCure)
    .regex(/^[a-z]{2,4}(?:-[a-z]+)+-\d$/, { error: regionCure })
    .optional()
    .describe(
      'The AWS region. Default: the region in the host of `base_url`, or else `AWS_REGION` or `AWS_DEFAULT_REGION`.',
    ),
  service: text()
    .regex(/^[a-z][a-z0-9-]*$/, { error: 'must be the name of a service such as bedrock' })
    .optional()
    .describe("The AWS service that requests are signed for. Needed only if the host of `base_url` is not AWS's."),
  profile: filled('must be the name of a profile')
    .optional()
    .describe(
      "The name of a profile in AWS's shared configuration files. Default: credentials from the environment, or else from the machine.",
    ),
  role: text()
    .regex(/^arn:[\w-]+:iam::\d{12}:role\/.+$/, { error: 'must be the ARN of a role, arn:aws:iam::ACCOUNT:role/NAME' })
    .optional()
    .describe('The ARN of a role that the gateway assumes with these credentials.'),
  external_id: filled('must not be empty').optional().describe('The external id that the role requires.'),
  session_name: text()
    .regex(/^[\w+=,.@-]{2,64}$/, { error: 'must be 2 to 64 letters, digits and +=,.@-_' })
    .optional()
    .describe("The name of the role's session in the logs of AWS. Default: triwire."),
  sign: oneOf(['request', 'bearer'])
    .prefault('request')
    .describe(
      'How requests are authenticated. `request`: each request is signed. `bearer`: the gateway makes a short-term key of Bedrock and sends it with each request.',
    ),
})

const google = z.strictObject({
  credentials_file: field.filePath
    .optional()
    .describe(
      'A JSON file with a service account or a workload identity federation. Default: the file that `GOOGLE_APPLICATION_CREDENTIALS` names, or else the metadata server.',
    ),
})

const azureScope = 'https://ai.azure.com/.default'

const azure = z
  .strictObject({
    tenant: filled('must be the id of a tenant').optional().describe("The tenant's id. Default: `AZURE_TENANT_ID`."),
    client: filled('must be the id of an application')
      .optional()
      .describe("The application's id. Default: `AZURE_CLIENT_ID`."),
    secret: filled('must not be empty')
      .optional()
      .describe('The secret of the application. Use `secret_file` instead to keep it out of this file.'),
    secret_file: field.filePath
      .optional()
      .describe(
        'A file with the secret, which is read again for each token. Default: `AZURE_CLIENT_SECRET`, or else `AZURE_FEDERATED_TOKEN_FILE`, or else the managed identity.',
      ),
    scope: text()
      .regex(/^(?:https|api):\/\/\S+\/\.default$/, { error: `must end in /.default, such as ${azureScope}` })
      .prefault(azureScope)
      .describe('The scope of the token. Older resources need `https://cognitiveservices.azure.com/.default`.'),
  })
  .superRefine(({ secret, secret_file: file }, context) => {
    if (secret !== undefined && file !== undefined)
      field.complain(context, 'is set beside `secret`: leave one out', ['secret_file'])
  })

/** The settings by which an account uses a cloud's credentials. Each of them replaces the account's key. */
export const cloudKeys = {
  aws: aws
    .optional()
    .describe("Credentials of AWS instead of a key: from these settings and AWS's own environment variables."),
  google: google.optional().describe('Tokens of Google instead of a key.'),
  azure: azure.optional().describe('Tokens of Microsoft Entra instead of a key.'),
}

export type CloudEntries = { [Name in keyof typeof cloudKeys]?: z.output<(typeof cloudKeys)[Name]> | undefined }

/** For each service name in AWS's hosts, its name in signatures (botocore 1.44.8, Anthropic's SDKs, November 2026). */
const services = new Map([
  ['bedrock-runtime', 'bedrock'],
  ['bedrock-mantle', 'bedrock-mantle'],
  ['aws-external-anthropic', 'aws-external-anthropic'],
])

const awsHost = new RegExp(
  `(?:^|\\.)(${[...services.keys()].join('|')})(?:-fips)?\\.([a-z]{2,4}(?:-[a-z]+)+-\\d)\\.(?:vpce\\.)?(?:amazonaws\\.(?:com(?:\\.cn)?|eu)|api\\.aws)$`,
)

/** The domains of regions in China and in the European Sovereign Cloud, by the first part of the region. */
const domains = new Map([
  ['cn', 'amazonaws.com.cn'],
  ['eusc', 'amazonaws.eu'],
])

/** Returns the domain of AWS's hosts in a region. */
export function awsDomainOf(region: string): string {
  return domains.get(region.slice(0, region.indexOf('-'))) ?? 'amazonaws.com'
}

/** Returns region and service from the host of an upstream. Undefined if the host is not one of AWS's. */
function placeOf(baseUrl: string): SigningPlace | undefined {
  const [, name, region] = awsHost.exec(new URL(baseUrl).hostname) ?? []
  return name === undefined ? undefined : { service: services.get(name)!, region: region! }
}

type Environment = Readonly<Record<string, string | undefined>>

/** Returns the region in the variables of AWS's own tools. */
export function regionOf(env: Environment): string | undefined {
  return env['AWS_REGION'] || env['AWS_DEFAULT_REGION'] || undefined
}

/** Returns region and service for the signatures of an account. `placeMistakes` must have checked them. */
export function placeFor(
  baseUrl: string,
  { region, service }: { [Key in keyof SigningPlace]?: string | undefined },
  env: Environment,
): SigningPlace {
  const host = placeOf(baseUrl)
  return { region: region ?? host?.region ?? regionOf(env) ?? '', service: service ?? host?.service ?? '' }
}

/**
 * Finds AWS accounts without a region or service, and regions that differ from the region in the upstream's host name.
 */
export function* placeMistakes(
  upstreams: Readonly<Record<string, { base_url: string; accounts: readonly CloudEntries[] }>>,
  env: Environment,
): Iterable<{ path: PropertyKey[]; message: string }> {
  for (const [name, { base_url: baseUrl, accounts }] of Object.entries(upstreams))
    for (const [index, { aws: entry }] of accounts.entries()) {
      if (!entry) continue
      const path = ['upstreams', name, 'accounts', index, 'aws']
      const place = placeFor(baseUrl, entry, env)
      const own = placeOf(baseUrl)?.region
      const cure = 'is missing: it is needed, because the host of `base_url` does not name it'
      if (place.region === '') yield { path: [...path, 'region'], message: `${cure}, nor does AWS_REGION` }
      if (place.service === '') yield { path: [...path, 'service'], message: cure }
      if (own !== undefined && own !== place.region)
        yield {
          path: [...path, 'region'],
          message: `is another one than in the host of \`base_url\`, which says ${own}: leave it out, or change the host`,
        }
    }
}
