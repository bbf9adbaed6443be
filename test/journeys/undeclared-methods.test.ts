import { expect, test } from 'vitest'
import { ROUTE_TREE } from '../../src/app/feature/route-tree.ts'
import { createTestApp } from '../harness/app/app.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

/** Every path of the API, with every method that it does not declare: 405 with the methods that it has (RFC 9110 15.5.6). */
const t = await openForFile(
  createTestApp({ env: { RATE_LIMIT_PER_MINUTE: '1000000', RATE_LIMIT_STRICT_PER_MINUTE: '1000000' } }),
)

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** The declared methods of each path. */
const declared = new Map<string, Set<string>>()
for (const { method, path } of ROUTE_TREE) declared.set(path, (declared.get(path) ?? new Set()).add(method))

const fill = (path: string) =>
  path.replace('{provider}', 'dev').replace(/\{\w+\}/g, '00000000-0000-7000-8000-000000000000')

test.each([...declared])(
  '%s answers a method that it does not have with 405 and those that it has',
  async (path, methods) => {
    for (const method of METHODS) {
      if (methods.has(method)) continue
      const answer = await t.admin(method, fill(path))
      const allowed = String(answer.headers.allow)
        .split(', ')
        .filter((part) => part !== 'HEAD')
      expect([method, answer.status, allowed.sort()]).toEqual([method, 405, [...methods].sort()])
      expect(answer.body).toMatchObject({ code: 'method_not_allowed', status: 405 })
    }
  },
)

test('an id that no row has stays a 404, and so does one that is none', async () => {
  for (const id of ['00000000-0000-7000-8000-000000000000', 'nothing'])
    expect((await t.admin('GET', `/api/v3/webhook/webhook/${id}`)).status).toBe(404)
})
