import { asFacts, type ProviderDeclaration, type ProviderFacts } from './provider-declaration.ts'

/** GitHub, by OAuth 2.0. `/user/emails` says what is verified. `SOCIAL_GITHUB_ISSUER` names an Enterprise Server. */
export const github: ProviderDeclaration = {
  label: 'GitHub',
  protocol: {
    kind: 'oauth',
    buildMetadata: (base = 'https://github.com') => ({
      issuer: `${base}/login/oauth`,
      authorization_endpoint: `${base}/login/oauth/authorize`,
      token_endpoint: `${base}/login/oauth/access_token`,
    }),
    readFacts: async ({ read, base }) => {
      const api = base === undefined ? 'https://api.github.com' : `${base}/api/v3`
      const user = asFacts(await read(`${api}/user`))
      return { ...user, emails: await read(`${api}/user/emails`) }
    },
  },
  scope: 'read:user user:email',
  needs: ['secret'],
  readProfile: (facts) => {
    const email = findPrimary(facts.emails)
    return {
      // A number: the login can be renamed and then taken by another user.
      subject: typeof facts.id === 'number' ? String(facts.id) : undefined,
      email: email?.email,
      isEmailVerified: email?.verified === true,
      name: facts.name ?? facts.login,
      avatarUrl: facts.avatar_url,
    }
  },
}

function findPrimary(emails: unknown): ProviderFacts | undefined {
  return Array.isArray(emails) ? emails.map(asFacts).find((item) => item.primary === true) : undefined
}
