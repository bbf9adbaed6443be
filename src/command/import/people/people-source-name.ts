/** Words of the command line for the systems whose people and OAuth clients can be imported. */
export const PEOPLE_SOURCE_NAMES = ['supabase-auth', 'keycloak', 'logto'] as const
export type PeopleSourceName = (typeof PEOPLE_SOURCE_NAMES)[number]
