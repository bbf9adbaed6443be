import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PROJECT_ROOT, runToEnd } from '../harness/process/process.ts'

/** Writes, at the end of the process, which packages it has loaded. */
const HOOK = `
  import { registerHooks } from 'node:module'
  const loaded = new Set()
  registerHooks({
    load(url, context, next) {
      const name = /.*\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1]
      if (name) loaded.add(name)
      return next(url, context)
    },
  })
  process.on('exit', () => console.error([...loaded].sort().join()))`

const loadedBy = async (...args: string[]) => {
  const hook = `data:text/javascript,${encodeURIComponent(HOOK)}`
  const { stderr } = await runToEnd({ args: ['--import', hook, join(PROJECT_ROOT, 'src', 'main.ts'), ...args] })
  return stderr.trimEnd().split('\n').at(-1)
}

test('a command without a database loads no package but that of the command line: others are most of its start', async () => {
  expect(await loadedBy('--version')).toBe('commander')
  expect(await loadedBy('verify')).toBe('commander')
})
