/** Words of the command line for the systems whose people and OAuth clients can be imported. */
export const PEOPLE_SOURCE_NAMES = ['supabase-auth', 'keycloak', 'logto'] as const
export type PeopleSourceName = (typeof PEOPLE_SOURCE_NAMES)[number]

/** The options of `signalbox import`. */
export interface ImportOptions {
  from: string
  tokenFile?: string
  only?: string[]
  organization?: string
  leaveOut?: string[]
  events?: string
  accounts?: string
  ignoreFilters: boolean
  apply: boolean
  dryRun: boolean
  json: boolean
  url?: string
}
