import { copyFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

// A test that builds the console must not get the build of React for development.
process.env.NODE_ENV = 'production'

const OUT = fileURLToPath(new URL('./dist', import.meta.url))

/** Compresses each file, and puts the manifest where the service looks for it last, so that it never reads half a build. */
function finish(): Plugin {
  const compress = promisify(brotliCompress)
  let out = OUT
  return {
    name: 'signalbox-finish',
    apply: 'build',
    configResolved: ({ build }) => {
      out = build.outDir
    },
    writeBundle: async () => {
      const names = (await readdir(out)).filter((name) => /\.(?:js|css|svg)$/.test(name))
      await Promise.all(
        names.map(async (name) => writeFile(join(out, `${name}.br`), await compress(await readFile(join(out, name))))),
      )
      await copyFile(join(out, '.vite', 'manifest.json'), join(out, 'manifest.json'))
    },
  }
}

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/console/assets/',
  plugins: [react(), finish()],
  resolve: {
    alias: { '@signalbox/client': fileURLToPath(new URL('../packages/client/src/client.ts', import.meta.url)) },
  },
  build: {
    outDir: OUT,
    assetsDir: '',
    emptyOutDir: true,
    manifest: true,
    chunkSizeWarningLimit: 1_000,
    target: 'es2022',
    rolldownOptions: {
      input: {
        console: fileURLToPath(new URL('./src/main.tsx', import.meta.url)),
        portal: fileURLToPath(new URL('./src/portal/main.tsx', import.meta.url)),
      },
    },
  },
})
