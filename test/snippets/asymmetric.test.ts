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

/** Call the function of a snippet for each vector of their input, a JSON list, and print the list of the answers. */
const NODE_CALLER = `
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
const { verify } = await import(pathToFileURL(process.argv[2]).href)
const answers = JSON.parse(readFileSync(0)).map(({ public_key, id, timestamp, signature, body, now }) =>
  verify(public_key, { id, timestamp, signature }, Buffer.from(body), now))
console.log(JSON.stringify(answers))`

const PYTHON_CALLER = `
import importlib.util, json, sys
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("snippet", sys.argv[1])
snippet = importlib.util.module_from_spec(spec)
spec.loader.exec_module(snippet)
names = ["public_key", "id", "timestamp", "signature"]
print(json.dumps([
    snippet.verify(*[v[name] for name in names], v["body"].encode(), v["now"])
    for v in json.load(sys.stdin)
]))
`

const LANGUAGES: readonly SnippetLanguage[] = [
  {
    name: 'node',
    file: 'node/asymmetric.mjs',
    probe: [process.execPath, '--version'],
    run: (source) => [process.execPath, source],
    runAll: (source) => [process.execPath, '--input-type=module', '--eval', NODE_CALLER, '.', source],
  },
  {
    name: 'python',
    file: 'python/asymmetric.py',
    probe: ['python3', '-c', 'import cryptography'],
    run: (source) => ['python3', source],
    runAll: (source) => ['python3', '-c', PYTHON_CALLER, source],
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
    async (_name, { file, build, run, runAll }) => {
      const out = await mkdtemp(join(tmpdir(), 'signalbox-snippet-asymmetric-'))
      onTestFinished(() => rm(out, { recursive: true, force: true }))
      const source = join(GUIDE_FOLDER, file)
      if (build) {
        const [program, ...args] = build(source, out)
        const built = spawnSync(program, args, { env: SNIPPET_ENVIRONMENT, encoding: 'utf8' })
        expect(built.status, `${built.stdout}\n${built.stderr}`).toBe(0)
      }
      if (runAll) {
        const [program, ...args] = runAll(source, out)
        const input = JSON.stringify(cases)
        const { stdout, stderr } = spawnSync(program, args, { env: SNIPPET_ENVIRONMENT, encoding: 'utf8', input })
        expect(JSON.parse(stdout || '[]'), stderr).toEqual(cases.map(({ expected }) => expected))
      }
      // The command of a snippet whose function has answered every vector is asked for each kind of answer.
      const asked = runAll ? new Map(cases.map((vector) => [vector.expected, vector])).values() : cases
      const command = run(source, out)
      for (const vector of asked) expect(runVector(command, vector), vector.name).toBe(vector.expected)
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
