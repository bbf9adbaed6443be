import { isUuid } from '../../../../base/id.ts'
import { declareOpenId } from './generic-openid.ts'
import { isTrue, type ProviderFacts, type ReadProfile } from './provider-declaration.ts'

/**
 * Microsoft accounts and Entra ID, by OpenID Connect. The issuer of the common endpoint is a template with the tenant,
 * which `openid-client` fills from `tid`; `SOCIAL_MICROSOFT_ISSUER` limits it to one tenant. The administrator of any
 * tenant can set any `email`, so it counts as verified only with `xms_edov`, the verification of the domain owner.
 */
export const microsoft = declareOpenId('Microsoft', 'https://login.microsoftonline.com/common/v2.0', {
  parameters: { prompt: 'select_account' },
  needs: ['secret'],
  readProfile: readMicrosoftProfile,
})

function readMicrosoftProfile(facts: ProviderFacts): ReadProfile {
  const hasTenant = typeof facts.tid === 'string' && isUuid(facts.tid)
  return {
    // Pairwise for this registration; never the address or `preferred_username`, which change owners.
    subject: hasTenant ? facts.sub : undefined,
    email: facts.email,
    isEmailVerified: isTrue(facts.xms_edov),
    name: facts.name,
    avatarUrl: undefined,
  }
}
