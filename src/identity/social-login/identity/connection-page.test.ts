import { expect, test } from 'vitest'
import type { UserId } from '../../../base/id.ts'
import { ENGLISH } from '../../../base/language/texts.ts'
import type { IdentityId } from '../user/identity.store.ts'
import { buildConnectionsPage } from './connection-page.ts'

const deps = { browserKeys: { buildFormToken: () => 'form token' } } as unknown as Parameters<
  typeof buildConnectionsPage
>[0]

const AT = new Date(0)

/** What the page says of an identity that the provider names so. */
function describeIdentity({ email, name }: { email: string | null; name: string | null }): string | undefined {
  const of = { provider: 'company', subject: 's-1', isEmailVerified: true, avatarUrl: null, lastLoginAt: null }
  const row = { id: 'i-1' as IdentityId, userId: 'u-1' as UserId, ...of, email, name, createdAt: AT, updatedAt: AT }
  const { content } = buildConnectionsPage(deps, {
    ...{ identities: [row], providers: [{ name: 'company', label: 'Company', leavesToken: false }] },
    ...{ isLastWay: false, browserId: 'b-1', texts: ENGLISH, asked: undefined, notice: undefined, problem: undefined },
  })
  return /<strong>Company<\/strong><\/p>\n<p class="quiet small">([^<]*)<\/p>/.exec(content.text)?.[1]
}

test.each([
  ['a@b.test', 'Ada', 'a@b.test'],
  [null, 'Ada', 'Ada'],
  [null, null, ENGLISH.say('connections.plain')],
])('an identity with the address %s and the name %s is shown as %s', (email, name, shown) => {
  expect(describeIdentity({ email, name })).toBe(shown)
})
