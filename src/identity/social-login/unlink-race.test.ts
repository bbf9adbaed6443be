import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { buildSocialEnvironment, createSocialApp, redirectUrlOf } from '../../../test/harness/app/social-app.ts'
import { holdUser, race } from '../../../test/harness/plan/race.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

/** Two processes on one database. */
const social = await openForFile(createSocialApp())
const other = await openForFile(
  createTestApp({ database: social.app.database, clock: social.app.clock, env: buildSocialEnvironment() }),
)

interface Linked {
  user: string
  identity: string
  token: string
}

/** A user who signed in at a provider, and has a password and another address since. */
async function signInOnce(subject: string): Promise<Linked> {
  social.seat('google', { sub: subject })
  const answer = await social.signIn(social.browser(), 'google')
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  const { pool } = social.app.database
  const { rows } = await pool.query('select document_id, "user" from identity where subject = $1', [subject])
  const [{ document_id: identity, user }] = rows
  await pool.query(`update "user" set password_hash = 'x', email = $2 where document_id = $1`, [
    user,
    `moved-${subject}@example.com`,
  ])
  return { user, identity, token: answer.body.data.jwt }
}

const findOwner = async (subject: string): Promise<string | undefined> =>
  (await social.app.database.pool.query('select "user" from identity where subject = $1', [subject])).rows[0]?.user

test('a sign-in that meets the disconnection of its identity does not connect it again', async () => {
  const { user, identity, token } = await signInOnce('meets')
  const browser = social.browser()
  const step = await social.reachCallback(browser, 'google')
  const unlink = () => other.callAs(token)('DELETE', `/api/v3/identity/identity/${identity}`)
  const signIn = () => browser.get(redirectUrlOf(step), 'application/json')
  const [unlinked, signedIn] = await race(social.app.database, holdUser(user), [unlink, signIn])
  expect(unlinked?.status).toBe(200)
  // The identity is that of nobody then, so that it makes a user.
  expect(signedIn?.status).toBe(200)
  expect(signedIn?.body.data.user.document_id).not.toBe(user)
  expect(await findOwner('meets')).toBe(signedIn?.body.data.user.document_id)
})

test('a sign-in that came first is of the user, whose identity goes after it', async () => {
  const { user, identity, token } = await signInOnce('first')
  const browser = social.browser()
  const step = await social.reachCallback(browser, 'google')
  const signIn = () => browser.get(redirectUrlOf(step), 'application/json')
  const unlink = () => other.callAs(token)('DELETE', `/api/v3/identity/identity/${identity}`)
  const [signedIn, unlinked] = await race(social.app.database, holdUser(user), [signIn, unlink])
  expect([signedIn?.status, unlinked?.status]).toEqual([200, 200])
  expect(signedIn?.body.data.user.document_id).toBe(user)
  expect(await findOwner('first')).toBeUndefined()
})
