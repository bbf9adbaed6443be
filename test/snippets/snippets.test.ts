import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { WebhookVerificationError } from '../../packages/webhooks/src/verification-error.ts'
import { verifySignature } from '../../packages/webhooks/src/verify-signature.ts'
import { embedSnippets, findEmbedded, readGuideFile } from './embed-snippets.ts'
import {
  encodeVector,
  GUIDE_FOLDER,
  isRunnable,
  SNIPPET_ENVIRONMENT,
  SNIPPET_LANGUAGES,
  type SnippetLanguage,
} from './snippet-languages.ts'

type Vector = { name: string; expected: string; secret: string; header: string; body: string; now: number }

const vectors = (JSON.parse(readGuideFile('vectors.json')) as { cases: Vector[] }).cases
const runnable = SNIPPET_LANGUAGES.filter(isRunnable)
const missing = SNIPPET_LANGUAGES.filter((language) => !runnable.includes(language)).map((language) => language.name)

/** Runs one vector through a snippet: its output, and whether its exit code matches. */
async function runVector([program, ...args]: readonly [string, ...string[]], vector: Vector): Promise<string> {
  const given = [...args, vector.secret, vector.header, String(vector.now)]
  const child = spawn(program, given, { env: SNIPPET_ENVIRONMENT, stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  // A snippet that refuses by the header alone may be gone before it has read the body.
  child.stdin.on('error', () => undefined).end(vector.body)
  const printed = Buffer.concat(await child.stdout.toArray())
    .toString()
    .trim()
  const [code] = await exited
  return code === (printed === 'ok' ? 0 : 1) ? printed : `${printed} with exit code ${code}`
}

/** Calls the function of a snippet for every vector, in one process. */
function runAllVectors([program, ...args]: readonly [string, ...string[]]): Record<string, string> {
  const input = vectors.map(encodeVector).join('')
  const ended = spawnSync(program, args, { env: SNIPPET_ENVIRONMENT, encoding: 'utf8', input })
  expect(ended.status, ended.stderr).toBe(0)
  const printed = ended.stdout.trim().split(/\r?\n/)
  expect(printed).toHaveLength(vectors.length)
  return Object.fromEntries(vectors.map(({ name }, index) => [name, printed[index]!]))
}

/** Cases for the command of a snippet whose function has answered every vector. */
function pickOneOfEachAnswer(): Vector[] {
  return [...new Map(vectors.map((vector) => [vector.expected, vector])).values()]
}

async function runSnippet(language: SnippetLanguage): Promise<Record<string, string>> {
  const out = await mkdtemp(join(tmpdir(), `signalbox-snippet-${language.name}-`))
  onTestFinished(() => rm(out, { recursive: true, force: true }))
  const source = join(GUIDE_FOLDER, language.file)
  if (language.build) {
    const [program, ...args] = language.build(source, out)
    const built = spawnSync(program, args, { env: SNIPPET_ENVIRONMENT, encoding: 'utf8' })
    expect(built.status, `${built.stdout}\n${built.stderr}`).toBe(0)
  }
  const results = language.runAll ? runAllVectors(language.runAll(source, out)) : {}
  const waiting = language.runAll ? pickOneOfEachAnswer() : [...vectors]
  const runWaiting = async () => {
    for (let vector = waiting.shift(); vector; vector = waiting.shift()) {
      results[vector.name] = await runVector(language.run(source, out), vector)
    }
  }
  await Promise.all([runWaiting(), runWaiting(), runWaiting()])
  return results
}

const expected = Object.fromEntries(vectors.map((vector) => [vector.name, vector.expected]))

describe(`the snippets of the guide (not run on this machine: ${missing.join(', ') || 'none'})`, () => {
  test.each(runnable.map((language) => [language.name, language] as const))(
    '%s answers every vector as documented',
    async (_name, language) => {
      expect(await runSnippet(language)).toEqual(expected)
    },
    120_000,
  )
})

describe('the vectors', () => {
  test('are answered by @signalbox/webhooks in the same way', async () => {
    for (const { name, header, body, secret, now, expected } of vectors) {
      const headers = { 'x-service-signature': header }
      const answer = await verifySignature({ headers, body, secret, now: () => now * 1000 }).then(
        () => 'ok',
        (error: WebhookVerificationError) => (error instanceof WebhookVerificationError ? error.reason : String(error)),
      )
      // The package knows what a secret looks like and says more than a snippet can.
      expect(answer, name).toBe(secret.startsWith('whsec_') ? expected : 'secret_malformed')
    }
  })

  test('cover every answer, and no name repeats', () => {
    const answers = new Set(vectors.map((vector) => vector.expected))
    const reasons = ['header_malformed', 'ok', 'signature_mismatch', 'timestamp_too_new', 'timestamp_too_old']
    expect([...answers].sort()).toEqual(reasons)
    expect(new Set(vectors.map((vector) => vector.name)).size).toBe(vectors.length)
  })
})

/** The Node of the path, which starts the commands of a checkout, is often older than the pinned one of the tests. */
const otherNode = spawnSync('node', ['--version'], { encoding: 'utf8' })

test('the Node snippet answers as a command also where import.meta.main is missing', async () => {
  const source = join(GUIDE_FOLDER, 'node/verify.mjs')
  expect(readGuideFile('node/verify.mjs')).not.toContain('import.meta.main')
  const programs = [process.execPath, ...(otherNode.status === 0 ? ['node'] : [])]
  const vector = vectors.find((vector) => vector.expected === 'ok') as Vector
  for (const program of programs) expect(await runVector([program, source], vector), program).toBe('ok')
})

describe('the page', () => {
  test('says from which version each snippet runs, as the snippet does', () => {
    const page = readGuideFile('README.md')
    const table = page.slice(page.indexOf('| Language | Minimum |'), page.indexOf('### Node'))
    const rows = [...table.matchAll(/^\| ([\w.]+) \| ([\d.]+) \|/gm)].map(([, name, from]) => `${name} ${from}`)
    const heads = SNIPPET_LANGUAGES.map(({ file }) => /\(([\w.]+ [\d.]+) or newer\)/.exec(readGuideFile(file))?.[1])
    expect(rows).toEqual(heads)
  })

  test('names the versions of the crates and libraries that the tests use', () => {
    const page = readGuideFile('README.md')
    const crates = [...readGuideFile('rust/Cargo.toml').matchAll(/^(hmac|sha2) = "([\d.]+)"$/gm)]
    const { devDependencies } = JSON.parse(readFileSync(join(GUIDE_FOLDER, '../../../package.json'), 'utf8'))
    const libraries = ['stripe', 'svix', 'standardwebhooks'].map((name) => [name, devDependencies[name]])
    const named = [...crates.map(([, name, version]) => [name, version]), ...libraries]
    expect(named).toHaveLength(5)
    for (const [name, version] of named) expect(page).toContain(`\`${name}\` ${version}`)
  })

  test('embeds every snippet exactly as its file stands; run test/snippets/embed-snippets.ts to renew it', () => {
    const page = readGuideFile('README.md')
    const files = SNIPPET_LANGUAGES.flatMap(({ file, receiver }) => [file, ...(receiver ? [receiver.file] : [])])
    expect(findEmbedded(page)).toEqual(files)
    expect(page).toBe(embedSnippets(page, readGuideFile))
  })
})
