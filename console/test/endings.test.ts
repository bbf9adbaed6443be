import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..', '..')
const SOURCES = join(ROOT, 'console', 'src')

interface Operation {
  operationId?: string
}

const { paths } = JSON.parse(readFileSync(join(ROOT, 'openapi.json'), 'utf8')) as {
  paths: Record<string, Record<string, Operation>>
}

/** The last part of a path whose call ends something for good, beside every DELETE. */
const ENDING = /\/(?:purge|cancel|disable|revoke[\w-]*|remove[\w-]*|rotate[\w-]*)$/

const operationsOf = (isOf: (method: string, path: string) => boolean) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { operationId }]) =>
      operationId !== undefined && isOf(method, path) ? [operationId] : [],
    ),
  )

const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => ({ name, text: readFileSync(join(SOURCES, name), 'utf8') }))

const callersOf = (operation: string) => files.filter(({ text }) => new RegExp(`\\b${operation}\\b`).test(text))

/** What asks: a dialog, a button that opens one, or a question in the place of the buttons. */
const ASKS = /<ConfirmDialog|<AskingButton|<RotateDialog|setIsAsked\(true\)/

test('each call of the API that ends something stands in a part of the console that asks first', () => {
  const ending = operationsOf((method, path) => method === 'delete' || ENDING.test(path))
  const called = ending.filter((operation) => callersOf(operation).length > 0)
  expect(called).toEqual(
    expect.arrayContaining(['webhookPurge', 'sessionDelete', 'replayJobCancel', 'userDisable', 'webhookRotateSecret']),
  )
  const silent = called.flatMap((operation) =>
    callersOf(operation)
      .filter(({ text }) => !ASKS.test(text))
      .map(({ name }) => `${operation} in ${name}`),
  )
  expect(silent).toEqual([])
})

/** Titles of questions about what there is one of. */
const SOLE = new Set([
  'catalogue.subscribe',
  'catalogue.sync',
  'profile.remove-picture',
  'profile.withdraw',
  'realtime.publish',
  'roles.review',
])

test('the title of each question names what it is about', () => {
  const titles = files.flatMap(({ name, text }) =>
    [...text.matchAll(/<(?:ConfirmDialog|AskingButton|Ask)\b[\s\S]*?\btitle=\{(.*)\}$/gm)].map(([, title = '']) => ({
      name,
      title,
    })),
  )
  const keyOf = (title: string) => /^t\(['`]([^'`]*)/.exec(title)?.[1] ?? ''
  const named = (title: string) => /-title['`], \{ .+ \}\)$/.test(title) || title === 'title' || SOLE.has(keyOf(title))
  expect(titles.filter(({ title }) => !named(title))).toEqual([])
  expect(titles.map(({ title }) => keyOf(title))).toEqual(
    expect.arrayContaining([...SOLE, 'webhooks.delete-title', 'consents.revoke-title']),
  )
})

test('each call that switches something off offers to switch it on again', () => {
  const switching = operationsOf((method, path) => method === 'patch' && path.endsWith('/active'))
  expect(switching.length).toBeGreaterThan(2)
  for (const operation of switching)
    for (const { name, text } of callersOf(operation)) expect(text, `${operation} in ${name}`).toMatch(/\bundo\b/)
})
