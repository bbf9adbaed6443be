import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CommandEnd } from '../harness/process/command-line.ts'
import { limit, waitFor } from '../harness/run/wait.ts'
import { type CliFixture, openCliFixture } from './receiver-cli-fixture.ts'

let fixture: CliFixture
let webhook: string
beforeAll(async () => {
  fixture = await openCliFixture()
  webhook = await fixture.subscribe(['contract.create'])
})
afterAll(() => fixture[Symbol.asyncDispose]())

interface Row {
  document_id: string
  status: string
  attempts: number
}

/** Creates a contract, ends its dispatch as `status`, and returns the ledger row. */
async function makeDispatch(status: 'success' | 'failed'): Promise<Row> {
  if (status === 'failed') fixture.receiver.behaveNext({ kind: 'redirect', location: '/elsewhere' })
  const contract = await fixture.createContract()
  await fixture.service.settle()
  const filter = encodeURIComponent(`resource_id|eq|${contract}`)
  const events = await fixture.service.admin('GET', `/api/v3/webhook/event-occurrence?filters=${filter}`)
  const byEvent = encodeURIComponent(`event_id|eq|${events.body.data[0].document_id}`)
  const rows = await fixture.service.admin('GET', `/api/v3/webhook/dispatch?filters=${byEvent}`)
  return waitForEnd(rows.body.data[0].document_id, status)
}

/** The row, once an attempt has ended it. */
async function waitForEnd(id: string, status: string, attempts = 1): Promise<Row> {
  let row: Row | undefined
  const isEnded = async () => {
    row = await readRow(id)
    return row.status === status && row.attempts === attempts && row
  }
  return waitFor(`${status} of ${id}`, isEnded, { describe: () => JSON.stringify(row) })
}

/** Runs a bulk replay to its end. Calls the worker, whose own rounds follow the manual clock. */
async function runJob(args: string[]): Promise<CommandEnd> {
  await using command = fixture.start(['replay', ...args, '--wait'])
  await command.waitForOutput(/^replay job/m)
  await fixture.service.app.replayWorker.drain()
  const ending = await limit(command.ended, 20_000, 'the end of the command')
  return { ...ending, stdout: command.stdout(), stderr: command.stderr() }
}

async function readRow(id: string): Promise<Row> {
  const { body } = await fixture.service.admin('GET', `/api/v3/webhook/dispatch/${id}`)
  return body.data
}

describe('signalbox replay of one dispatch', () => {
  test('posts it once more, and with --wait shows how it ended', async () => {
    const { document_id: id } = await makeDispatch('failed')
    const ended = await fixture.run(['replay', id, '--wait'])
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    expect(ended.stdout).toMatch(
      new RegExp(`^dispatch  ${id}  success  attempts = 2  200  \\d+ ms  webhook ${webhook}\n$`),
    )
    expect(await readRow(id)).toMatchObject({ status: 'success', attempts: 2 })
  })

  test('a delivered row is posted again only with --confirm-duplicate', async () => {
    const { document_id: id } = await makeDispatch('success')
    const refused = await fixture.run(['replay', id, '--wait'])
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr.trim()).toBe(
      'The event was delivered or is in flight. Add --confirm-duplicate to post it again.',
    )
    expect(await readRow(id)).toMatchObject({ attempts: 1 })
    const ended = await fixture.run(['replay', id, '--confirm-duplicate', '--wait'])
    expect(ended.code).toBe(0)
    expect(await readRow(id)).toMatchObject({ status: 'success', attempts: 2 })
  })

  test('a replay that is not delivered exits 1 with the reason', async () => {
    const { document_id: id } = await makeDispatch('failed')
    fixture.receiver.behaveNext({ kind: 'status', status: 503 })
    const ended = await fixture.run(['replay', id, '--wait'])
    expect(ended).toMatchObject({ code: 1 })
    expect(ended.stderr.trim()).toBe('The replay was not delivered: the row is exhausted (http_5xx).')
  })

  test('without --wait it prints the path of the result', async () => {
    const { document_id: id } = await makeDispatch('failed')
    const ended = await fixture.run(['replay', id])
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining(`/api/v3/webhook/dispatch/${id}`) })
    // The receiver behaves at its next request as the next test says: that must not be the one of this replay.
    await waitForEnd(id, 'success', 2)
  })

  test('an unknown id and an inactive webhook are refused with the text of the service', async () => {
    const unknown = await fixture.run(['replay', '01996d3f-0000-7000-8000-00000000dead'])
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('404 not_found') })
    const { document_id: id } = await makeDispatch('failed')
    await fixture.service.admin('PATCH', `/api/v3/webhook/webhook/${webhook}/active`, { is_actived: false })
    const inactive = await fixture.run(['replay', id])
    await fixture.service.admin('PATCH', `/api/v3/webhook/webhook/${webhook}/active`, { is_actived: true })
    expect(inactive).toMatchObject({ code: 1, stderr: expect.stringContaining('409 webhook_inactive') })
  })
})

