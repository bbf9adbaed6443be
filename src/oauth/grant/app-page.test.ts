import { expect, test } from 'vitest'
import { ENGLISH } from '../../base/language/texts.ts'
import { type AppsView, buildAppsPage } from './app-page.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')

/** The text of the page with these apps. */
function render(apps: object[], notice?: string): string {
  const deps = { browserKeys: { buildFormToken: () => 'form token' } } as unknown as Parameters<typeof buildAppsPage>[0]
  const app = { grantId: 'g-1', clientId: 'c-1', name: 'Rail', publisher: null, scopes: ['openid'], logoHash: null }
  return buildAppsPage(deps, {
    ...{ browserId: 'browser', texts: ENGLISH, notice, now: NOW },
    apps: apps.map((more) => ({ ...app, since: NOW, lastUsedAt: null, ...more })) as unknown as AppsView['apps'],
  }).content.text
}
/** What stands below the name of an app. */
const readLine = (text: string) =>
  /<p class="quiet small">(.*)<\/p>/.exec(text)?.[1]?.replaceAll(/<time datetime="([^"]+)">[^<]*<\/time>/g, '$1')

test('an app is shown with its publisher where it has one, and with its last use where there was one', () => {
  const since = ENGLISH.say('apps.since', { age: NOW.toISOString() })
  expect(readLine(render([{}]))).toBe(`${since} · ${ENGLISH.say('apps.not-used')}`)
  const used = ENGLISH.say('apps.used', { age: NOW.toISOString() })
  expect(readLine(render([{ publisher: 'Northwind', lastUsedAt: NOW }]))).toBe(`Northwind · ${since} · ${used}`)
})

test('the page says that there is no app, or lists them all, and what was done', () => {
  expect(render([])).toContain(ENGLISH.say('apps.none'))
  expect(render([])).not.toContain('<ul')
  expect(render([])).not.toContain('class="notice good"')
  const text = render([{}, { grantId: 'g-2', name: 'Ferry' }], 'Removed.')
  expect(text).not.toContain(ENGLISH.say('apps.none'))
  for (const shown of ['<strong>Rail</strong>', '<strong>Ferry</strong>', 'name="id" value="g-2"', '>Removed.<'])
    expect(text).toContain(shown)
})
