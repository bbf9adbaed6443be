import { createHmac } from 'node:crypto'
import { asFacts, type ProviderDeclaration } from './provider-declaration.ts'

/** The version of the Graph API. Facebook keeps one for about two years. */
const VERSION = 'v23.0'

/**
 * Facebook, by OAuth 2.0. A user may have no address or withhold it. Facebook has no claim about verification, and shares
 * an address only after the user has confirmed it, so a shared one counts as verified; `SOCIAL_FACEBOOK_TRUST_EMAIL=false`
 * does not rely on that.
 */
export const facebook: ProviderDeclaration = {
  label: 'Facebook',
  protocol: {
    kind: 'oauth',
    buildMetadata: (base) => ({
      issuer: base ?? 'https://www.facebook.com',
      authorization_endpoint: `${base ?? 'https://www.facebook.com'}/${VERSION}/dialog/oauth`,
      token_endpoint: `${base ?? 'https://graph.facebook.com'}/${VERSION}/oauth/access_token`,
    }),
    readFacts: async ({ read, base = 'https://graph.facebook.com', client, accessToken }) => {
      // Proves to the API that the token is used by the app it was issued to.
      const proof = createHmac('sha256', client.secret ?? '')
        .update(accessToken)
        .digest('hex')
      return asFacts(
        await read(`${base}/${VERSION}/me`, { fields: 'id,name,email,picture.type(large)', appsecret_proof: proof }),
      )
    },
  },
  scope: 'public_profile,email',
  needs: ['secret'],
  readProfile: (facts) => ({
    subject: facts.id,
    email: facts.email,
    isEmailVerified: typeof facts.email === 'string',
    name: facts.name,
    avatarUrl: asFacts(asFacts(facts.picture).data).url,
  }),
}
