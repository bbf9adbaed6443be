import type { Keyring } from '../../../base/keyring.ts'
import type { Random } from '../../../base/random.ts'
import { completeAt, startAt } from '../../engine/embedded/embedded-engine.ts'
import {
  type EnabledProvider,
  isTrue,
  type ProviderFacts,
  readStandardClaims,
} from '../../engine/embedded/provider/provider-declaration.ts'
import { buildServerCache, type ProviderServerDeps } from '../../engine/embedded/provider-server.ts'
import type { Engine } from '../../engine/engine.ts'
import type { SignInConnection } from '../connection.store.ts'
import { connectionSecretContextOf } from '../connection.ts'

/** Maximum number of groups of one person, and length of a name: the platform does not control the provider. */
const GROUPS_LIMIT = 1_000
const GROUP_NAME_LIMIT = 256

/** Longest age of an ID token: it is issued for the code, which is redeemed at once. */
const TOKEN_AGE_SECONDS = 600

/** Dependencies of sign-ins at OpenID providers of accounts. */
export interface OidcConnectionDeps extends ProviderServerDeps {
  keyring: Pick<Keyring, 'open'>
  random: Random
}

/** Builds the engines of OpenID connections (docs/contract/connections.md#openid-provider), with PKCE and a nonce. */
export function buildOidcConnections(deps: OidcConnectionDeps): (connection: SignInConnection) => Engine {
  const findServer = buildServerCache(deps)
  return (connection) => {
    const provider = describeProvider(deps, connection)
    return {
      listProviders: () => [{ name: connection.id, label: connection.name, leavesToken: false }],
      start: (input) => startAt({ random: deps.random, findServer }, provider, input),
      complete: (input) => completeAt(findServer, provider, input),
    }
  }
}

function describeProvider({ keyring }: OidcConnectionDeps, connection: SignInConnection): EnabledProvider {
  const { id, issuer, clientId, scopes, groupsClaim, isEmailTrusted, secretEncrypted } = connection
  if (issuer === null || clientId === null || scopes === null || secretEncrypted === null)
    throw new Error('an OpenID connection has its issuer and its client')
  return {
    // A changed connection is another provider, so that no process uses old endpoints.
    name: `${id} ${connection.updatedAt.getTime()}`,
    client: { id: clientId, secret: keyring.open(secretEncrypted, connectionSecretContextOf(id)) },
    isEmailTrusted: true,
    declaration: {
      label: connection.name,
      protocol: { kind: 'openid', issuer },
      scope: scopes.join(' '),
      needs: [],
      tokenAgeSeconds: TOKEN_AGE_SECONDS,
      readProfile: (facts) => ({
        ...readStandardClaims(facts),
        isEmailVerified:
          isTrue(facts.email_verified) || (isEmailTrusted === true && facts.email_verified === undefined),
      }),
      ...(groupsClaim !== null && { groupsClaim, readGroups: (facts) => readGroups(facts, groupsClaim) }),
    },
  }
}

/** The names in a claim: a list, or one name. Anything else is ignored. Pure. */
export function readGroups(facts: ProviderFacts, claim: string): string[] {
  const value = Object.hasOwn(facts, claim) ? facts[claim] : undefined
  const list: readonly unknown[] = Array.isArray(value) ? value.slice(0, GROUPS_LIMIT) : [value]
  const names = list.filter((name): name is string => typeof name === 'string' && name !== '')
  return [...new Set(names.filter((name) => name.length <= GROUP_NAME_LIMIT))]
}