describe('signalbox replay with filters', () => {
  test('--dry-run prints the counts without a change, and the job then replays the rows', async () => {
    const failed = [await makeDispatch('failed'), await makeDispatch('failed')]
    const delivered = await makeDispatch('success')
    const names = [...failed, delivered].map((row) => row.document_id).join(',')
    const dry = await fixture.run(['replay', '--filter', `document_id|in|${names}`, '--dry-run'])
    expect(dry).toMatchObject({ code: 0, stderr: '' })
    expect(dry.stdout.trim()).toBe(
      'dry run  3 match, 2 would be replayed, 1 skipped (not_confirmed 1); nothing was changed',
    )
    expect(await readRow(failed[0]!.document_id)).toMatchObject({ attempts: 1 })
    const ended = await runJob(['--filter', `document_id|in|${names}`, '--filter', 'status|eq|failed'])
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    expect(ended.stdout).toMatch(/^replay job {2}\S+ {2}2 dispatches$/m)
    expect(ended.stdout).toMatch(/^done {2}2 of 2: 2 replayed, 0 skipped\n$/m)
    for (const { document_id: id } of failed) await waitForEnd(id, 'success', 2)
    expect(await readRow(delivered.document_id)).toMatchObject({ attempts: 1 })
  })

  test('--confirm-duplicate and --limit apply to the job', async () => {
    const rows = [await makeDispatch('success'), await makeDispatch('success')]
    const filter = `document_id|in|${rows.map((row) => row.document_id).join(',')}`
    const ended = await runJob(['--filter', filter, '--confirm-duplicate', '--limit', '1'])
    expect(ended.stdout).toMatch(/^done {2}1 of 1: 1 replayed, 0 skipped\n$/m)
    await waitForEnd(rows[0]!.document_id, 'success', 2)
    expect(await readRow(rows[1]!.document_id)).toMatchObject({ attempts: 1 })
  })

  test('a cancelled job ends --wait with exit code 1', async () => {
    const { document_id: id } = await makeDispatch('failed')
    await using waiting = fixture.start(['replay', '--filter', `document_id|eq|${id}`, '--wait'])
    const [, job = ''] = await waiting.waitForOutput(/^replay job {2}(\S+)/m)
    await fixture.service.admin('POST', `/api/v3/webhook/replay-job/${job}/cancel`)
    expect(await limit(waiting.ended, 20_000, 'the end of the command')).toEqual({ code: 1, signal: null })
    expect(waiting.stderr().trim()).toBe('The replay job was cancelled.')
    expect(waiting.stdout()).toMatch(/^cancelled {2}0 of 1: 0 replayed, 0 skipped\n$/m)
  })

  test('the error of a failed job names the call that resumes it', async () => {
    const { document_id: id } = await makeDispatch('failed')
    await using waiting = fixture.start(['replay', '--filter', `document_id|eq|${id}`, '--wait'])
    const [, job = ''] = await waiting.waitForOutput(/^replay job {2}(\S+)/m)
    await fixture.service.database.pool.query(
      `update replay_job set status = 'failed', last_error = 'lock timeout', ended_at = now() where document_id = $1`,
      [job],
    )
    expect(await limit(waiting.ended, 20_000, 'the end of the command')).toEqual({ code: 1, signal: null })
    expect(waiting.stderr()).toContain(`POST /api/v3/webhook/replay-job/${job}/resume`)
  })

  test.for([
    { args: [], says: 'Give the id of one dispatch' },
    {
      args: ['01996d3f-0000-7000-8000-00000000dead', '--filter', 'status|eq|failed'],
      says: 'Give the id of one dispatch',
    },
    { args: ['01996d3f-0000-7000-8000-00000000dead', '--dry-run'], says: '--dry-run and --limit need --filter' },
    { args: ['--filter', 'colour|eq|red'], says: 'names no field to filter by; allowed are' },
    { args: ['--filter', 'status|eq|failed', '--limit', '10001'], says: 'It must be a whole number from 1 to 10000.' },
    { args: ['Acme'], says: 'It must be a UUID in lower case.' },
  ])('replay $args is refused with the rule', async ({ args, says }) => {
    expect(await fixture.run(['replay', ...args])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining(says),
    })
  })
})
