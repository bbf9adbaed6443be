import { declareOpenId } from './generic-openid.ts'

/** Google, by OpenID Connect. A user with several accounts chooses; Google would take the one that is signed in. */
export const google = declareOpenId('Google', 'https://accounts.google.com', {
  parameters: { prompt: 'select_account' },
  needs: ['secret'],
})
