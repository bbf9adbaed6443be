import { expect, test } from 'vitest'
import { ENGLISH } from '../../../base/language/texts.ts'
import { renderNavigation } from './navigation.ts'

/** The links that are marked as the page that is open. */
function listCurrent(path: string): (string | undefined)[] {
  const deps = { browserKeys: { buildFormToken: () => 'form token' } } as unknown as Parameters<
    typeof renderNavigation
  >[0]
  const { text } = renderNavigation(deps, { path, browserId: 'browser', texts: ENGLISH })
  expect(text.match(/<a /g)).toHaveLength(3)
  expect(text).toContain('form token')
  return [...text.matchAll(/href="([^"]*)" aria-current="page"/g)].map(([, href]) => href)
}

test('the navigation marks the page that is open, and no other', () => {
  for (const path of ['/auth/', '/auth/security', '/auth/devices']) expect(listCurrent(path)).toEqual([path])
  expect(listCurrent('/auth/oauth/apps')).toEqual([])
})
