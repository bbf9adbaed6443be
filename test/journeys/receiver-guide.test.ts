import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { listBlocks, openGuideShell, startGuideService } from '../harness/process/guide-shell.ts'
import { findFreePort } from '../harness/process/port.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { waitFor } from '../harness/run/wait.ts'

/** The guide for receivers, its commands as they stand but for the two ports, against a service in a process of its own. */

/** Expected output of a command in the guide, by a text that only its block has. */
const OUTCOMES: readonly (readonly [block: string, printed: RegExp])[] = [
  ['node receiver.mjs', /^listening$/m],
  ['listen --forward', /Listening for events of .* signed with the given secret/],
  ['signalbox trigger', /contract\.update +[0-9a-f-]{36} +204 +\d+ ms/],
  ['/test -H', /type: 'webhook\.test'/],
  ['/webhook/dispatch/$DISPATCH -H', /"status":"success"[^\n]*"last_status_code":204/],
  ['/events -H', /Event set replaced/],
  ['/replay -H', /Replay/],
  ['--data-urlencode', /"data":\[\{[^\n]*"status":"success"/],
  ['"dry_run": true', /"dry_run":true/],
  ['--dry-run', /dry run +0 match/],
  ['/routing -H', /"verdict"/],
  ['/webhook/publish', /"accepted":1/],
  ['-X DELETE', /Webhook deleted/],
]

test('the guide for receivers leads to verified deliveries, command by command', async () => {
  const ports = { service: await findFreePort(), receiver: await findFreePort() }
  const usePorts = (text: string) =>
    text.replaceAll('localhost:3000', `localhost:${ports.service}`).replaceAll(/\b4000\b/g, String(ports.receiver))
  await using shell = await openGuideShell()
  await shell.install()
  const [start, ...blocks] = listBlocks(await readFile(join(PROJECT_ROOT, 'docs/guides/webhooks.md'), 'utf8'))
  const [, setting] = /^(WEBHOOK_ALLOWED_PRIVATE_TARGETS)=(\S+) npm start\n$/.exec(usePorts(start?.text ?? '')) ?? []
  expect(setting).toBe('WEBHOOK_ALLOWED_PRIVATE_TARGETS')
  const target = `127.0.0.1:${ports.receiver}`
  await using _service = await startGuideService(shell, {
    PORT: String(ports.service),
    WEBHOOK_ALLOWED_PRIVATE_TARGETS: target,
  })
  const left = new Map(OUTCOMES)
  let all = ''
  for (const { language, text } of blocks) {
    if (language === 'js') await writeFile(join(shell.checkout, '.signalbox/receiver/receiver.mjs'), usePorts(text))
    if (language !== 'sh') continue
    const printed = await shell.run(usePorts(text))
    all += printed
    const outcome = OUTCOMES.find(([block]) => text.includes(block) && left.has(block))
    if (!outcome) continue
    left.delete(outcome[0])
    if (!outcome[1].test(printed)) await shell.waitForOutput(outcome[1])
    // A reader is slower than the service, which records a delivery after its answer.
    await waitFor('the records of deliveries', async () => {
      const token = (await readFile(join(shell.dataDir, 'demo-token'), 'utf8')).trim()
      const list = `http://localhost:${ports.service}/api/v3/webhook/dispatch?filters=event|eq|webhook.test`
      const { data } = await (await fetch(list, { headers: { authorization: `Bearer ${token}` } })).json()
      return data.every((row: { status: string }) => row.status !== 'pending')
    })
  }
  expect([...left.keys()]).toEqual([])
  // The receiver verified what it printed, and nothing forwards to it any more with the secret before the webhook's.
  expect(all + (await shell.run('true'))).not.toContain('not genuine')
})
