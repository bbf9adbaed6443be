import { expect, test } from 'vitest'
import { buildImporters } from './importers.ts'

const findImporters = buildImporters(
  new Map([
    ['src/base/clock.ts', ''],
    ['src/event/event.ts', "import type { Clock } from '../base/clock.ts'\nimport {\n  read,\n} from './read.ts'"],
    ['src/event/read.ts', "export * from '../base/clock.ts'"],
    ['src/main.ts', "const { run } = await import('./event/event.ts')"],
    ['src/other.ts', "import { clock } from 'base/clock.ts'"],
    ['test/turn.ts', "import '../src/turn.ts'"],
    ['src/turn.ts', "import { again } from '../test/turn.ts'"],
  ]),
)

test('a file is loaded by those that import it, re-export it or import one of these, at once or later', () => {
  expect(findImporters('src/base/clock.ts').sort()).toEqual([
    'src/base/clock.ts',
    'src/event/event.ts',
    'src/event/read.ts',
    'src/main.ts',
  ])
})

test('a file that nothing imports is loaded by itself, and a circle ends', () => {
  expect(findImporters('src/main.ts')).toEqual(['src/main.ts'])
  expect(findImporters('src/turn.ts').sort()).toEqual(['src/turn.ts', 'test/turn.ts'])
})
