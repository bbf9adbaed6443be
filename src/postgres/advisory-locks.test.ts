import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../test/harness/database/database.ts'
import { readFunctions } from '../../test/harness/plan/lock-order.ts'
import { ADVISORY_LOCKS } from './statement/locks.ts'

const SOURCE = join(import.meta.dirname, '..')
const CALL = /pg_(?:try_)?advisory_(?:xact_)?lock(?:_shared)?\((?=([^;`]{0,80}))/g
const KEYS = Object.entries(ADVISORY_LOCKS).map(([name, { key }]) => ({ name, key: key as string | number }))

/** Argument of the call in the source: the name in the register, or the text as it stands. */
async function listCallsOfSource(): Promise<string[]> {
  const files = (await readdir(SOURCE, { recursive: true })).filter(
    (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
  )
  const texts = await Promise.all(files.map((file) => readFile(join(SOURCE, file), 'utf8')))
  return texts.flatMap((text) =>
    [...text.matchAll(CALL)].map(([, argument = '']) => /ADVISORY_LOCKS\.(\w+)\.key/.exec(argument)?.[1] ?? argument),
  )
}

/** The names of the locks that functions of the database take. */
async function listCallsOfFunctions(): Promise<string[]> {
  await using database = await createTestDatabase({ content: 'prepared' })
  const bodies = [...(await readFunctions(database.pool)).values()]
  const calls = bodies.flatMap((body) => [...body.matchAll(CALL)].map(([, argument = '']) => argument))
  return calls.map((argument) => {
    const [, text] = /^hashtextextended\('([^']*)'/.exec(argument) ?? []
    const found = KEYS.find(({ key }) =>
      text === undefined ? String(key) === /^\d+/.exec(argument)?.[0] : key === text,
    )
    return found?.name ?? argument
  })
}

test('every advisory lock is one of the register, and each of the register is taken', async () => {
  const calls = [...(await listCallsOfSource()), ...(await listCallsOfFunctions())]
  // The name that a listening connection holds is given to it.
  const unknown = calls.filter((call) => !(call in ADVISORY_LOCKS) && !call.startsWith('hashtextextended($1, 0)'))
  expect(unknown).toEqual([])
  const held = ['realtimeProcess', 'worker']
  expect(new Set([...calls.filter((call) => call in ADVISORY_LOCKS), ...held])).toEqual(
    new Set(Object.keys(ADVISORY_LOCKS)),
  )
})

test('no two locks of the register have one key, or one text that begins with the other', () => {
  const texts = KEYS.map(({ key }) => String(key)).filter((key) => key !== '')
  const clashes = texts.flatMap((text) => texts.filter((other) => text !== other && other.startsWith(text)))
  expect([clashes, new Set(texts).size]).toEqual([[], texts.length])
})
