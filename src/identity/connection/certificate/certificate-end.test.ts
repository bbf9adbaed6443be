import pino from 'pino'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestApp } from '../../../../test/harness/app/app.ts'
import { COMPANY_OIDC } from '../../../../test/harness/app/connection-app.ts'
import { createSamlKey } from '../../../../test/harness/fakes/saml-idp/saml-key.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { FACTS_LIFETIME_MS } from '../../../operations/health/webhook-out.ts'
import { countCertificateEnds, listCertificateEnds } from './certificate-end.store.ts'

const DAY_MS = 86_400_000
/** Longer than the facts are kept. */
const STEP_MS = 60_000
const ACCOUNT = '/api/v3/identity/account'
const LINE = 'certificates of connections end: see docs/operations.md, certificates of connections'

const lines: { msg: string; ending?: number; ended?: number; connections?: object[] }[] = []
let domains = 0

const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
const app = await openForFile(createTestApp({ logger }))
const startMs = Math.floor(app.clock.now() / 1_000) * 1_000
/** Certificates that end in 14 days, and in a year. */
const [near, far] = await Promise.all([
  certificateUntil(startMs + 14 * DAY_MS),
  certificateUntil(startMs + 365 * DAY_MS),
])

beforeEach(async () => {
  await app.database.pool.query('delete from connection')
  app.clock.set(startMs)
})

async function certificateUntil(endMs: number): Promise<string> {
  const notBefore = new Date('2020-01-01')
  return (await createSamlKey({ notBefore, notAfter: new Date(endMs) })).certificate
}

const makeAccount = async (): Promise<string> =>
  (await app.admin('POST', ACCOUNT, { name: 'Corp' })).body.data.document_id

interface Made {
  account: string
  connection: string
  path: string
}

/** A connection of a new account, with a proven domain unless `isProven` is false. */
async function connect(certificates: string[], { isProven = true } = {}): Promise<Made> {
  const account = await makeAccount()
  const saml = { idp_entity_id: 'https://idp.corp.example', sso_url: 'https://idp.corp.example/sso', certificates }
  const made = await app.admin('POST', `${ACCOUNT}/${account}/connection`, { kind: 'saml', name: 'Corp', saml })
  expect(made.status, JSON.stringify(made.body)).toBe(201)
  const connection: string = made.body.data.document_id
  const path = `${ACCOUNT}/${account}/connection/${connection}`
  domains += 1
  const claimed = await app.admin('POST', `${path}/domain`, { domain: `corp${domains}.example` })
  if (isProven) await app.admin('POST', `${path}/domain/${claimed.body.data.document_id}/approve`)
  return { account, connection, path }
}

/** The component, read anew: times of the test are exact. */
async function read(atMs: number) {
  app.clock.set(atMs - FACTS_LIFETIME_MS)
  await app.anonymous('GET', '/api/v3/health/component/connections')
  app.clock.set(atMs)
  return (await app.anonymous('GET', '/api/v3/health/component/connections')).body.data
}

const dueAt = async (atMs: number) => {
  const { status, details } = await read(atMs)
  return [status, details.certificates_ending, details.certificates_ended]
}

describe('the health of connections', () => {
  test('is degraded from 14 days before the end of a certificate, and after it', async () => {
    await connect([near])
    expect(await dueAt(startMs - 1)).toEqual(['operational', 0, 0])
    expect((await read(startMs - 1)).details.remedy).toBeNull()
    expect(await dueAt(startMs)).toEqual(['degraded', 1, 0])
    expect((await read(startMs)).details.remedy).toContain('docs/operations.md, certificates of connections')
    expect(await dueAt(startMs + 14 * DAY_MS - 1)).toEqual(['degraded', 1, 0])
    expect(await dueAt(startMs + 14 * DAY_MS)).toEqual(['degraded', 0, 1])
    expect((await app.anonymous('GET', '/api/v3/health')).body.data.status).toBe('degraded')
  })

  test('goes by the last certificate of a connection, and by a change of them', async () => {
    const { path } = await connect([near, far])
    expect(await dueAt(startMs)).toEqual(['operational', 0, 0])
    await app.admin('PATCH', path, { saml: { certificates: [near] } })
    expect(await dueAt(startMs + STEP_MS)).toEqual(['degraded', 1, 0])
    await app.admin('PATCH', path, { saml: { email_attribute: 'mail' } })
    expect(await dueAt(startMs + 2 * STEP_MS)).toEqual(['degraded', 1, 0])
    await app.admin('PATCH', path, { saml: { certificates: [far, near] } })
    expect(await dueAt(startMs + 3 * STEP_MS)).toEqual(['operational', 0, 0])
  })

  test('regards connections in use alone: enabled, with a proven domain, of an account that exists', async () => {
    const [disabled, deleted, orphaned, unclaimed] = [
      await connect([near]),
      await connect([near]),
      await connect([near]),
      await connect([near]),
    ]
    await connect([near], { isProven: false })
    const account = await makeAccount()
    await app.admin('POST', `${ACCOUNT}/${account}/connection`, { kind: 'oidc', name: 'Other', oidc: COMPANY_OIDC })
    expect(await dueAt(startMs)).toEqual(['degraded', 4, 0])
    await app.admin('PATCH', disabled.path, { is_enabled: false })
    expect(await dueAt(startMs + STEP_MS)).toEqual(['degraded', 3, 0])
    await app.admin('DELETE', deleted.path)
    expect(await dueAt(startMs + 2 * STEP_MS)).toEqual(['degraded', 2, 0])
    await app.admin('DELETE', `${ACCOUNT}/${orphaned.account}`)
    expect(await dueAt(startMs + 3 * STEP_MS)).toEqual(['degraded', 1, 0])
    const [domain] = (await app.admin('GET', `${unclaimed.path}/domain`)).body.data
    await app.admin('DELETE', `${unclaimed.path}/domain/${domain.document_id}`)
    expect(await dueAt(startMs + 4 * STEP_MS)).toEqual(['operational', 0, 0])
    await app.admin('PATCH', disabled.path, { is_enabled: true })
    expect(await dueAt(startMs + 5 * STEP_MS)).toEqual(['degraded', 1, 0])
  })

  test('says nothing of the accounts: it is public', async () => {
    const { account, connection } = await connect([near])
    const text = JSON.stringify(await read(startMs))
    for (const id of [account, connection]) expect(text).not.toContain(id)
  })

  test('counts as many as asked, and names the nearest', async () => {
    const soon = await certificateUntil(startMs + DAY_MS)
    const made = [await connect([near]), await connect([soon])]
    const { db } = app.database
    const range = { now: new Date(startMs), until: new Date(startMs + 14 * DAY_MS), scanned: 1 }
    expect(await countCertificateEnds(db, range)).toEqual({ ending: 1, ended: 0 })
    const nearest = await listCertificateEnds(db, { ...range, scanned: 10, limit: 1 })
    expect(nearest).toEqual([
      { connection: made[1]?.connection, account: made[1]?.account, endsAt: new Date(startMs + DAY_MS) },
    ])
  })
})

