import type { Schemas } from '@signalbox/client'
import { checkRedirects, readRedirects } from './redirect-checks.ts'

type App = Schemas['OauthClient']

/** The steps of a new app, in the order of the URL. */
export const STEPS = ['type', 'redirects', 'scopes', 'review'] as const
export type Step = (typeof STEPS)[number]

/** The grant types that an app may use, in the words of the protocol. */
export const GRANT_TYPES: readonly App['grant_types'][number][] = [
  'authorization_code',
  'refresh_token',
  'urn:ietf:params:oauth:grant-type:device_code',
]

/** Input of a new app. */
export interface AppDraft {
  name: string
  type: Schemas['CreateOauthClient']['type']
  applicationType: App['application_type']
  redirects: string
  scopes: Schemas['OauthScope'][]
  grants: App['grant_types']
}

export const EMPTY_APP: AppDraft = {
  name: '',
  type: 'confidential',
  applicationType: 'web',
  redirects: '',
  scopes: ['openid', 'profile', 'email'],
  grants: ['authorization_code', 'refresh_token'],
}

/** The first step that lacks something; none behind it may be opened. Pure. */
export function findMissing({ name, redirects, applicationType, scopes, grants }: AppDraft): Step | undefined {
  if (name.trim() === '') return 'type'
  const checked = checkRedirects(redirects, applicationType)
  const needsOne = grants.includes('authorization_code')
  if (checked.some(({ isRefused }) => isRefused) || (needsOne && checked.length === 0)) return 'redirects'
  return scopes.length === 0 || grants.every((grant) => grant === 'refresh_token') ? 'scopes' : undefined
}

/** The draft as the API takes it. Pure. */
export function toAppBody(draft: AppDraft): Schemas['CreateOauthClient'] {
  const { name, type, applicationType, redirects, scopes, grants } = draft
  return {
    name: name.trim(),
    type,
    application_type: applicationType,
    redirect_uris: readRedirects(redirects),
    scopes,
    grant_types: grants,
  }
}
