import { join } from 'node:path'
import { readPrivateFile, writePrivateFile } from '../../app/secret/private-file.ts'
import type { Clock } from '../../base/clock.ts'
import { buildDemoClient, type DemoClient } from './demo-client.ts'

const PATH = '/api/v3/identity/api-key'
const KEY_NAME = 'npm start'
const DAY_MS = 24 * 3_600_000
const LIFETIME_MS = 7 * DAY_MS

/** Minimum remaining validity of a reused key. */
const REST_MS = DAY_MS

interface KeyRow {
  document_id: string
  hint: string
  expires_at: string | null
}

/** Path and dependencies of the token. */
export interface DemoTokenOptions {
  baseUrl: string
  /** A session JWT of an administrator. */
  jwt: string
  dataDir: string
  clock: Pick<Clock, 'now'>
}

/** Keeps a valid API key in the token file, readable by its owner only, and revokes others of its name. */
export async function keepDemoToken({ baseUrl, jwt, dataDir, clock }: DemoTokenOptions): Promise<string> {
  const client = buildDemoClient(baseUrl, jwt)
  const file = join(dataDir, 'demo-token')
  const keys = await client.call<KeyRow[]>('GET', `${PATH}?filters=${encodeURIComponent(`name|eq|${KEY_NAME}`)}`)
  // An existing file that cannot be read safely is replaced.
  const token = (await readPrivateFile(file).catch(() => undefined))?.trim() ?? ''
  const kept = keys.find((key) => isOf(token, key) && Date.parse(key.expires_at ?? '') - clock.now() >= REST_MS)
  const isKept = kept !== undefined && (await isAccepted(buildDemoClient(baseUrl, token)))
  for (const key of keys)
    if (!isKept || key.document_id !== kept.document_id) await client.call('DELETE', `${PATH}/${key.document_id}`)
  if (isKept) return file
  const expires_at = new Date(clock.now() + LIFETIME_MS).toISOString()
  const { key } = await client.call<{ key: string }>('POST', PATH, { name: KEY_NAME, permissions: ['*:*'], expires_at })
  await writePrivateFile(file, `${key}\n`)
  return file
}

/** Whether a row may be that of the token: it shows the first characters and an ellipsis. */
function isOf(token: string, { hint }: KeyRow): boolean {
  return token !== '' && token.startsWith(hint.slice(0, -1))
}

function isAccepted(client: DemoClient): Promise<boolean> {
  return client.call('GET', `${PATH}?page_size=1`).then(
    () => true,
    () => false,
  )
}
