import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findFreePort, type GuideShell, listBlocks, openGuideShell, startGuideService } from '../harness/guide-shell.ts'
import { PROJECT_ROOT } from '../harness/process.ts'
import { type Receiver, startReceiver } from '../harness/receiver.ts'
import { waitFor } from '../harness/wait.ts'

/**
 * The commands of the guides as they stand but for the ports and the hosts of receivers, pasted into a shell in the checkout
 * whose environment is empty. The guides `webhooks.md` and `generate-a-client.md` have tests of their own.
 */

/** What a block prints, by a text that only it has. Each runs in the order of its guide. */
const RUN: Readonly<Record<string, readonly (readonly [block: string, printed: RegExp])[]>> = {
  'let-another-app-sign-in.md': [
    ['export TOKEN', /^/],
    ['export CLIENT', /^/],
    ['/rotate-secret', /"client_secret":"/],
    ['private_key_jwt', /"client_id":"/],
    ['openid-configuration', /"issuer":"http:/],
  ],
  'provisioning.md': [
    ['export SIGNALBOX_URL', /^/],
    ['export TARGET', /^/],
    ['/sync', /"data":\{"document_id"/],
    ['/reconcile', /"data":\{"document_id"/],
    ['scim/v2', /"protocol":"scim"/],
  ],
  'doctor.md': [['npx signalbox doctor', /^settings +ok$/m]],
  'cli.md': [['signalbox trigger', /^contract +[0-9a-f-]{36}/m]],
}

/** Blocks that are not pasted, by a text that only they have, with the reason. */
const NOT_RUN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'let-another-app-sign-in.md': { '/oauth/exchange': 'it needs the access token of a person, and jq' },
  'cli.md': {
    'signalbox listen': 'it runs until Ctrl-C; pasted in webhooks.md',
    'signalbox verify': 'it needs a capture; test/command/receiver-cli-verify.test.ts',
    'signalbox replay': 'it needs a dispatch; pasted in webhooks.md',
  },
  'second-factors.md': { $: 'each block stands for itself, with the variables that the text names' },
  'social-login.md': { '': 'settings of providers of others' },
  'sso.md': { '': 'settings, and a person who is signed in' },
  'tenants.md': { $OPERATOR: 'one call, with the variable that the text names' },
  'tracing.md': { OTEL_: 'a start with a collector' },
}

const OWN_TEST = ['webhooks.md', 'generate-a-client.md']

let shell: GuideShell
let receiver: Receiver
let service: AsyncDisposable
let port: number

beforeAll(async () => {
  port = await findFreePort()
  receiver = await startReceiver()
  shell = await openGuideShell()
  const target = `127.0.0.1:${receiver.port}`
  service = await startGuideService(shell, { PORT: String(port), WEBHOOK_ALLOWED_PRIVATE_TARGETS: target })
  // A variable that a guide forgot ends its command.
  await shell.run('set -u')
  await shell.run(`npx() { shift; node bin/signalbox.mjs "$@"; }; signalbox() { node bin/signalbox.mjs "$@"; }`)
}, 120_000)
afterAll(async () => {
  await service?.[Symbol.asyncDispose]()
  await shell?.[Symbol.asyncDispose]()
  await receiver?.close()
})

const usePorts = (text: string) =>
  text
    .replaceAll('localhost:3000', `localhost:${port}`)
    .replaceAll(/https:\/\/(?:crm|hr)\.example\.com/g, `http://127.0.0.1:${receiver.port}`)

const readBlocks = async (guide: string) =>
  listBlocks(await readFile(join(PROJECT_ROOT, 'docs/guides', guide), 'utf8')).filter(
    ({ language }) => language === 'sh',
  )

/** A target has one job at a time, which the reader of the guide waits for. */
async function hasNoJob(): Promise<boolean> {
  const token = (await readFile(join(shell.dataDir, 'demo-token'), 'utf8')).trim()
  const jobs = await fetch(`http://localhost:${port}/api/v3/provisioning/job`, {
    headers: { authorization: `Bearer ${token}` },
  })
  const { data } = (await jobs.json()) as { data: { status: string }[] }
  return data.length > 0 && data.every(({ status }) => !['pending', 'running'].includes(status))
}

describe('the commands of a guide run as they stand', () => {
  test.each(Object.entries(RUN))('%s', { timeout: 120_000 }, async (guide, blocks) => {
    const left = new Map(blocks)
    if (guide === 'cli.md') await shell.run(`export SIGNALBOX_URL=http://localhost:${port}`)
    for (const { text } of await readBlocks(guide)) {
      const known = blocks.find(([part]) => text.includes(part))
      if (!known) continue
      left.delete(known[0])
      if (text.includes('/reconcile')) await waitFor('the end of the job before', hasNoJob)
      // The service holds the embedded database and the port: doctor says so.
      const printed = await shell.run(guide === 'doctor.md' ? `${text.trim()} || true` : usePorts(text))
      expect(printed, text).toMatch(known[1])
      expect(printed, text).not.toMatch(/"code":"unauthorized"|"status":40[0134]/)
    }
    expect([...left.keys()]).toEqual([])
  })
})

test('each block of each guide is run, or listed with its reason', async () => {
  const guides = (await readdir(join(PROJECT_ROOT, 'docs/guides'))).filter((name) => name.endsWith('.md'))
  const missing: string[] = []
  for (const guide of guides.filter((name) => !OWN_TEST.includes(name)))
    for (const { text } of await readBlocks(guide)) {
      const isRun = (RUN[guide] ?? []).some(([part]) => text.includes(part))
      const isListed = Object.keys(NOT_RUN[guide] ?? {}).some((part) => text.includes(part))
      if (!isRun && !isListed) missing.push(`${guide}: ${text}`)
    }
  expect(missing).toEqual([])
})
