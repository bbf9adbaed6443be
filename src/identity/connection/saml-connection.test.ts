import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../../test/harness/app/app.ts'
import { SILENT } from '../../../test/harness/fakes/provider/fake-provider.ts'
import { startProviderFixture } from '../../../test/harness/fakes/provider/provider-fixture.ts'
import { buildFakeIdp } from '../../../test/harness/fakes/saml-idp/fake-idp.ts'
import { createSamlKey } from '../../../test/harness/fakes/saml-idp/saml-key.ts'
import { importMetadata } from './saml/settings/import-metadata.ts'

/** The provider of the tests speaks plain HTTP on the loopback, which only development allows. */
const DEVELOPMENT = { APP_ENV: 'development' }

const keys = await Promise.all([createSamlKey(), createSamlKey()])
const pemOf = (at: number) => keys[at]?.certificate ?? ''

async function makeAccount(app: TestApp): Promise<string> {
  return (await app.admin('POST', '/api/v3/identity/account', { name: 'Corp' })).body.data.document_id
}
const pathOf = (account: string) => `/api/v3/identity/account/${account}/connection`
const samlOf = (change: object = {}) => ({
  idp_entity_id: 'https://idp.corp.example/saml',
  sso_url: 'https://idp.corp.example/sso?tenant=7',
  certificates: [pemOf(0)],
  ...change,
})

describe('a SAML connection', () => {
  test('shows its settings, the URLs of the service, and its certificates with their ends', async () => {
    await using app = await createTestApp()
    const account = await makeAccount(app)
    const body = { kind: 'saml', name: 'Corp', saml: samlOf({ certificates: [pemOf(0), pemOf(1), pemOf(0)] }) }
    const created = await app.admin('POST', pathOf(account), body)
    expect(created.status).toBe(201)
    const id = created.body.data.document_id
    expect(created.body.data).toMatchObject({ kind: 'saml', oidc: null })
    expect(created.body.data.saml).toEqual({
      idp_entity_id: 'https://idp.corp.example/saml',
      sso_url: 'https://idp.corp.example/sso?tenant=7',
      certificates: [0, 1].map(() => ({
        pem: expect.stringMatching(/^-----BEGIN CERTIFICATE-----\n/),
        fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/),
        not_before: '2026-01-01T00:00:00.000Z',
        not_after: expect.stringMatching(/^203\d-/),
      })),
      email_attribute: null,
      name_attribute: null,
      groups_attribute: null,
      metadata_path: `/api/v3/auth/login/saml/${id}/metadata`,
      acs_path: `/api/v3/auth/login/saml/${id}/acs`,
    })
    const change = { saml: { email_attribute: 'mail', groups_attribute: 'memberOf', certificates: [pemOf(1)] } }
    const changed = await app.admin('PATCH', `${pathOf(account)}/${id}`, change)
    expect(changed.body.data.saml).toMatchObject({
      idp_entity_id: 'https://idp.corp.example/saml',
      email_attribute: 'mail',
      groups_attribute: 'memberOf',
      certificates: [created.body.data.saml.certificates[1]],
    })
    expect((await app.admin('GET', `${pathOf(account)}/${id}`)).body.data).toEqual(changed.body.data)
    expect((await app.admin('PATCH', `${pathOf(account)}/${id}`, change)).body.message).toBe('Connection unchanged.')
  })

  test('refuses settings with the field and the rule', async () => {
    await using app = await createTestApp()
    const account = await makeAccount(app)
    const create = (body: object) => app.admin('POST', pathOf(account), { kind: 'saml', name: 'Corp', ...body })
    const small = await createSamlKey({ bits: 1024 })
    for (const [path, code, body] of [
      ['saml', 'required', {}],
      ['oidc', 'not_allowed', { saml: samlOf(), oidc: { issuer: 'https://x', client_id: 'x', client_secret: 'x' } }],
      ['saml.sso_url', 'url_invalid', { saml: samlOf({ sso_url: 'idp.corp.example' }) }],
      ['saml.sso_url', 'url_not_https', { saml: samlOf({ sso_url: 'javascript:alert(1)//https://x' }) }],
      ['saml.sso_url', 'url_not_https', { saml: samlOf({ sso_url: 'data:text/html,x' }) }],
      ['saml.sso_url', 'url_invalid', { saml: samlOf({ sso_url: 'https://a:b@idp.corp.example/' }) }],
      ['saml.certificates.1', 'not_pem', { saml: samlOf({ certificates: [pemOf(0), 'x!'] }) }],
      ['saml.certificates.0', 'key_size', { saml: samlOf({ certificates: [small.certificate] }) }],
    ] as const) {
      const answer = await create(body)
      expect(answer, JSON.stringify(body).slice(0, 80)).toMatchObject({
        status: 422,
        body: { errors: [{ path, code }] },
      })
    }
    for (const saml of [
      samlOf({ certificates: [] }),
      samlOf({ certificates: Array.from({ length: 5 }, () => pemOf(0)) }),
      samlOf({ idp_entity_id: 'x'.repeat(1_025) }),
      samlOf({ email_attribute: 'a b' }),
      { ...samlOf(), more: 1 },
    ])
      expect((await create({ saml })).status).toBe(422)
    const oidc = { issuer: 'https://login.corp.example', client_id: 'x', client_secret: 'y' }
    const other = await app.admin('POST', pathOf(account), { kind: 'oidc', name: 'x', oidc })
    const asked = await app.admin('PATCH', `${pathOf(account)}/${other.body.data.document_id}`, { saml: samlOf() })
    expect(asked).toMatchObject({ status: 422, body: { errors: [{ path: 'saml', code: 'not_allowed' }] } })
  })
})

