import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { USERS_TOKEN } from '../provisioning/provisioning-process.ts'
import { EMBEDDED, openRealtimeService, type RealtimeService } from '../realtime/realtime-service.ts'
import { findFreePort } from './port.ts'
import { PROJECT_ROOT, startProcess, type TestProcess } from './process.ts'

/** A program that a test kills and starts again at the same port. */
export interface Restartable {
  /** Kills it with SIGKILL. */
  kill(): Promise<void>
  start(): Promise<void>
}

/** The service with a provider, a receiver, a target and a page, each of these in a process of its own. */
export interface NervousSystem extends AsyncDisposable {
  service: RealtimeService
  /** An embedded server of another database: for the service a foreign provider. */
  provider: RealtimeService
  receiver: Restartable
  target: Restartable
  /** Where the example page is. */
  pageOrigin: string
  /** The ids of the deliveries that the receiver has taken. */
  listDeliveries(): string[]
  /** The status of a user at the target; undefined where it has none, and while it is away. */
  readTargetStatus(user: string): Promise<string | undefined>
  /** Makes the retries of webhooks and provisioning due, which wait for a minute. */
  letRetriesComeDue(): Promise<void>
  /** The rows of a query of the service's database. */
  read(sql: string): Promise<Record<string, unknown>[]>
}

/** Starts all of it: the receiver is subscribed to `contract.update`, the target gets every change of a user. */
export async function startNervousSystem(): Promise<NervousSystem> {
  await using stack = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-areas-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const [receiverPort, targetPort, pagePort] = [await findFreePort(), await findFreePort(), await findFreePort()]
  const provider = stack.use(await openRealtimeService({ roles: 'api', env: EMBEDDED }))
  const service = stack.use(
    await openRealtimeService({
      env: {
        ...EMBEDDED,
        APP_ENV: 'development',
        INTEGRATION_REALTIME_CLUSTER: 'foreign',
        INTEGRATION_REALTIME_HOST: '127.0.0.1',
        INTEGRATION_REALTIME_PORT: new URL(provider.first.url).port,
        INTEGRATION_REALTIME_USE_TLS: 'false',
        WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${receiverPort},127.0.0.1:${targetPort}`,
      },
      isLocal: true,
    }),
  )
  const deliveries = join(folder, 'deliveries')
  const receiver = buildRestartable(stack, join('test', 'harness', 'fakes', 'receiver-process.ts'), {
    RECEIVER_SECRET: await subscribe(service, `http://127.0.0.1:${receiverPort}/hook`),
    ...{ PORT: String(receiverPort), DELIVERIES_FILE: deliveries },
  })
  const url = `http://127.0.0.1:${targetPort}/users`
  const made = await service.call('POST', '/api/v3/provisioning/target', { url })
  const target = buildRestartable(stack, join('examples', 'provisioning-target', 'main.ts'), {
    TARGET_SECRET: made.body.data.secret,
    ...{ USERS_TOKEN, PORT: String(targetPort), USERS_FILE: join(folder, 'users.json') },
  })
  const page = buildRestartable(stack, join('examples', 'realtime', 'main.ts'), {
    ...{ SIGNALBOX_URL: service.first.url, PORT: String(pagePort) },
  })
  await Promise.all([receiver.start(), target.start(), page.start()])
  const { pool } = service.database
  const kept = stack.move()
  return {
    ...{ service, provider, receiver, target, pageOrigin: `http://127.0.0.1:${pagePort}` },
    listDeliveries: () => readFileSync(deliveries, { encoding: 'utf8', flag: 'a+' }).split('\n').filter(Boolean),
    readTargetStatus: async (user) => {
      const headers = { authorization: `Bearer ${USERS_TOKEN}` }
      const answer = await fetch(url, { headers }).catch(() => undefined)
      const users = answer ? ((await answer.json()) as { document_id: string; status: string }[]) : []
      return users.find((item) => item.document_id === user)?.status
    },
    letRetriesComeDue: async () => {
      await pool.query(`
        with due as (
          update webhook_dispatch_open set next_attempt_at = now()
          where status = 'retrying' and next_attempt_at is not null returning webhook
        ), streams as (
          update provisioning_stream set due_at = now() where due_at is not null
        ) update webhook_queue set visit_at = now() where webhook in (select webhook from due)`)
    },
    read: async (sql) => (await pool.query(sql)).rows,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

/** Makes a webhook that is subscribed to `contract.update`; returns its secret. */
async function subscribe(service: RealtimeService, url: string): Promise<string> {
  const made = await service.call('POST', '/api/v3/webhook/webhook', { url, is_global: true, name: 'Receiver' })
  const found = await service.call('GET', '/api/v3/webhook/event?filters=internal%7Ceq%7Ccontract.update')
  const events = found.body.data.map((event: { document_id: string }) => event.document_id)
  await service.call('PUT', `/api/v3/webhook/webhook/${made.body.data.document_id}/events`, { events })
  return made.body.data.secret as string
}

function buildRestartable(stack: AsyncDisposableStack, program: string, env: Record<string, string>): Restartable {
  let running: TestProcess | undefined
  const kill = async () => void (await running?.kill())
  stack.defer(kill)
  return {
    kill,
    start: async () => {
      running = startProcess({ args: [join(PROJECT_ROOT, program)], env })
      await running.waitForOutput(/The receiver listens|Target platform|The page is at/)
    },
  }
}
