import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { toGoLibrary } from './go-library.ts'

const FOLDER = join(import.meta.dirname, '..', '..', 'docs', 'guides', 'verify', 'go')

test.each(['verify.go', 'asymmetric.go'])('%s becomes a package with the same function and no program', (file) => {
  const library = toGoLibrary(readFileSync(join(FOLDER, file), 'utf8'), 'webhooks')
  expect(library).toMatch(/^\/\/ Package webhooks .*\npackage webhooks\n\nimport \(\n/)
  expect(library).toContain('\nfunc Verify(')
  expect(library).not.toMatch(/func main|"os"|"fmt"|"io"/)
})

test('another text is refused', () => {
  expect(() => toGoLibrary('package main\n\nfunc main() {\n}\n', 'webhooks')).toThrow('not a Go file')
})
