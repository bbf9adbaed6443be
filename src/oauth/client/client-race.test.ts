import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { openFlow } from '../../../test/harness/browser/oauth-flow.ts'
import { openBrowser, startOauthFixture } from '../../../test/harness/browser/oauth-service.ts'
import { type Barrier, race } from '../../../test/harness/plan/race.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const CLIENTS = '/api/v3/oauth/client'

/** Two processes on one database. */
const fixture = await openForFile(startOauthFixture())
const { database, clock } = fixture.app
const other = await openForFile(createTestApp({ database, clock, env: { APP_ENV: 'development' } }))

const holdClient = (id: string): Barrier => ({
  text: 'select from oauth_client where document_id = $1 for update',
  values: [id],
})

async function countOf(text: string, id: string): Promise<number> {
  return Number((await fixture.app.database.pool.query(text, [id])).rows[0].count)
}

test('secrets of a client that are added at once are never more than the limit', async () => {
  const { id } = await fixture.client()
  const calls = [fixture.app.admin, other.admin]
  const requests = Array.from(
    { length: 6 },
    (_, index) => () => calls[index % 2]!('POST', `${CLIENTS}/${id}/rotate-secret`, {}),
  )
  const answers = await race(fixture.app.database, holdClient(id), requests)
  // One that it was made with, and four more.
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 409, 409])
  expect(await countOf('select count(*) from oauth_client_secret where client = $1', id)).toBe(5)
})

describe('a first-party client that changes while a user signs in to it', () => {
  /** A client that one user uses, another user in a browser, and the request that is to be granted without a question. */
  async function prepare() {
    const client = await fixture.client({ first_party: true })
    const flow = await openFlow(fixture, client)
    const first = await fixture.user()
    await flow.begin(openBrowser(), { user: first, decision: 'stop' })
    const browser = openBrowser()
    await fixture.walk(browser, `${fixture.baseUrl}/auth/sign-in`, { user: await fixture.user() })
    const { url } = await flow.prepare()
    const hold: Barrier = {
      text: 'select from oauth_grant where client = $1 for update',
      values: [client.id],
    }
    return { client, hold, authorize: () => fixture.walk(browser, url, { decision: 'stop' }) }
  }

  test('gets no grant once it is deleted', async () => {
    const { client, hold, authorize } = await prepare()
    const remove = async () => ({
      status: (await other.admin('DELETE', `${CLIENTS}/${client.id}`)).status,
      location: '',
    })
    const [removed, end] = await race<{ status: number; location: string | undefined }>(fixture.app.database, hold, [
      remove,
      authorize,
    ])
    expect(removed?.status).toBe(200)
    expect(end?.location).toBeUndefined()
    expect(await countOf('select count(*) from oauth_grant where client = $1 and revoked_at is null', client.id)).toBe(
      0,
    )
  })
})