test('the metric counts the connections by state', async () => {
  const series = async (atMs: number) => {
    app.clock.set(atMs)
    const { body } = await app.scrape()
    return (body as string).split('\n').filter((line) => line.startsWith('connection_certificates{'))
  }
  await connect([near])
  await connect([near])
  expect(await series(startMs)).toEqual([
    'connection_certificates{state="ending"} 2',
    'connection_certificates{state="ended"} 0',
  ])
  expect(await series(startMs + 15 * DAY_MS)).toEqual([
    'connection_certificates{state="ending"} 0',
    'connection_certificates{state="ended"} 2',
  ])
})

test('one incident for all connections begins and ends, and a line names them', async () => {
  const { alertWorker } = app.app
  const listOpen = async () =>
    (
      await app.database.pool.query(
        "select subject, resolved_at is null as is_open from alert_incident where incident = 'certificate-ending'",
      )
    ).rows
  lines.length = 0
  const shown = () => lines.filter(({ msg }) => msg === LINE)
  await alertWorker.check()
  expect([await listOpen(), shown()]).toEqual([[], []])
  const { account, connection, path } = await connect([near])
  const other = await connect([near])
  await alertWorker.check()
  await alertWorker.check()
  expect(await listOpen()).toEqual([{ subject: 'connections', is_open: true }])
  const ends_at = new Date(startMs + 14 * DAY_MS).toISOString()
  expect(shown()).toMatchObject([
    {
      ...{ ending: 2, ended: 0 },
      connections: [
        { account, connection, ends_at },
        { account: other.account, connection: other.connection, ends_at },
      ],
    },
  ])
  app.clock.advance(300_000)
  for (const connected of [path, other.path]) await app.admin('PATCH', connected, { saml: { certificates: [far] } })
  await alertWorker.check()
  expect(await listOpen()).toEqual([{ subject: 'connections', is_open: false }])
})

test('the line comes once a day', async () => {
  await connect([near])
  app.clock.advance(DAY_MS)
  lines.length = 0
  const { alertWorker } = app.app
  const shown = () => lines.filter(({ msg }) => msg === LINE)
  await alertWorker.check()
  expect(shown()).toHaveLength(1)
  app.clock.advance(DAY_MS - 1)
  await alertWorker.check()
  expect(shown()).toHaveLength(1)
  app.clock.advance(1)
  await alertWorker.check()
  expect(shown()).toHaveLength(2)
})

test('a certificate whose end is no time is refused', async () => {
  const der = Buffer.from(far.replace(/-----[^-]+-----|\s/g, ''), 'base64')
  // The second UTCTime is the end: tag 0x17, 13 characters. The 13th month.
  const at = der.indexOf(Buffer.from([0x17, 0x0d]), der.indexOf(Buffer.from([0x17, 0x0d])) + 1)
  expect(at).toBeGreaterThan(0)
  der.write('991399999999Z', at + 2, 'latin1')
  const account = await makeAccount()
  const saml = { idp_entity_id: 'x', sso_url: 'https://idp.corp.example/sso', certificates: [der.toString('base64')] }
  const answer = await app.admin('POST', `${ACCOUNT}/${account}/connection`, { kind: 'saml', name: 'Corp', saml })
  expect(answer).toMatchObject({
    status: 422,
    body: { errors: [{ path: 'saml.certificates.0', code: 'not_a_certificate' }] },
  })
})
