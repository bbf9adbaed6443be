import { asFacts, type ProviderDeclaration } from './provider-declaration.ts'

/** Discord, by OAuth 2.0. `verified` speaks of the address; an account without one has none. */
export const discord: ProviderDeclaration = {
  label: 'Discord',
  protocol: {
    kind: 'oauth',
    buildMetadata: (base = 'https://discord.com') => ({
      issuer: base,
      authorization_endpoint: `${base}/oauth2/authorize`,
      token_endpoint: `${base}/api/oauth2/token`,
    }),
    readFacts: async ({ read, base = 'https://discord.com' }) => asFacts(await read(`${base}/api/users/@me`)),
  },
  scope: 'identify email',
  needs: ['secret'],
  readProfile: (facts) => ({
    subject: facts.id,
    email: facts.email,
    isEmailVerified: facts.verified === true,
    name: facts.global_name ?? facts.username,
    avatarUrl: readAvatar(facts.id, facts.avatar),
  }),
}

/** The profile has the hash of the picture, not its address. */
function readAvatar(id: unknown, hash: unknown): string | undefined {
  if (typeof id !== 'string' || typeof hash !== 'string' || !/^\w+$/.test(id + hash)) return undefined
  return `https://cdn.discordapp.com/avatars/${id}/${hash}.png`
}
