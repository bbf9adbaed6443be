import { describe, expect, test } from 'vitest'
import { REDIRECT_URI, readForm, startOauthFixture } from '../../../../test/harness/browser/oauth-service.ts'
import { buildVisitor as openBrowser } from '../../../../test/harness/browser/visitor.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
/** The strict limit of a minute, which the limits of strangers follow. */
const STRICT = 3
const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWWaWaWaWaWaW'

const env = { RATE_LIMIT_STRICT_PER_MINUTE: String(STRICT), TRUST_PROXY: 'loopback', OAUTH_REGISTRATION: 'true' }
const fixture = await openForFile(startOauthFixture({ env }))
const grants = ['authorization_code', 'refresh_token', DEVICE_GRANT]
const client = await fixture.client({ type: 'public', grant_types: grants })
const confidential = await fixture.client({ grant_types: grants })

let networks = 0
/** A wide network that no other test has. */
const newNetwork = () => {
  networks += 1
  return `10.8.${networks}`
}

const post = (path: string, form: Record<string, string>, address: string, headers: Record<string, string> = {}) =>
  fetch(`${fixture.issuer}/${path}`, {
    method: 'POST',
    headers: { 'x-forwarded-for': address, ...headers },
    body: new URLSearchParams(form),
  })
const REQUEST = {
  response_type: 'code',
  redirect_uri: REDIRECT_URI,
  scope: 'openid',
  code_challenge: CHALLENGE,
  code_challenge_method: 'S256',
}
const push = (address: string, more: Record<string, string> = {}) =>
  post('par', { ...REQUEST, client_id: client.id, ...more }, address)
const countRows = async (model: string) =>
  (await fixture.app.database.pool.query('select count(*) from oauth_state where model = $1', [model])).rows[0].count
const statusesOf = (answers: readonly Response[]) => answers.map(({ status }) => status).sort()