describe('the metadata of a provider', () => {
  const read = (app: TestApp, account: string, body: object) =>
    app.admin('POST', `${pathOf(account)}/saml-metadata`, body)

  test('is read to settings that make a connection, and nothing is stored', async () => {
    await using app = await createTestApp()
    const idp = await buildFakeIdp({ origin: 'https://idp.corp.example', now: () => new Date(app.clock.now()) })
    const account = await makeAccount(app)
    const answer = await read(app, account, { metadata: idp.metadata })
    expect(answer.body.data).toMatchObject({ idp_entity_id: idp.entityId, sso_url: idp.ssoUrl })
    const { idp_entity_id, sso_url, certificates } = answer.body.data
    const saml = { idp_entity_id, sso_url, certificates: certificates.map(({ pem }: { pem: string }) => pem) }
    expect((await app.admin('POST', pathOf(account), { kind: 'saml', name: 'Corp', saml })).status).toBe(201)
  })

  test('is refused with what is wrong with it', async () => {
    await using app = await createTestApp()
    const account = await makeAccount(app)
    for (const [code, body] of [
      ['required', {}],
      ['required', { metadata: '<a/>', metadata_url: 'https://idp.corp.example' }],
      ['not_metadata', { metadata: '<a/>' }],
      ['declaration_not_allowed', { metadata: '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>' }],
      ['too_large', { metadata: `<a>${'\u00e9'.repeat(70_000)}</a>` }],
      ['not_read', { metadata_url: 'https://127.0.0.1/metadata' }],
      ['not_read', { metadata_url: 'https://metadata.google.internal/' }],
      ['not_read', { metadata_url: 'file:///etc/passwd' }],
    ] as const)
      expect(await read(app, account, body), code).toMatchObject({ status: 422, body: { errors: [{ code }] } })
    const large = await read(app, account, { metadata: 'x'.repeat(1_048_576) })
    expect([413, 422]).toContain(large.status)
  })

  test('of a provider that never answers, or nests without end, ends by a limit', async () => {
    await using impatient = await startProviderFixture(() => 0, { timeoutMs: 300 })
    await using patient = await startProviderFixture(() => 0)
    const metadata_url = 'https://login.company.example/metadata'
    for (const [code, reply] of [
      ['not_read', SILENT],
      ['not_read', { status: 302, body: '', headers: { location: `${patient.fakes.company.origin}/moved` } }],
      ['too_deep', { status: 200, body: '<a>'.repeat(40_000) }],
      ['too_many_elements', { status: 200, body: `<a>${'<a/>'.repeat(30_000)}</a>` }],
    ] as const) {
      const providers = reply === SILENT ? impatient : patient
      providers.fakes.company.replies.set('/metadata', reply)
      const refused = importMetadata({ fetch: providers.fetch }, { metadata_url, now: new Date() })
      await expect(refused).rejects.toMatchObject({ errors: [{ path: 'metadata_url', code }] })
    }
    expect(patient.fakes.company.calls).toHaveLength(3)
    expect(patient.fakes.company.calls).not.toContain('/moved')
  })

  test('is fetched by the rules of callbacks, without redirects, up to a limit', async () => {
    let answer: (url: string) => { status: number; body: string; location?: string } = () => ({ status: 200, body: '' })
    const server = createServer((request, response) => {
      const { status, body, location } = answer(request.url ?? '')
      response.writeHead(status, location ? { location } : {}).end(body)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    try {
      await using app = await createTestApp({
        env: { ...DEVELOPMENT, WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${port}` },
      })
      const idp = await buildFakeIdp({ origin: 'https://idp.corp.example', now: () => new Date(app.clock.now()) })
      const account = await makeAccount(app)
      const url = `http://127.0.0.1:${port}/metadata`
      answer = () => ({ status: 200, body: idp.metadata })
      expect((await read(app, account, { metadata_url: url })).body.data.idp_entity_id).toBe(idp.entityId)
      for (const given of [
        { status: 302, body: '', location: 'http://169.254.169.254/' },
        { status: 500, body: idp.metadata },
        { status: 200, body: ' '.repeat(131_073) },
        { status: 200, body: ' '.repeat(1_048_576) },
      ]) {
        answer = () => given
        const refused = await read(app, account, { metadata_url: url })
        expect(refused).toMatchObject({ status: 422, body: { errors: [{ path: 'metadata_url', code: 'not_read' }] } })
        expect(JSON.stringify(refused.body)).not.toContain('169.254')
      }
    } finally {
      server.close()
    }
  })
})
