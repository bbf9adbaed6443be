/** Ids of rows that exist, by the kind of row. */
export type SeededIds = Readonly<
  Record<
    | 'account'
    | 'apiKey'
    | 'connection'
    | 'contract'
    | 'dispatch'
    | 'event'
    | 'oauthClient'
    | 'eventType'
    | 'provisioningDelivery'
    | 'provisioningJob'
    | 'provisioningTarget'
    | 'replayJob'
    | 'role'
    | 'session'
    | 'subscription'
    | 'user'
    | 'webhook',
    string
  >
>

/** How often a generated request names a row that exists. Else it names any id, which finds nothing. */
const PROBABILITY = 0.8

/** The statuses with which a request may be refused that breaks its schema: those of the program, and ours by size. */
const REFUSALS = [400, 401, 403, 404, 405, 406, 409, 415, 422, 428, 429, 431]

/** Sequences of linked calls: a creation, then what follows on its id. */
const STATEFUL_EXAMPLES = 100

/** Which rows the id of a path names, by the part of the path before it. */
const PATHS: Readonly<Record<string, keyof SeededIds>> = {
  '/api/v3/contract/contract': 'contract',
  '/api/v3/identity/account': 'account',
  '/api/v3/identity/api-key': 'apiKey',
  '/api/v3/identity/role': 'role',
  '/api/v3/identity/session': 'session',
  '/api/v3/identity/user': 'user',
  '/api/v3/oauth/client': 'oauthClient',
  '/api/v3/provisioning/delivery': 'provisioningDelivery',
  '/api/v3/provisioning/job': 'provisioningJob',
  '/api/v3/provisioning/target': 'provisioningTarget',
  '/api/v3/webhook/dashboard/webhook': 'webhook',
  '/api/v3/webhook/dispatch': 'dispatch',
  '/api/v3/webhook/event': 'eventType',
  '/api/v3/webhook/event-occurrence': 'event',
  '/api/v3/webhook/replay-job': 'replayJob',
  '/api/v3/webhook/webhook': 'webhook',
  '/api/v3/webhook/webhook-event': 'subscription',
}

/** Paths with the name of a provider: the one that development always has. */
const PROVIDER_PATHS = ['/api/v3/auth/login/oauth', '/api/v3/identity/identity/link']
const PROVIDER = 'dev'

/** Paths with the id of a SAML connection. */
const CONNECTION_PATHS = ['/api/v3/auth/login/saml']

/** Members of bodies that name rows. */
const BODIES: Readonly<Record<string, keyof SeededIds>> = {
  'body.account': 'account',
  'body.event': 'eventType',
  'body.events[*]': 'eventType',
  'body.user': 'user',
  'body.webhook': 'webhook',
}

/**
 * The configuration of a run: generated requests name seeded rows, so that operations succeed and not only refuse.
 * Deletions name none of them: what one test case deleted, no other could read; they follow links from creations.
 */
export function renderSchemathesisConfig(ids: SeededIds, sinkUrl: string): string {
  const dictionaries = Object.entries({ ...ids, sinkUrl, provider: PROVIDER }).map(
    ([name, value]) => `[dictionaries.${name}]\nvalues = [${quote(value)}]`,
  )
  const bind = (dictionary: string) => `{ dictionary = ${quote(dictionary)}, probability = ${PROBABILITY} }`
  const bodies = Object.entries({ ...BODIES, 'body.url': 'sinkUrl' }).map(
    ([member, dictionary]) => `${quote(member)} = ${bind(dictionary)}`,
  )
  const paths = Object.entries(PATHS).map(([path, dictionary]) => {
    const pattern = `^${path.replaceAll('/', '\\/')}\\/\\{id\\}`
    const scope = `include-path-regex = ${quote(pattern)}\nexclude-method = ["DELETE"]`
    return `[[operations]]\n${scope}\nparameters = { "path.id" = ${bind(dictionary)} }`
  })
  const bindNamed = (parameter: 'provider' | 'connection') => (path: string) => {
    const pattern = `^${path.replaceAll('/', '\\/')}\\/\\{${parameter}\\}`
    return `[[operations]]\ninclude-path-regex = ${quote(pattern)}\nparameters = { "path.${parameter}" = ${bind(parameter)} }`
  }
  const named = [...PROVIDER_PATHS.map(bindNamed('provider')), ...CONNECTION_PATHS.map(bindNamed('connection'))]
  // A body that fits its schema may still break a rule that no schema says: an unknown account, a name that is taken.
  // A request that breaks its schema is refused by the schema, or before it by its size, its media type or the state of its row.
  const checks = `[checks]\npositive_data_acceptance = { enabled = false }\nnegative_data_rejection = { expected-statuses = ${JSON.stringify(REFUSALS)} }`
  const phases = `[phases.stateful.generation]\nmax-examples = ${STATEFUL_EXAMPLES}`
  return [checks, phases, ...dictionaries, `[parameters]\n${bodies.join('\n')}`, ...paths, ...named, ''].join('\n\n')
}

/** A basic string of TOML; its escapes are those of JSON. */
function quote(text: string): string {
  return JSON.stringify(text)
}