describe('pushed requests of a public client', () => {
  test('are as many of one network as its limit, also in parallel, and no row more is written', async () => {
    const [network, before] = [newNetwork(), await countRows('PushedAuthorizationRequest')]
    const answers = await Promise.all(Array.from({ length: 12 }, () => push(`${network}.1`)))
    expect(statusesOf(answers).filter((status) => status === 201)).toHaveLength(STRICT)
    const refused = answers.find(({ status }) => status !== 201)
    expect(await refused?.json()).toMatchObject({ error: 'temporarily_unavailable' })
    expect((await countRows('PushedAuthorizationRequest')) - before).toBe(STRICT)
    expect((await push(`${network}.2`)).status).toBe(201)
  })

  test('are as many of a wide network as its limit, which another one does not share', async () => {
    const network = newNetwork()
    const answers = []
    for (let host = 1; host <= 6; host += 1)
      for (let turn = 0; turn < STRICT; turn += 1) answers.push((await push(`${network}.${host}`)).status)
    expect(answers.filter((status) => status === 201)).toHaveLength(5 * STRICT)
    expect((await push(`${newNetwork()}.1`)).status).toBe(201)
  })

  test('of IPv6 count for their /64 and their /48', async () => {
    const of = (group: number, host: number) => push(`2001:db8:77:${group.toString(16)}::${host}`)
    const statuses = []
    for (let host = 1; host <= STRICT + 1; host += 1) statuses.push((await of(1, host)).status)
    expect(statuses.filter((status) => status === 201)).toHaveLength(STRICT)
    for (let group = 2; group <= 5; group += 1)
      for (let host = 1; host <= STRICT; host += 1) expect((await of(group, host)).status).toBe(201)
    expect((await of(6, 1)).status).not.toBe(201)
  })

  test('count until they expire, and their rows and places are gone with the next sweep', async () => {
    const address = `${newNetwork()}.1`
    for (let turn = 0; turn < STRICT; turn += 1) await push(address)
    expect((await push(address)).status).not.toBe(201)
    const { pool } = fixture.app.database
    await pool.query(`update stranger_row set expires_at = expires_at - interval '61 s'`)
    await pool.query(`update oauth_state set expires_at = expires_at - interval '61 s'`)
    expect((await push(address)).status).toBe(201)
    fixture.app.clock.set(Date.now())
    await fixture.app.app.maintenance.sweep()
    expect(await countRows('PushedAuthorizationRequest')).toBe(1)
    expect((await pool.query('select from stranger_row where kind like $1', ['Pushed%'])).rowCount).toBe(1)
  })

  test('are of a client as many as its limit, whatever the networks', async () => {
    const own = await fixture.client({ type: 'public' })
    const { pool } = fixture.app.database
    await pool.query(
      `insert into stranger_row (id, kind, network, wide_network, client, expires_at)
       select sha256(n::text::bytea), 'PushedAuthorizationRequest', sha256(n::text::bytea), sha256(n::text::bytea), $1,
         now() + interval '1 hour' from generate_series(1, $2) n`,
      [own.id, STRICT * 200 - 2],
    )
    const pushes = Array.from({ length: 8 }, () => post('par', { ...REQUEST, client_id: own.id }, `${newNetwork()}.1`))
    expect(statusesOf(await Promise.all(pushes)).filter((status) => status === 201)).toHaveLength(2)
    expect((await push(`${newNetwork()}.1`)).status).toBe(201)
  })

  test('are at most 8 KiB, as is every request to the provider', async () => {
    const before = await countRows('PushedAuthorizationRequest')
    const network = newNetwork()
    expect((await push(`${network}.1`, { state: 'x'.repeat(7_500) })).status).toBe(201)
    expect((await push(`${network}.1`, { state: 'x'.repeat(8_192) })).status).toBe(400)
    expect((await countRows('PushedAuthorizationRequest')) - before).toBe(1)
    const long = new URLSearchParams({ ...REQUEST, client_id: client.id, state: 'x'.repeat(8_192) })
    expect((await fetch(`${fixture.issuer}/authorize?${long}`, { redirect: 'manual' })).status).toBe(400)
    for (const path of ['authorize', 'token', 'device-authorization', 'device', 'introspect', 'revoke', 'end-session'])
      expect([path, (await post(path, { a: 'x'.repeat(8_192) }, `${newNetwork()}.1`)).status]).toEqual([path, 400])
    const json = { 'x-forwarded-for': `${newNetwork()}.1`, 'content-type': 'application/json' }
    for (const path of ['authorize', 'introspect', 'revoke']) {
      const sent = { method: 'POST', headers: json, body: '{}', redirect: 'manual' } as const
      const answer = await fetch(`${fixture.issuer}/${path}`, sent)
      expect([path, answer.status, await answer.json()]).toMatchObject([path, 400, { error: 'invalid_request' }])
    }
    const body = JSON.stringify({ redirect_uris: [REDIRECT_URI], client_name: 'x'.repeat(8_192) })
    expect((await fetch(`${fixture.issuer}/register`, { method: 'POST', headers: json, body })).status).toBe(400)
  })

  test('of a client that proves its secret are not limited by the network', async () => {
    const address = `${newNetwork()}.1`
    const authorization = `Basic ${Buffer.from(`${confidential.id}:${confidential.secret}`).toString('base64')}`
    for (let turn = 0; turn < 2 * STRICT; turn += 1)
      expect((await post('par', { ...REQUEST, client_id: confidential.id }, address, { authorization })).status).toBe(
        201,
      )
    const wrong = { authorization: `Basic ${Buffer.from(`${confidential.id}:wrong`).toString('base64')}` }
    expect((await post('par', { ...REQUEST, client_id: confidential.id }, address, wrong)).status).toBe(401)
  })
})

describe('authorizations of a browser without a sign-in', () => {
  const begin = (address: string) =>
    openBrowser().visit(`${fixture.issuer}/authorize?${new URLSearchParams({ ...REQUEST, client_id: client.id })}`, {
      headers: { 'x-forwarded-for': address },
    })

  test('are as many of one network as its limit, and beyond it the client is told', async () => {
    const [address, before] = [`${newNetwork()}.1`, await countRows('Interaction')]
    for (let turn = 0; turn < 10 * STRICT; turn += 1) expect((await begin(address)).status).toBe(303)
    const refused = await begin(address)
    expect(refused.headers.location).toContain('error=temporarily_unavailable')
    expect((await countRows('Interaction')) - before).toBe(10 * STRICT)
  })
})

