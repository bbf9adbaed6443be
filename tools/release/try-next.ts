import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { createProject } from '../../packages/create/src/create-project.ts'
import { signDelivery } from '../../packages/webhooks/src/testing.ts'
import { findFreePort, startProgram } from '../running-service.ts'
import { pack } from './pack.ts'
import { stagePackage } from './stage-package.ts'

const ROOT = join(import.meta.dirname, '..', '..')

const START_LIMIT_MS = 120_000
const STOP_LIMIT_MS = 15_000

/** A secret of no webhook. */
const SECRET = `whsec_${Buffer.alloc(32, 'of the trial').toString('base64')}`

/**
 * Makes the project of the template for Next.js in `directory`, installs it from the registry with the packages of this
 * checkout, checks its types, builds it, and serves a genuine delivery and a forged one. The tests do the same without the
 * framework, which this repository does not install. Rejects when anything fails.
 */
export async function tryNextTemplate(directory: string, npmSettings: NodeJS.ProcessEnv): Promise<void> {
  const path = [dirname(process.execPath), process.env.PATH].join(delimiter)
  const env = {
    ...npmSettings,
    PATH: path,
    HOME: directory,
    NEXT_TELEMETRY_DISABLED: '1',
    SIGNALBOX_WEBHOOK_SECRET: SECRET,
  }
  const packages = join(directory, 'packages')
  const staged = join(directory, 'webhooks')
  await mkdir(packages)
  await stagePackage(join(ROOT, 'packages', 'webhooks'), staged)
  await pack([staged], packages)
  const cwd = await createProject({ folder: 'receiver', template: 'receiver-next', packages, directory })
  const npm = (...args: string[]) => promisify(execFile)('npm', args, { cwd, env, maxBuffer: 16 * 1_048_576 })
  await npm('install', '--no-audit', '--no-fund', '--ignore-scripts')
  await npm('run', 'build')
  await npm('run', 'types')
  const port = await findFreePort()
  const server = await startProgram({
    ...{ command: process.execPath, cwd, env, limitMs: START_LIMIT_MS },
    args: [join(cwd, 'node_modules', 'next', 'dist', 'bin', 'next'), 'start', '-H', '127.0.0.1', '-p', String(port)],
    isReady: (output) => output.includes('Ready'),
  })
  try {
    await expectAnswers(`http://127.0.0.1:${port}/webhooks/signalbox`)
  } finally {
    await server.stop(STOP_LIMIT_MS)
  }
}

async function expectAnswers(url: string): Promise<void> {
  const id = '01997e2a-6c00-7000-8000-0000000000e1'
  const data = { account: null, resource: 'webhook', action: 'test', id: null, url: null }
  const envelope = {
    id,
    type: 'webhook.test',
    api_version: '2026-09-11',
    created_at: new Date().toISOString(),
    attempt: 1,
  }
  const body = JSON.stringify({ ...envelope, data })
  const headers = await signDelivery({ secret: SECRET, body, id })
  const post = async (text: string) => (await fetch(url, { method: 'POST', headers, body: text })).status
  const answers = [await post(body), await post(`${body} `)]
  if (answers[0] !== 204 && answers[0] !== 200) throw new Error(`a genuine delivery was answered ${answers[0]}`)
  if (answers[1] !== 401) throw new Error(`a forged delivery was answered ${answers[1]}`)
}
