import { spawn, spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import 'reflect-metadata'
import { X509CertificateGenerator } from '@peculiar/x509'
import { type Call, withService } from './api-service.ts'
import { limit } from './running-service.ts'
import { renderSchemathesisConfig, type SeededIds } from './schemathesis-config.ts'

/**
 * Runs Schemathesis (https://schemathesis.readthedocs.io) against a service that is started on loopback with a database of
 * its own. Every operation of the document is called with data that fits it and data that does not: no 5xx, no status,
 * header, content type or body that the document does not describe, and nothing refused or accepted against it. Exits 1 on
 * any finding.
 *
 * The program is that of `SCHEMATHESIS`, or the one on the PATH, or it is installed into an environment of its own in
 * `node_modules/.cache`, where Python 3 and its package index are there. Where it cannot be had, nothing is checked, and a
 * line says so. `SCHEMATHESIS_SEED` repeats a run.
 */

const ROOT = join(import.meta.dirname, '..')
/** The run takes some two minutes on 2 cores. */
const RUN_LIMIT_MS = 300_000
/** Test cases for each operation and phase; the time grows with it. */
const MAX_EXAMPLES = 20
const DEFAULT_SEED = '20260911'

/** The version that is installed where none is there: another one may have other checks. */
const SCHEMATHESIS_VERSION = '4.32.5'
const ENVIRONMENT = join(ROOT, 'node_modules', '.cache', 'schemathesis')
const INSTALL_LIMIT_MS = 300_000

function findSchemathesis(): string | undefined {
  const named = process.env.SCHEMATHESIS
  const own = join(ENVIRONMENT, 'bin', 'schemathesis')
  const isThere = (command: string) => {
    const { status, stdout } = spawnSync(command, ['--version'], { encoding: 'utf8' })
    return status === 0 && /\d+\.\d+/.test(stdout)
  }
  const found = (named ? [named] : ['st', 'schemathesis', own]).find(isThere)
  return found ?? (named === undefined && installSchemathesis() && isThere(own) ? own : undefined)
}

/** Makes an environment of Python with Schemathesis alone. Returns whether that was possible. */
function installSchemathesis(): boolean {
  const run = (command: string, args: readonly string[]) => {
    const { status, error, stderr } = spawnSync(command, args, { encoding: 'utf8', timeout: INSTALL_LIMIT_MS })
    if (status !== 0)
      console.log(`schemathesis: ${command} failed: ${error?.message ?? stderr.trim().split('\n').at(-1)}`)
    return status === 0
  }
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check']
  return (
    run('python3', ['-m', 'venv', ENVIRONMENT]) &&
    run(join(ENVIRONMENT, 'bin', 'python'), [...pip, `schemathesis==${SCHEMATHESIS_VERSION}`])
  )
}

/** A certificate of a SAML provider, in PEM. */
async function makeCertificate(): Promise<string> {
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', modulusLength: 2_048, publicExponent: Buffer.from([1, 0, 1]) }
  const signingAlgorithm = { ...algorithm, hash: 'SHA-256' }
  const keys = (await crypto.subtle.generateKey(signingAlgorithm, true, ['sign', 'verify'])) as CryptoKeyPair
  return (await X509CertificateGenerator.createSelfSigned({ name: 'CN=Seed', keys, signingAlgorithm })).toString('pem')
}

/** Makes one row of each kind. Deliveries go to the service's own sink, so nothing leaves the machine. */
async function seedRows(call: Call, sinkUrl: string): Promise<SeededIds> {
  const create = async (path: string, body: object) => String((await call('POST', path, body)).document_id)
  const account = await create('identity/account', { name: 'Seed' })
  const saml = {
    idp_entity_id: 'seed',
    sso_url: 'https://idp.example.com/sso',
    certificates: [await makeCertificate()],
  }
  const webhook = await create('webhook/webhook', { url: sinkUrl, is_global: true })
  const eventType = await create('webhook/event', { internal: 'seed.made', account_scope: 'none' })
  const subscription = await create('webhook/webhook-event', { webhook, event: eventType })
  const { dispatch_id: dispatch } = await call('POST', `webhook/webhook/${webhook}/test`)
  const { events } = await call('POST', 'webhook/publish', { event: 'seed.made', id: '1' })
  const filters = [`document_id|eq|${dispatch}`]
  const [session] = (await call('GET', 'identity/session')) as unknown as { document_id: string }[]
  const provisioningTarget = await create('provisioning/target', { url: sinkUrl })
  const user = await create('identity/user', { email: 'seed@example.com' })
  const [delivery] = (await call('GET', 'provisioning/delivery')) as unknown as { document_id: string }[]
  return {
    account,
    provisioningTarget,
    provisioningDelivery: String(delivery?.document_id),
    provisioningJob: await create(`provisioning/target/${provisioningTarget}/sync`, {}),
    webhook,
    eventType,
    subscription,
    dispatch: String(dispatch),
    event: String((events as { event_id: string }[])[0]?.event_id),
    connection: await create(`identity/account/${account}/connection`, { kind: 'saml', name: 'Seed', saml }),
    contract: await create('contract/contract', { account, name: 'Seed' }),
    replayJob: await create('webhook/dispatch/replay', { filters, confirm_duplicate: true }),
    apiKey: await create('identity/api-key', { name: 'seed', permissions: ['contract:*'] }),
    session: String(session?.document_id),
    role: await create('identity/role', { name: 'seed', permissions: ['contract:*'] }),
    user,
    oauthClient: await create('oauth/client', {
      name: 'Seed',
      type: 'confidential',
      redirect_uris: ['https://app.example.com/callback'],
    }),
  }
}

/** Runs it, its output to ours. Resolves with its exit code. */
function runSchemathesis(command: string, run: { origin: string; token: string; configFile: string; seed: string }) {
  const args = [
    ...['--config-file', run.configFile, 'run', `${run.origin}/openapi.json`],
    ...['--header', `Authorization: Bearer ${run.token}`],
    ...['--phases', 'coverage,fuzzing,stateful', '--max-examples', String(MAX_EXAMPLES)],
    ...[
      '--seed',
      run.seed,
      '--continue-on-failure',
      '--generation-database',
      'none',
      '--warnings',
      'off',
      '--no-color',
    ],
  ]
  const child = spawn(command, args, { cwd: tmpdir(), stdio: ['ignore', 'inherit', 'inherit'] })
  const exited = new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', resolve)
  })
  return limit(exited, RUN_LIMIT_MS, 'Schemathesis').finally(() => child.kill('SIGKILL'))
}

function check(command: string, dataDir: string): Promise<boolean> {
  return withService({ dataDir, name: 'schemathesis' }, async ({ origin, token, call }) => {
    const sinkUrl = `${origin}/api/v3/webhook/sink`
    const configFile = join(dataDir, 'schemathesis.toml')
    await writeFile(configFile, renderSchemathesisConfig(await seedRows(call, sinkUrl), sinkUrl))
    const seed = process.env.SCHEMATHESIS_SEED ?? DEFAULT_SEED
    console.log(`schemathesis: seed ${seed}; SCHEMATHESIS_SEED repeats it`)
    const code = await runSchemathesis(command, { origin, token, configFile, seed })
    // A key that was lost on the way would have been refused everywhere, and every refusal is documented.
    await call('GET', 'auth/session')
    return code === 0
  })
}

const command = findSchemathesis()
if (command === undefined) {
  console.log('schemathesis: neither installed nor to be had here, so the API is not checked against openapi.json')
} else {
  const dataDir = await mkdtemp(join(tmpdir(), 'signalbox schemathesis '))
  try {
    if (!(await check(command, dataDir))) process.exitCode = 1
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}
