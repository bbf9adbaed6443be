import { spawnSync } from 'node:child_process'
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findProgram } from '../deploy/program.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'

/**
 * The client that oapi-codegen writes for Go compiles. Runs where Go, the generator and the runtime of its clients are on the
 * machine; nothing is fetched.
 */
const go = findProgram('go', 'the client for Go is not compiled')
const generator = findProgram('oapi-codegen', 'the client for Go is not generated')

/** The arguments that the guide gives to the generator. */
async function readCommand(): Promise<string> {
  const guide = await readFile(join(PROJECT_ROOT, 'docs/guides/generate-a-client.md'), 'utf8')
  return /^oapi-codegen (-generate .*) > client\.go$/m.exec(guide)?.[1] ?? ''
}

test('the guide has the client for Go generated from openapi.json with the types that only webhooks use', async () => {
  const args = (await readCommand()).split(' ')
  expect(args[1]?.split(',').sort()).toEqual(['client', 'skip-prune', 'types'])
  expect(args.at(-1)).toBe('openapi.json')
})

/** The module of the generated code, in the version that the machine has. Undefined when it has none. */
function findRuntime(cwd: string): string | undefined {
  const { status, stdout } = spawnSync(go!, ['env', 'GOMODCACHE'], { cwd, encoding: 'utf8' })
  const listed = spawnSync('ls', [join(stdout.trim(), 'cache/download/github.com/oapi-codegen/runtime/@v')], {
    encoding: 'utf8',
  })
  return status === 0 ? /^(v[\d.]+)\.zip$/m.exec(listed.stdout)?.[1] : undefined
}

const runtime = go && generator ? findRuntime(tmpdir()) : undefined
if (go && generator && !runtime)
  process.stdout.write(
    'github.com/oapi-codegen/runtime is not in the cache of Go: the client for Go is not compiled.\n',
  )

if (go && generator && runtime)
  test('the client that the guide generates for Go compiles', { timeout: 600_000 }, async () => {
    const directory = await mkdtemp(join(tmpdir(), 'signalbox go '))
    const run = (program: string, args: readonly string[]) => {
      const env = { ...process.env, GOFLAGS: '-mod=mod', GOPROXY: 'off', GONOSUMDB: '*', GONOSUMCHECK: '1' }
      const { status, stdout, stderr } = spawnSync(program, args, {
        cwd: directory,
        env,
        encoding: 'utf8',
        maxBuffer: 1e8,
      })
      expect([status, stderr]).toEqual([0, stderr])
      return stdout
    }
    try {
      await copyFile(join(PROJECT_ROOT, 'openapi.json'), join(directory, 'openapi.json'))
      const command = await readCommand()
      await writeFile(join(directory, 'client.go'), run(generator, command.split(' ')))
      await writeFile(
        join(directory, 'go.mod'),
        `module example.com/client\n\ngo 1.24\n\nrequire github.com/oapi-codegen/runtime ${runtime}\n`,
      )
      run(go, ['build', './...'])
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })
