import type { AccountId } from '../../../src/base/id.ts'
import { PERSONALITIES } from '../fakes/provider/personalities.ts'
import type { TestAnswer, TestCall } from './app.ts'
import { buildSocialUsers, createSocialApp, type SocialApp, type SocialAppOptions } from './social-app.ts'

/** The issuer of the fake provider of a company. */
const COMPANY_ISSUER = 'https://login.company.example/realms/staff'

/** The settings of a connection to that provider. */
export const COMPANY_OIDC = {
  issuer: COMPANY_ISSUER,
  client_id: PERSONALITIES.company.clientId,
  client_secret: PERSONALITIES.company.clientSecret,
}

/** The service with the provider of a company, and an account. */
export interface ConnectionApp extends SocialApp {
  /** TXT records, by name. */
  records: Map<string, string[]>
  makeAccount(name?: string): Promise<AccountId>
  findRole(name: string): Promise<string>
  /** Makes a connection of an account to the provider of the company. Returns its id. */
  connect(account: AccountId, settings?: object): Promise<string>
  /** Claims a domain and proves it by its record. Returns its id. */
  prove(account: AccountId, connection: string, domain: string): Promise<string>
  /** A user with a password and a verified address, who is a member of these accounts. */
  makeMember(email: string, accounts: AccountId[], roles?: string[]): Promise<string>
  /** The calls of a signed-in answer. */
  callOf(answer: TestAnswer): TestCall
}

export const PASSWORD = 'correct horse battery staple 7'

/** Starts the service with the fake providers. */
export async function createConnectionApp(options: SocialAppOptions = {}): Promise<ConnectionApp> {
  const records = new Map<string, string[]>()
  const social = await createSocialApp({ resolveTxt: async (name) => records.get(name) ?? [], ...options })
  const { app } = social
  const pathOf = (account: string, rest = '') => `/api/v3/identity/account/${account}${rest}`
  return {
    ...social,
    ...buildSocialUsers(app, social.fixture),
    records,
    makeAccount: async (name = 'Company') =>
      (await app.admin('POST', '/api/v3/identity/account', { name })).body.data.document_id,
    findRole: async (name) =>
      (await app.admin('GET', `/api/v3/identity/role?filters=name|eq|${name}`)).body.data[0].document_id,
    connect: async (account, settings = {}) => {
      const body = { kind: 'oidc', name: 'Company login', is_jit: true, oidc: COMPANY_OIDC, ...settings }
      const made = await app.admin('POST', pathOf(account, '/connection'), body)
      if (made.status !== 201) throw new Error(JSON.stringify(made.body))
      return made.body.data.document_id
    },
    prove: async (account, connection, domain) => {
      const path = pathOf(account, `/connection/${connection}/domain`)
      const { body } = await app.admin('POST', path, { domain })
      records.set(body.data.record_name, ['other', body.data.record_value])
      const proven = await app.admin('POST', `${path}/${body.data.document_id}/verify`)
      if (proven.status !== 200) throw new Error(JSON.stringify(proven.body))
      return body.data.document_id
    },
    makeMember: async (email, accounts, roles = []) => {
      const user = (await app.admin('POST', '/api/v3/identity/user', { email, password: PASSWORD })).body.data
        .document_id
      await app.database.db
        .updateTable('user')
        .set({ email_verified_at: new Date(app.clock.now()) })
        .where('document_id', '=', user)
        .execute()
      for (const account of accounts) {
        const added = await app.admin('POST', pathOf(account, '/member'), { user, roles })
        if (added.status !== 201) throw new Error(JSON.stringify(added.body))
      }
      return user
    },
    callOf: (answer) => app.callAs(answer.body.data.jwt),
  }
}
