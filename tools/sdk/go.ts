import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toGoLibrary } from './go-library.ts'
import { CACHE, type Language, ROOT, runStep, tryCommand } from './language.ts'

/** The version that is installed; another one may make another client. */
const GENERATOR = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2'

/** Path of the module, which is no address: a fork publishes it under its own. */
const MODULE = 'signalbox.example/go'

const BIN = join(CACHE, 'go')
const SOURCES = join(ROOT, 'sdk', 'go')
const VERIFIERS = join(ROOT, 'docs', 'guides', 'verify', 'go')

/** The client for Go, by oapi-codegen, as a module in a folder and its archive. */
export const go: Language = {
  name: 'go',
  prepare: () => tryCommand('go', ['install', GENERATOR], { GOBIN: BIN }),
  build: (folder) => {
    const module = join(folder, 'module')
    mkdirSync(module, { recursive: true })
    const args = ['-generate', 'types,client,skip-prune', '-package', 'signalbox', join(ROOT, 'openapi.json')]
    writeFileSync(join(module, 'client.go'), runStep(join(BIN, 'oapi-codegen'), args, { cwd: module }))
    writeFileSync(join(module, 'go.mod'), `module ${MODULE}\n\ngo 1.24\n`)
    for (const file of ['README.md', 'signalbox.go']) copyFileSync(join(SOURCES, file), join(module, file))
    copyFileSync(join(ROOT, 'LICENSE'), join(module, 'LICENSE'))
    for (const [name, file] of [
      ['webhooks', 'verify.go'],
      ['asymmetric', 'asymmetric.go'],
    ] as const) {
      mkdirSync(join(module, name))
      const text = readFileSync(join(VERIFIERS, file), 'utf8')
      writeFileSync(join(module, name, `${name}.go`), toGoLibrary(text, name))
    }
    runStep('go', ['mod', 'tidy'], { cwd: module })
    runStep('go', ['vet', './...'], { cwd: module })
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
    runStep('tar', ['-czf', join(folder, `signalbox-go-${version}.tgz`), '-C', folder, 'module'], { cwd: folder })
  },
  test: (folder, env) => {
    const module = join(folder, 'module')
    copyFileSync(join(SOURCES, 'main_job_test.go'), join(module, 'main_job_test.go'))
    runStep('go', ['test', '-count=1', '.'], { cwd: module, env })
    console.log('go: the change arrived, verified, and is in the ledger')
  },
}
