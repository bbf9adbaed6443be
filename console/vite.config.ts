import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig, type EnvironmentOptions, type ViteBuilder } from 'vite'
import { mantineStyles } from './mantine-styles.ts'

// A test that builds the console must not get the build of React for development.
process.env.NODE_ENV = 'production'

const OUT = fileURLToPath(new URL('./dist', import.meta.url))

/** Where each page begins. The pages share no file: nobody opens both, and each loads nothing of the other. */
const PAGES = { console: 'src/main.tsx', portal: 'src/portal/main.tsx' } as const

type PageName = keyof typeof PAGES

/**
 * Files of a page, so that a slow network needs few round trips: `start` begins the first reads while the rest loads, `first`
 * holds what every screen needs, `parts` what several of the later ones share. Each further screen is a file of its own.
 */
const listGroups = (page: PageName) => [
  { name: 'start', test: (id: string) => page === 'console' && /[\\/]frame[\\/]start[\\/]/.test(id), priority: 3 },
  { name: 'first', tags: ['$initial' as const], priority: 2 },
  { name: 'parts', minShareCount: 2, priority: 1 },
]

const manifestOf = (page: PageName) => `manifest-${page}.json`

function buildPage(page: PageName): EnvironmentOptions {
  return {
    consumer: 'client',
    build: {
      manifest: manifestOf(page),
      rolldownOptions: {
        input: { [page]: fileURLToPath(new URL(PAGES[page], import.meta.url)) },
        output: { codeSplitting: { groups: listGroups(page) } },
      },
    },
  }
}

interface Chunk {
  imports?: string[]
  dynamicImports?: string[]
}

/** The chunks of a page, with keys that those of another page do not have. */
async function readManifest(folder: string, page: PageName): Promise<Record<string, Chunk>> {
  const path = join(folder, manifestOf(page))
  const chunks = JSON.parse(await readFile(path, 'utf8')) as Record<string, Chunk>
  await rm(path)
  const keyOf = (key: string) => `${page} ${key}`
  return Object.fromEntries(
    Object.entries(chunks).map(([key, { imports, dynamicImports, ...chunk }]) => [
      keyOf(key),
      { ...chunk, imports: imports?.map(keyOf), dynamicImports: dynamicImports?.map(keyOf) },
    ]),
  )
}

/** Compresses each file, and writes the manifest that the service looks for last, so that it never reads half a build. */
async function finish(folder: string): Promise<void> {
  const compress = promisify(brotliCompress)
  const names = (await readdir(folder)).filter((name) => /\.(?:js|css|svg)$/.test(name))
  await Promise.all(
    names.map(async (name) =>
      writeFile(join(folder, `${name}.br`), await compress(await readFile(join(folder, name)))),
    ),
  )
  const chunks = { ...(await readManifest(folder, 'console')), ...(await readManifest(folder, 'portal')) }
  await writeFile(join(folder, 'manifest.json'), JSON.stringify(chunks))
}

/** Builds the pages one after the other into one folder. */
async function buildPages({ config, environments }: ViteBuilder, build: ViteBuilder['build']): Promise<void> {
  const folder = config.build.outDir
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  for (const page of Object.keys(PAGES)) {
    const environment = environments[page]
    if (environment) await build(environment)
  }
  await finish(folder)
}

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/console/assets/',
  plugins: [react(), mantineStyles()],
  resolve: {
    alias: { '@signalbox/client': fileURLToPath(new URL('../packages/client/src/client.ts', import.meta.url)) },
  },
  build: { outDir: OUT, assetsDir: '', emptyOutDir: false, chunkSizeWarningLimit: 1_000, target: 'es2022' },
  builder: { buildApp: (builder) => buildPages(builder, builder.build) },
  environments: { console: buildPage('console'), portal: buildPage('portal') },
})
