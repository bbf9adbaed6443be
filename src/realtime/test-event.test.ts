import { describe, expect, test } from 'vitest'
import { expectProblem } from '../../test/contract/contract-fixture.ts'
import { createTestApp } from '../../test/harness/app/app.ts'
import { openRealtime } from '../../test/harness/app/realtime-app.ts'
import { openForFile } from '../../test/harness/run/open-for-file.ts'

const PUBLISH = '/api/v3/realtime/realtime/test-event'
const ID = '01997e2a-6c00-7000-8000-0000000000a1'
const CHANNEL = `private-account-${ID}`

const fixture = await openForFile(openRealtime())

const publish = (body: object) => fixture.t.admin('POST', PUBLISH, body)

describe('a test event', () => {
  test('is published once on its channel, and audited without its text', async () => {
    const before = fixture.provider.messages.length
    const answer = await publish({ channel_name: CHANNEL, text: 'hello' })
    expect(answer).toMatchObject({ status: 200, body: { data: { event: 'realtime.test', channel: CHANNEL } } })
    const sent = fixture.provider.messages.slice(before)
    expect(sent).toMatchObject([{ channel: CHANNEL, name: 'realtime.test' }])
    expect(JSON.parse(sent[0]?.data ?? '')).toEqual({
      type: 'realtime.test',
      created_at: new Date(fixture.t.clock.now()).toISOString(),
      data: { text: 'hello' },
    })
    const log = await fixture.call('GET', '/api/v3/audit/log?filters=action|eq|realtime.publish-test')
    expect(log.body.data).toMatchObject([{ outcome: 'success', detail: { channel: CHANNEL } }])
    expect(JSON.stringify(log.body)).not.toContain('hello')
  })

  test('of three calls at once is published three times', async () => {
    const before = fixture.provider.messages.length
    const answers = await Promise.all(['a', 'b', 'c'].map((text) => publish({ channel_name: CHANNEL, text })))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    const texts = fixture.provider.messages.slice(before).map(({ data }) => JSON.parse(data).data.text)
    expect(texts.sort()).toEqual(['a', 'b', 'c'])
  })

  test.each([
    ['no channel', {}, 'channel_name'],
    ['a public channel', { channel_name: 'news' }, 'channel_name'],
    ['a channel in capitals', { channel_name: CHANNEL.toUpperCase() }, 'channel_name'],
    ['a text of 1,001 characters', { channel_name: CHANNEL, text: 'x'.repeat(1_001) }, 'text'],
  ])('with %s is a 422 on it', async (_name, body, path) => {
    expect(expectProblem(await publish(body), 422, 'validation_failed').errors).toMatchObject([{ path }])
  })

  test('may have a text of 1,000 characters, of which each takes the most bytes', async () => {
    expect((await publish({ channel_name: CHANNEL, text: '\u0001'.repeat(1_000) })).status).toBe(200)
  })

  test('is a 503 when the provider does not take it', async () => {
    fixture.provider.behave({ kind: 'resets' })
    const problem = expectProblem(await publish({ channel_name: CHANNEL }), 503, 'dependency_unavailable')
    fixture.provider.behave({ kind: 'works' })
    expect(problem.detail).toContain('reset')
  })

  test('needs realtime:publish-test: neither realtime:inspect nor realtime:auth is enough', async () => {
    expectProblem(await fixture.t.anonymous('POST', PUBLISH, { channel_name: CHANNEL }), 401, 'unauthenticated')
    const key = (permissions: string[]) => fixture.call('POST', '/api/v3/identity/api-key', { name: 'k', permissions })
    const others = (await key(['realtime:inspect', 'realtime:auth'])).body.data.key
    const refused = await fixture.t.callAs(others)('POST', PUBLISH, { channel_name: CHANNEL })
    expect(expectProblem(refused, 403, 'permission_denied').detail).toContain('realtime:publish-test')
    const own = (await key(['realtime:publish-test'])).body.data.key
    expect((await fixture.t.callAs(own)('POST', PUBLISH, { channel_name: CHANNEL })).status).toBe(200)
  })

  test('is a 409 while INTEGRATION_REALTIME_TEST_EVENTS is off, and a 503 in log-only mode', async () => {
    await using off = await openRealtime({ env: { INTEGRATION_REALTIME_TEST_EVENTS: 'false' } })
    const problem = expectProblem(await off.t.admin('POST', PUBLISH, { channel_name: CHANNEL }), 409, 'conflict')
    expect(problem.detail).toContain('INTEGRATION_REALTIME_TEST_EVENTS')
    expect(off.provider.messages).toEqual([])
    await using silent = await createTestApp()
    expectProblem(await silent.admin('POST', PUBLISH, { channel_name: CHANNEL }), 503, 'realtime_unavailable')
  })
})
