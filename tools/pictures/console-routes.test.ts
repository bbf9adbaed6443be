import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { listConsoleRoutes, ROWS } from './console-routes.ts'

const source = readFileSync(join(import.meta.dirname, '../../console/src/frame/router.tsx'), 'utf8')

test('the pictures show every route that the router declares', () => {
  const routes = listConsoleRoutes(source)
  expect(routes).toEqual(expect.arrayContaining(['overview', 'webhooks/new', 'deliveries/$id']))
  // The path `/` leads to the overview, and `createScreen` and `createSearchable` have a call each.
  const made = source.match(/createRoute\(/g)!.length - 3
  expect(routes.length).toBe(made + source.match(/= create(?:Screen|Searchable)\(/g)!.length)
})

test('each route with an id has a row to show, and no other has', () => {
  const withId = listConsoleRoutes(source).filter((path) => path.includes('$'))
  expect(Object.keys(ROWS).sort()).toEqual(withId)
})

test('a route of several lines, and one below another, are read with their whole paths', () => {
  const text = `const root = createRootRoute({})
const list = createRoute({
  getParentRoute: () => root,
  path: 'keys',
  component: Keys,
})
const row = createRoute({ getParentRoute: () => list, path: '$id', component: Key })
const user = createSearchable(
  'users/$id',
  User,
)
const health = createScreen('health', Health)
`
  expect(listConsoleRoutes(text)).toEqual(['health', 'keys', 'keys/$id', 'users/$id'])
})
