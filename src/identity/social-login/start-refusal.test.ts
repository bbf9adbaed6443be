import { describe, expect, test } from 'vitest'
import { createSocialApp, MOBILE_APP, pathOf, WEB_APP } from '../../../test/harness/app/social-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const t = await openForFile(createSocialApp())
t.fixture.fakes.gitlab.fault = 'foreign discovery issuer'

const startOf = (provider: string, redirectUrl = WEB_APP) =>
  `${pathOf(provider)}?redirect_url=${encodeURIComponent(redirectUrl)}`

/** The `Accept` header of a browser that opens a link. */
const NAVIGATION = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

/** Each refusal of a start: its URL, the problem, and the words of the page in both languages. */
const REFUSALS = [
  {
    what: 'of a provider that does not answer',
    url: startOf('gitlab'),
    problem: [503, 'dependency_unavailable'],
    english: 'The sign-in service does not answer',
    german: 'Der Anmeldedienst antwortet nicht',
  },
  {
    what: 'of a provider that does not answer, for an app',
    url: startOf('gitlab', MOBILE_APP),
    problem: [503, 'dependency_unavailable'],
    english: 'The sign-in service does not answer',
    german: 'Der Anmeldedienst antwortet nicht',
  },
  {
    what: 'of a provider that is unknown or not enabled',
    url: startOf('nothing'),
    problem: [404, 'provider_unknown'],
    english: 'Unknown sign-in service',
    german: 'Unbekannter Anmeldedienst',
  },
  {
    what: 'with a redirect_url that is not allowed',
    url: startOf('google', 'https://evil.example/'),
    problem: [422, 'redirect_url_not_allowed'],
    english: 'This link does not work',
    german: 'Dieser Link funktioniert nicht',
  },
  {
    what: 'without a redirect_url',
    url: pathOf('google'),
    problem: [422, 'validation_failed'],
    english: 'Malformed request',
    german: 'Ungültige Anfrage',
  },
] as const

describe.each(REFUSALS)('a start $what', ({ url, problem, english, german }) => {
  test.each([
    ['en-GB,en;q=0.9', english],
    ['de-AT,de;q=0.9,en;q=0.5', german],
  ])('is a page for a browser that prefers %s', async (language, words) => {
    const page = await t.browser().get(url, NAVIGATION, { 'accept-language': language })
    expect([page.status, page.headers['content-type']]).toEqual([problem[0], 'text/html; charset=utf-8'])
    expect(page.body).toMatch(new RegExp(`<html lang="${language.slice(0, 2)}"[^]*<h1>${words}</h1>`))
    expect(page.body).toContain('href="/auth/sign-in"')
    expect(page.body).not.toMatch(/evil\.example|discovery|google/)
    expect(page.headers).toMatchObject({ 'cache-control': 'no-store', 'x-frame-options': 'DENY' })
  })

  test.each([
    ['Accept: application/json', '', 'application/json'],
    ['no preference', '', '*/*'],
    ['format=json in a browser', `${url.includes('?') ? '&' : '?'}format=json`, NAVIGATION],
  ])('is a problem for %s', async (_what, query, accept) => {
    const answer = await t.browser().get(`${url}${query}`, accept)
    expect([answer.status, answer.body.code]).toEqual(problem)
    expect(answer.headers['content-type']).toContain('application/problem+json')
  })
})

test('an unknown provider at callback-redirect is a page for a browser without scripts, and a problem for a program', async () => {
  const url = `${pathOf('nothing', '/callback-redirect')}?state=s&code=c`
  const page = await t.browser().get(url, NAVIGATION)
  expect([page.status, page.body]).toEqual([404, expect.stringContaining('<h1>Unknown sign-in service</h1>')])
  expect((await t.browser().get(url, 'application/json')).body.code).toBe('provider_unknown')
})

test('a start over the limit is a page too, and says when to come back', async () => {
  await using strict = await createSocialApp({ env: { RATE_LIMIT_STRICT_PER_MINUTE: '1' } })
  await strict.browser().get(startOf('github'))
  const page = await strict.browser().get(startOf('github'), NAVIGATION)
  expect([page.status, page.headers['content-type']]).toEqual([429, 'text/html; charset=utf-8'])
  expect(page.body).toContain('<h1>Too many attempts</h1>')
  expect(page.headers['retry-after']).toMatch(/^\d+$/)
})
