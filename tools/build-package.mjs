/**
 * Builds a package of `packages/`: `node ../../tools/build-package.mjs [folder]` in its folder; the result is in `dist`
 * unless another folder is named. ES modules lie in it, CommonJS in its `cjs`, each with declarations; a package that is a
 * program (`bin`) and no library has ES modules alone. Plain JavaScript, so that `npm pack` builds with any Node that npm runs on.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'

const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript-7/package.json')), 'bin', 'tsc')
const out = resolve(process.argv[2] ?? 'dist')
const commonJs = join(out, 'cjs')
const manifest = JSON.parse(readFileSync('package.json', 'utf8'))

/** Compiles the package of this folder; ends the process with what the compiler says when it refuses. */
function compile(folder, ...options) {
  const { status } = spawnSync(
    process.execPath,
    [compiler, '-p', 'tsconfig.build.json', '--outDir', folder, ...options],
    { stdio: 'inherit' },
  )
  if (status !== 0) process.exit(status ?? 1)
}

/** Names the compiled file in the imports of declarations: compilers before TypeScript 5 do not take `./file.ts`. */
function renameImports(folder) {
  for (const name of readdirSync(folder).filter((entry) => entry.endsWith('.d.ts'))) {
    const path = join(folder, name)
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(/(from '\.\/[\w.-]+)\.ts'/g, "$1.js'"))
  }
}

rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
compile(out)
if (manifest.bin) process.exit(0)
compile(commonJs, '--module', 'commonjs', '--moduleResolution', 'bundler', '--verbatimModuleSyntax', 'false')
// The package itself says `"type": "module"`.
writeFileSync(join(commonJs, 'package.json'), '{ "type": "commonjs" }\n')
for (const folder of [out, commonJs]) renameImports(folder)
