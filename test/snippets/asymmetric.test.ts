import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { checkDelivery } from '../../packages/webhooks/src/verify-delivery.ts'
import { embedSnippets, findEmbedded, readGuideFile } from './embed-snippets.ts'
import { GUIDE_FOLDER, isRunnable, SNIPPET_ENVIRONMENT, type SnippetLanguage } from './snippet-languages.ts'

interface Vector {
  name: string
  expected: string
  public_key: string
  id: string
  timestamp: string
  signature: string
  body: string
  now: number
}

const { cases } = JSON.parse(readGuideFile('asymmetric-vectors.json')) as { cases: Vector[] }

const LANGUAGES: readonly SnippetLanguage[] = [
  {
    name: 'node',
    file: 'node/asymmetric.mjs',
    probe: [process.execPath, '--version'],
    run: (source) => [process.execPath, source],
  },
  {
    name: 'python',
    file: 'python/asymmetric.py',
    probe: ['python3', '-c', 'import cryptography'],
    run: (source) => ['python3', source],
  },
  {
    name: 'go',
    file: 'go/asymmetric.go',
    probe: ['go', 'version'],
    build: (source, out) => ['go', 'build', '-o', `${out}/verify`, source],
    run: (_source, out) => [`${out}/verify`],
  },
]
const runnable = LANGUAGES.filter(isRunnable)
const missing = LANGUAGES.filter((language) => !runnable.includes(language)).map(({ name }) => name)

/** Runs a vector through a snippet: its output, and whether its exit code matches. */
function runVector([program, ...args]: readonly [string, ...string[]], vector: Vector): string {
  const { public_key: key, id, timestamp, signature, body: input, now } = vector
  const given = [...args, key, id, timestamp, signature, String(now)]
  const { status, stdout, stderr } = spawnSync(program, given, { env: SNIPPET_ENVIRONMENT, encoding: 'utf8', input })
  const printed = stdout.trim()
  return status === (printed === 'ok' ? 0 : 1) ? printed : `${printed} with exit code ${status} ${stderr}`
}

describe(`the snippets for a public key (not run on this machine: ${missing.join(', ') || 'none'})`, () => {
  test.each(runnable.map((language) => [language.name, language] as const))(
    '%s answers every vector as documented',
    async (_name, { file, build, run }) => {
      const out = await mkdtemp(join(tmpdir(), 'signalbox-snippet-asymmetric-'))
      onTestFinished(() => rm(out, { recursive: true, force: true }))
      const source = join(GUIDE_FOLDER, file)
      if (build) {
        const [program, ...args] = build(source, out)
        const built = spawnSync(program, args, { env: SNIPPET_ENVIRONMENT, encoding: 'utf8' })
        expect(built.status, `${built.stdout}\n${built.stderr}`).toBe(0)
      }
      const command = run(source, out)
      for (const vector of cases) expect(runVector(command, vector), vector.name).toBe(vector.expected)
    },
    120_000,
  )
})

test('the vectors are answered by @signalbox/webhooks in the same way, and cover every answer', async () => {
  for (const { name, expected, public_key: publicKey, id, timestamp, signature, body, now } of cases) {
    const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature }
    const check = await checkDelivery({ headers, body, publicKey, now: () => now * 1000 })
    // A snippet ends at the signature; the bodies of two vectors are no envelope.
    const answer = check.ok || /^(?:body_not_json|envelope_malformed)$/.test(check.reason) ? 'ok' : check.reason
    expect(answer, name).toBe(expected)
  }
  const reasons = ['header_malformed', 'ok', 'signature_mismatch', 'timestamp_too_new', 'timestamp_too_old']
  expect([...new Set(cases.map(({ expected }) => expected))].sort()).toEqual(reasons)
  expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length)
})

test('the page embeds every snippet exactly as its file stands; run test/snippets/embed-snippets.ts to renew it', () => {
  const page = readGuideFile('asymmetric.md')
  expect(findEmbedded(page)).toEqual(LANGUAGES.map(({ file }) => file))
  expect(page).toBe(embedSnippets(page, readGuideFile))
})