describe('a device', () => {
  const begin = (address: string) => post('device-authorization', { client_id: client.id, scope: 'openid' }, address)
  const poll = (code: string) =>
    post('token', { grant_type: DEVICE_GRANT, client_id: client.id, device_code: code }, `${newNetwork()}.1`)

  test('begins as often as the limit of its network', async () => {
    const address = `${newNetwork()}.1`
    const answers = await Promise.all(Array.from({ length: 9 }, () => begin(address)))
    expect(statusesOf(answers).filter((status) => status === 200)).toHaveLength(STRICT)
  })

  test('that asks in parallel gets one authorization_pending, and slow_down for the others', async () => {
    const { device_code: code } = (await (await begin(`${newNetwork()}.1`)).json()) as { device_code: string }
    const answers = await Promise.all(Array.from({ length: 8 }, async () => (await poll(code)).json()))
    const errors = answers.map((answer) => (answer as { error: string }).error).sort()
    expect(errors).toEqual(['authorization_pending', ...Array(7).fill('slow_down')])
    expect(await (await poll(code)).json()).toMatchObject({ error: 'slow_down' })
    const { pool } = fixture.app.database
    await pool.query(`update oauth_state set polled_at = polled_at - interval '4 s' where polled_at is not null`)
    expect(await (await poll(code)).json()).toMatchObject({ error: 'authorization_pending' })
    expect(await (await poll(code)).json()).toMatchObject({ error: 'slow_down' })
  })

  test('is guessed at the strict limit of an address, however the path of the form is written', async () => {
    const address = `${newNetwork()}.1`
    const browser = openBrowser()
    const page = await browser.visit(`${fixture.issuer}/device`, {
      headers: { 'x-forwarded-for': `${newNetwork()}.1` },
    })
    const statuses = []
    for (const path of ['device', 'Device', 'device/', 'device?x=1', 'DEVICE/?']) {
      const form = { ...readForm(page.body, `${fixture.issuer}/device`), user_code: 'BBBB-BBBB' }
      const options = { method: 'POST', form, headers: { 'x-forwarded-for': address } }
      statuses.push((await browser.visit(`${fixture.issuer}/${path}`, options)).status)
    }
    expect(statuses.slice(0, STRICT)).not.toContain(429)
    expect(statuses.slice(STRICT)).toEqual([429, 429])
  })
})

test('a client that registered itself and that nobody used is deleted after a week, with its secret', async () => {
  const register = async (address: string) =>
    (
      await fetch(`${fixture.issuer}/register`, {
        method: 'POST',
        headers: { 'x-forwarded-for': address, 'content-type': 'application/json' },
        body: JSON.stringify({ redirect_uris: [REDIRECT_URI] }),
      })
    ).json() as Promise<{ client_id: string }>
  const network = newNetwork()
  const [unused, used, young] = [
    await register(`${network}.1`),
    await register(`${network}.2`),
    await register(`${network}.3`),
  ]
  const { pool } = fixture.app.database
  const week = 7 * 24 * 3_600_000
  const age = (id: string, ms: number) =>
    pool.query('update oauth_client set created_at = $2 where document_id = $1', [id, new Date(Date.now() - ms)])
  await age(unused.client_id, week + 60_000)
  await age(used.client_id, week + 60_000)
  await age(young.client_id, week - 600_000)
  await pool.query(
    `insert into oauth_grant (document_id, "user", client, scopes, refused_scopes, created_at, updated_at)
     values (gen_random_uuid(), $1, $2, '{openid}', '{}', now(), now())`,
    [fixture.app.adminId, used.client_id],
  )
  fixture.app.clock.set(Date.now())
  await fixture.app.app.maintenance.sweep()
  const { rows } = await pool.query(`select document_id from oauth_client where registration = 'dynamic'`)
  expect(rows.map((row) => row.document_id).sort()).toEqual([used.client_id, young.client_id].sort())
})
