import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GuideShell, listBlocks, openGuideShell, startGuideService } from '../harness/process/guide-shell.ts'
import type { LocalStart } from '../harness/process/local-start.ts'
import { findFreePort } from '../harness/process/port.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { waitFor } from '../harness/run/wait.ts'

/** The blocks of the guide as they stand but for the ports, with the official libraries and an empty environment. */

let shell: GuideShell
let service: LocalStart
let port: number
let authPort: number

const readGuide = async () => listBlocks(await readFile(join(PROJECT_ROOT, 'docs/guides/move-from-pusher.md'), 'utf8'))
const readSettings = (text: string) =>
  Object.fromEntries(
    text
      .trim()
      .split('\n')
      .map((line) => line.split('=')),
  )
/** Both at once: the digits of one port may be part of the other. */
const usePorts = (text: string) =>
  text.replaceAll(/\b(?:4200|3000)\b/g, (named) => String(named === '4200' ? authPort : port))

beforeAll(async () => {
  port = await findFreePort()
  authPort = await findFreePort()
  shell = await openGuideShell()
  const settings = (await readGuide()).find(({ text }) => text.includes('INTEGRATION_REALTIME_CLUSTER'))
  service = await startGuideService(shell, { PORT: String(port), ...readSettings(settings?.text ?? '') })
}, 120_000)
afterAll(async () => {
  await service?.[Symbol.asyncDispose]()
  await shell?.[Symbol.asyncDispose]()
})

test('programs and clients of Pusher work with the settings of the guide', { timeout: 120_000 }, async () => {
  const blocks = await readGuide()
  const [publisher, client, ...more] = blocks.filter(({ language }) => language === 'sh')
  expect(more).toEqual([])
  await shell.run(usePorts(publisher?.text ?? ''))
  // A reader is slower than the start of a program; pusher-js asks to authorize a channel once.
  const isThere = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect({ host: '127.0.0.1', port: authPort })
      socket.once('error', () => resolve(false))
      socket.once('connect', () => resolve(socket.destroy().destroyed))
    })
  await waitFor('the endpoint that authorizes channels', isThere)
  const printed = await shell.run(usePorts(client?.text ?? ''))
  expect(printed).toContain('in the room: 1\npaid 7\n')
})

test('what the guide says of Laravel is what its libraries are given in the other blocks', async () => {
  const blocks = await readGuide()
  const laravel = blocks.find(({ text }) => text.includes('PUSHER_APP_ID'))?.text ?? ''
  const service = blocks.find(({ text }) => text.includes('INTEGRATION_REALTIME_APP_ID'))?.text ?? ''
  const [given, own] = [readSettings(laravel), readSettings(service)]
  for (const name of ['ID', 'KEY', 'SECRET'])
    expect(given[`PUSHER_APP_${name}`]).toBe(own[`INTEGRATION_REALTIME_${name === 'ID' ? 'APP_ID' : name}`])
  expect(blocks.find(({ text }) => text.includes('new Echo'))?.text).toContain(`key: '${own.INTEGRATION_REALTIME_KEY}'`)
})

test('the events of channels that the guide refers to are listed', { timeout: 120_000 }, async () => {
  const token = (await readFile(join(shell.dataDir, 'demo-token'), 'utf8')).trim()
  const list = async () => {
    const answer = await fetch(
      `http://localhost:${port}/api/v3/realtime/channel-event?filters=channel|eq|presence-room`,
      {
        headers: { authorization: `Bearer ${token}` },
      },
    )
    const { data } = (await answer.json()) as { data: { name: string }[] }
    return data.map(({ name }) => name)
  }
  await expect.poll(list, { timeout: 60_000 }).toEqual(expect.arrayContaining(['channel_occupied', 'member_added']))
})
