import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findPages } from './pages.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox site '))
  const files = { 'guides/doctor/index.html': { tag: 'x', isCompressed: true } }
  await writeFile(join(folder, 'manifest.json'), JSON.stringify({ scripts: [], files }))
})
afterAll(() => rm(folder, { recursive: true }))

const pageOf = (environment: Record<string, string>, siteFolder = folder) =>
  findPages({ environment, directory: folder, siteFolder })('disk_low')

test('a finding names the address of its section where the installation has the site', () => {
  expect(pageOf({})).toBe('http://localhost:3000/docs/site/guides/doctor/#disk_low')
  expect(pageOf({ PORT: '3100' })).toBe('http://localhost:3100/docs/site/guides/doctor/#disk_low')
  expect(pageOf({ BASE_URL: 'https://signalbox.example.com' })).toBe(
    'https://signalbox.example.com/docs/site/guides/doctor/#disk_low',
  )
})

test('without a site or an address a finding names the file', () => {
  for (const page of [pageOf({}, join(folder, 'none')), pageOf({ PORT: '0' })])
    expect(page).toBe('docs/guides/doctor.md#disk_low')
  expect(pageOf({ PORT: 'eighty' })).toBe('http://localhost:3000/docs/site/guides/doctor/#disk_low')
})
