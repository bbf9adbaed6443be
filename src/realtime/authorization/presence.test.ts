import PusherServer from 'pusher'
import { describe, expect, test } from 'vitest'
import { openRealtime } from '../../../test/harness/app/realtime-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { buildLimits } from '../embedded/frame/limits.ts'

const PRESENCE = '/api/v3/realtime/realtime/presence-auth'
const SOCKET = '1234.5678'
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const UNKNOWN = '01890a5d-ac96-774b-bcce-b302099a8057'

const fixture = await openForFile(openRealtime())
const sdk = new PusherServer({ ...fixture.provider.app, cluster: 'eu', useTLS: true })
const own = await fixture.addAccount()
const foreign = await fixture.addAccount()
const member = await fixture.t.signInMember([own])

const ask = (channel: unknown, call = member.call) =>
  call('POST', PRESENCE, { socket_id: SOCKET, channel_name: channel })

/** The answer of the official SDK for the member. */
const oracle = (channel: string, name: string | null) =>
  sdk.authorizeChannel(SOCKET, channel, {
    user_id: member.userId,
    user_info: { name, since: new Date(fixture.t.clock.now()).toISOString() },
  })

describe('a member', () => {
  test('joins the presence channel of its account and of its contract: the answer is that of the official SDK', async () => {
    for (const channel of [`presence-account-${own}`, `presence-contract-${await fixture.addContract(own)}`]) {
      const answer = await ask(channel)
      expect([answer.status, answer.body]).toEqual([200, oracle(channel, null)])
      expect(answer.headers['cache-control']).toBe('no-store')
    }
    const form = `socket_id=${SOCKET}&channel_name=presence-account-${own}&x=y`
    expect((await member.call('POST', PRESENCE, form, FORM)).status).toBe(200)
  })

  test('is shown with its name, of any length and in any script', async () => {
    for (const name of ['Ann "A" O’Neil', '\u{1f600}'.repeat(100), '"'.repeat(200)]) {
      expect((await fixture.call('PATCH', `/api/v3/identity/user/${member.userId}`, { name })).status).toBe(200)
      const channel = `presence-account-${own}`
      const { body } = await ask(channel)
      expect(body).toEqual(oracle(channel, name))
      expect(Buffer.byteLength(body.channel_data)).toBeLessThanOrEqual(buildLimits().memberBytes)
    }
  })

  test('does not join the channel of another account, of an unknown one, or of a contract of another one', async () => {
    const other = await fixture.addContract(foreign)
    for (const channel of [
      `presence-account-${foreign}`,
      `presence-account-${UNKNOWN}`,
      `presence-contract-${UNKNOWN}`,
      `presence-contract-${other}`,
    ]) {
      const answer = await ask(channel)
      expect([answer.status, answer.body.code]).toEqual([403, 'permission_denied'])
    }
  })

  test('that loses the account is ended at the provider, as on a private channel', async () => {
    const user = await fixture.t.signInMember([own])
    expect((await ask(`presence-account-${own}`, user.call)).status).toBe(200)
    await fixture.call('DELETE', `/api/v3/identity/account/${own}/member`, { user: user.userId })
    fixture.t.clock.advance(50)
    await fixture.t.app.realtime.guard?.settled()
    expect(fixture.provider.terminated).toEqual([user.userId])
    expect((await ask(`presence-account-${own}`, user.call)).status).toBe(403)
  })
})

test('a caller without a token, or whose key leaves the permission out, is refused', async () => {
  expect((await ask(`presence-account-${own}`, fixture.t.anonymous)).status).toBe(401)
  const made = await fixture.call('POST', '/api/v3/identity/api-key', { name: 'narrow', permissions: ['contract:*'] })
  expect((await ask(`presence-account-${own}`, fixture.t.callAs(made.body.data.key))).status).toBe(403)
})

test.each<[string, unknown]>([
  ['a private channel', `private-account-${UNKNOWN}`],
  ['a presence cache channel', `presence-cache-account-${UNKNOWN}`],
  ['a UUID in upper case', `presence-account-${UNKNOWN.toUpperCase()}`],
  ['a trailing line break', `presence-account-${UNKNOWN}\n`],
  ['a prefix twice', `presence-private-account-${UNKNOWN}`],
  ['another resource', `presence-user-${UNKNOWN}`],
  ['a NUL', `presence-account-${UNKNOWN}\0`],
  ['half a surrogate pair', '\ud800'],
  ['a list', [`presence-account-${UNKNOWN}`]],
  ['a long name', `presence-account-${'x'.repeat(5_000)}`],
])('%s is refused before anything is signed', async (_what, channel) => {
  expect((await ask(channel)).status).toBeGreaterThanOrEqual(400)
  expect((await ask(channel)).status).toBeLessThan(500)
})

test('where realtime is not configured, the answer is that of an authorization', async () => {
  await using other = await openRealtime({ env: { INTEGRATION_REALTIME_APP_ID: '' } })
  const answer = await ask(`presence-account-${await other.addAccount()}`, other.call)
  expect([answer.status, answer.body.code]).toEqual([503, 'realtime_unavailable'])
})
