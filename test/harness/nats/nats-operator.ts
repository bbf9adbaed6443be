import { nkeys } from '@nats-io/transport-node'

type Pair = ReturnType<typeof nkeys.createUser>

/** The configuration of servers that trust an operator, and the text of a credentials file of a user. */
export interface NatsOperator {
  lines: string
  /** Of a user of the account; `isForeign`: of another operator's. */
  issueCredentials(given?: { isForeign?: boolean }): string
}

const UNLIMITED = {
  ...{ subs: -1, data: -1, payload: -1, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 },
  ...{ mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 },
}

const seedOf = (pair: Pair) => new TextDecoder().decode(pair.getSeed())

/** A JWT of NATS, version 2 (github.com/nats-io/jwt): its signature is that of an nkey. */
function issue(issuer: Pair, given: { name: string; sub: string; nats: object }): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { jti: given.name, iat: 1_700_000_000, iss: issuer.getPublicKey(), ...given }
  const text = `${encode({ typ: 'JWT', alg: 'ed25519-nkey' })}.${encode(claims)}`
  return `${text}.${Buffer.from(issuer.sign(new TextEncoder().encode(text))).toString('base64url')}`
}

/** Makes an operator with an account for the service, and one for the system, which JetStream wants. */
export function createNatsOperator(): NatsOperator {
  const [operator, account, system, foreign] = [
    ...[nkeys.createOperator(), nkeys.createAccount(), nkeys.createAccount(), nkeys.createAccount()],
  ] as [Pair, Pair, Pair, Pair]
  const self = { sub: operator.getPublicKey(), nats: { type: 'operator', version: 2 } }
  const issueAccount = (pair: Pair, name: string) => {
    const limits =
      name === 'system' ? { ...UNLIMITED, mem_storage: 0, disk_storage: 0, streams: 0, consumer: 0 } : UNLIMITED
    const nats = { limits, default_permissions: { pub: {}, sub: {} }, type: 'account', version: 2 }
    return issue(operator, { name, sub: pair.getPublicKey(), nats })
  }
  const preload = [
    `${account.getPublicKey()}: ${issueAccount(account, 'service')}`,
    `${system.getPublicKey()}: ${issueAccount(system, 'system')}`,
  ]
  return {
    lines: [
      `operator: ${issue(operator, { name: 'operator', ...self })}`,
      `system_account: ${system.getPublicKey()}`,
      'resolver: MEMORY',
      `resolver_preload: { ${preload.join(', ')} }`,
    ].join('\n'),
    issueCredentials: ({ isForeign = false } = {}) => {
      const user = nkeys.createUser()
      const nats = { pub: {}, sub: {}, subs: -1, data: -1, payload: -1, type: 'user', version: 2 }
      const jwt = issue(isForeign ? foreign : account, { name: 'user', sub: user.getPublicKey(), nats })
      return [
        ...['-----BEGIN NATS USER JWT-----', jwt, '------END NATS USER JWT------', ''],
        ...['-----BEGIN USER NKEY SEED-----', seedOf(user), '------END USER NKEY SEED------', ''],
      ].join('\n')
    },
  }
}
