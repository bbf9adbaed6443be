import { afterEach, expect, test } from 'vitest'
import { ROUTE_TREE } from '../../src/app/feature/route-tree.ts'
import { permissionOf, type RouteDeclaration } from '../../src/http/route/route.ts'
import { SCOPES } from '../../src/oauth/scope/scope-catalogue.ts'
import { createTestApp } from '../harness/app/app.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { readRepository } from '../tidy/source-file.ts'

/** Words in the form of a permission that are not one. */
const OTHER_WORDS = ['resource:action', 'resource:*', '*:*', ...SCOPES.map(({ name }) => name)]

const ROUTES: readonly RouteDeclaration[] = ROUTE_TREE

/** Permissions and patterns that a text names, in code spans or in quotes. */
function listNamed(text: string): string[] {
  const named = [...text.matchAll(/[`"']([a-z][a-z-]*:(?:\*|[a-z][a-z-]*))(?=[`"'])/g)].map(([, word = '']) => word)
  return named.filter((word) => !OTHER_WORDS.includes(word) && !word.startsWith('node:'))
}

// CONTRIBUTING.md is left out: its worked example names permissions of a resource that it adds.
const documents = readRepository().filter(({ path }) =>
  /^(?:docs\/(?!contract\/).*\.md|packages\/[^/]+\/README\.md|README\.md|SECURITY\.md|ARCHITECTURE\.md)$/.test(path),
)
const ofDocuments = documents.flatMap(({ text }) => listNamed(text))
const ofDescriptions = ROUTES.flatMap(({ description = '', summary }) => listNamed(`${summary}\n${description}`))
const ofRoutes = ROUTES.filter((route) => (route.access ?? 'permission') === 'permission').map(permissionOf)
const NAMED = [...new Set([...ofDocuments, ...ofDescriptions, ...ofRoutes])].sort()

const keys: string[] = []
const app = await openForFile(createTestApp())
afterEach(async () => {
  for (const id of keys.splice(0)) await app.admin('DELETE', `/api/v3/identity/api-key/${id}`)
})

test('the documents and the descriptions of routes contain permissions', () => {
  expect(ofDocuments).toEqual(expect.arrayContaining(['event-occurrence:find-all', 'webhook:*']))
  expect(ofDescriptions).toEqual(expect.arrayContaining(['api-key:find-all', 'api-key:delete', 'user:find-one']))
})

test.each(NAMED)('the documented %s can be given to a role and to a key', async (permission) => {
  const permissions = [permission]
  const role = await app.admin('POST', '/api/v3/identity/role', { name: `holds ${permission}`, permissions })
  expect(role.status, JSON.stringify(role.body)).toBe(201)
  const key = await app.admin('POST', '/api/v3/identity/api-key', { name: 'holds it', permissions })
  expect(key.status, JSON.stringify(key.body)).toBe(201)
  keys.push(key.body.data.document_id)
})

test('a key with the permissions over keys reads and revokes the keys of all users', async () => {
  const permissions = ['api-key:find-all', 'api-key:find-one', 'api-key:delete', 'contract:*']
  const made = await app.admin('POST', '/api/v3/identity/api-key', { name: 'keeper of keys', permissions })
  keys.push(made.body.data.document_id)
  const keeper = app.callAs(made.body.data.key)
  const member = await app.signInMember()
  const body = { name: 'of a member', permissions: ['contract:*'] }
  const { document_id: id } = (await member.call('POST', '/api/v3/identity/api-key', body)).body.data
  const listed = await keeper('GET', '/api/v3/identity/api-key?page_size=200')
  expect(listed.body.data.map((row: { document_id: string }) => row.document_id)).toContain(id)
  expect((await keeper('GET', `/api/v3/identity/api-key/${id}`)).status).toBe(200)
  expect((await keeper('DELETE', `/api/v3/identity/api-key/${id}`)).status).toBe(200)
})
