import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { buildCleanEnvironment, PROJECT_ROOT } from '../harness/process/process.ts'

const MAIN = join(PROJECT_ROOT, 'src', 'main.ts')

/** The first file under another version of Node, as a program of its own. */
async function startAs(version: string) {
  const code = stripTypeScriptTypes(await readFile(MAIN, 'utf8'))
  const fake = `Object.defineProperty(process.versions, 'node', { value: '${version}' })`
  const child = spawn(process.execPath, ['--input-type=commonjs', '-e', `${fake}\n${code}`], { stdio: 'pipe' })
  const ended = once(child, 'close')
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  const [exitCode] = await ended
  return { exitCode, stdout, stderr }
}

test('a Node that cannot run the service gets one sentence, and the code that the unit does not restart after', async () => {
  const manifest = JSON.parse(await readFile(join(PROJECT_ROOT, 'package.json'), 'utf8'))
  const [, first, second] = /^\^(\S+) \|\| >=(\S+)$/.exec(manifest.config.runtime) ?? []
  for (const version of ['12.22.12', '18.20.4', '20.20.2', '23.11.1'])
    expect(await startAs(version)).toEqual({
      exitCode: 78,
      stdout: '',
      stderr: `signalbox: ${process.execPath} is Node ${version}, and the service needs Node ${second} or newer, or ${first} or newer of that line: start it with such a Node (docs/deployment.md, systemd).\n`,
    })
  const unit = await readFile(join(PROJECT_ROOT, 'deploy/systemd/signalbox.service'), 'utf8')
  expect(unit).toMatch(/^RestartPreventExitStatus=78$/m)
  expect(await readFile(join(PROJECT_ROOT, 'docs/deployment.md'), 'utf8')).toContain('exit code 78')
})

test('a command whose output nobody reads ends in silence, with the code of SIGPIPE', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-pipe-'))
  try {
    // The command starts when its reader has closed the pipe.
    const command = `(read -r _ < gate; "${process.execPath}" "${MAIN}" doctor; echo "code $?" >&2)`
    const script = `mkfifo gate; ${command} | (exec <&-; echo open > gate)`
    // Settings that are refused: nothing else is examined.
    const env = { ...buildCleanEnvironment(process.env), PORT: 'eighty' }
    const { stderr } = await promisify(execFile)('/bin/sh', ['-c', script], { cwd: folder, env })
    expect(stderr).toBe('code 141\n')
  } finally {
    await rm(folder, { recursive: true })
  }
})
