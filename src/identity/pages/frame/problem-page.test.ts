import type { FastifyRequest } from 'fastify'
import { expect, test } from 'vitest'
import { Problem, type ProblemCode } from '../../../http/problem/problem.ts'
import { STYLE } from '../brand/brand.ts'
import { CLEAN_ADDRESS } from '../script/page-script.ts'
import { buildProblemRenderer } from './problem-page.ts'

const render = buildProblemRenderer({ name: 'Acme', logo: null, style: STYLE, colors: null })
/** A browser that opens the path of a route which programs call too. */
const opens = (path: string) => {
  const routeOptions = { config: { route: { page: 'asked', path } } }
  return {
    id: 'one',
    url: path,
    query: {},
    headers: { accept: 'text/html' },
    routeOptions,
  } as unknown as FastifyRequest
}

test.each<[ProblemCode, boolean]>([
  ['social_login_failed', true],
  ['rate_limited', false],
  ['dependency_unavailable', false],
])('the page of %s takes what a provider handed over out of the address: %s', (code, isCleaned) => {
  const page = render(new Problem(code, 'A detail.'), opens('/api/v3/auth/login/oauth/google/callback'))
  expect(page?.html.includes(CLEAN_ADDRESS.path)).toBe(isCleaned)
  const ofPage = render(new Problem(code, 'A detail.'), opens('/auth/connections/begin'))
  expect(ofPage?.html).not.toContain(CLEAN_ADDRESS.path)
})
