import type { Foreign } from './foreign.ts'

/** Reads the API of a source, one answer at a time. */
export interface SourceApi {
  /** The parsed JSON of `GET <base><path>`. Throws a `FatalError`. */
  get(path: string, query?: Readonly<Record<string, string>>): Promise<unknown>
}

export interface SourceChoice {
  /** Ids of the applications, projects or tenants to import; all that the source lists without one. */
  only: readonly string[]
  /** The organization of a Hook0 service. */
  organization: string | undefined
}

/** An application, a project or a tenant: becomes an account. */
export interface Tenant {
  id: string
  name: string | undefined
}

/** A rule of an endpoint that a webhook here does not have, or cannot take over; a word and what it was. */
export interface Hindrance {
  code:
    | 'narrower_filter'
    | 'authentication'
    | 'method'
    | 'content_type'
    | 'malformed'
    | 'header_unreadable'
    | 'not_http'
  detail: string
}

/** An endpoint of another system: becomes a webhook. */
export interface Endpoint {
  id: string
  url: string
  name: string | undefined
  description: string | undefined
  isDisabled: boolean
  /** Names of event types; `all` without a filter. */
  eventTypes: readonly string[] | 'all'
  /** The present secret, as the source shows it; undefined when it shows none. */
  secret: string | undefined
  headers: ReadonlyMap<string, string>
  /** Its limit of attempts a second; null for none. */
  maxPerSecond: number | null
  /** Reason for which it cannot be imported as it is. */
  hindrances: readonly Hindrance[]
  /** Parts of the webhook left out without harm, in words. */
  notes: readonly string[]
}

/** Words of the command line for the systems whose webhooks can be imported. */
export const SOURCE_NAMES = ['svix', 'convoy', 'outpost', 'hook0'] as const
export type SourceName = (typeof SOURCE_NAMES)[number]

/** A system whose webhooks can be imported. */
export interface Source {
  name: SourceName
  /** Changes that its receivers need, for the report. */
  signature: string
  readTenant(row: Foreign): Tenant
  /** The id of an endpoint, from a row as it is listed. */
  readEndpointId(row: Foreign): string
  /** An endpoint from a row to which `complete` has added. */
  readEndpoint(row: Foreign): Endpoint
  listTenants(api: SourceApi, choice: SourceChoice): AsyncGenerator<Foreign>
  listEndpoints(api: SourceApi, tenant: Tenant): AsyncGenerator<Foreign>
  /** Adds to a listed row what the source answers elsewhere. Called only for endpoints that are not imported yet. */
  complete?(api: SourceApi, tenant: Tenant, row: Foreign): Promise<Foreign>
}
