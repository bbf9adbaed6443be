import type { Schemas } from '@signalbox/client'

/** The scopes that an app may ask for, in the order of the page that asks the user. */
export const SCOPES: readonly Schemas['OauthScope'][] = [
  'openid',
  'profile',
  'email',
  'offline_access',
  'session:read',
  'account:read',
  'contract:read',
  'contract:write',
  'webhook:read',
  'webhook:write',
  'event:read',
  'event:publish',
]
