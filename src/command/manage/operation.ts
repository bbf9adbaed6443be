import type { ErrorObject } from 'ajv'
import type { Command } from 'commander'
import { FatalError } from '../../app/log/fatal.ts'
import type { CommandRecorder } from '../../app/prepare/command-record.ts'
import type { Resources } from '../../app/prepare/resources.ts'
import { systemClock } from '../../base/clock.ts'
import { buildIdMaker, type UserId } from '../../base/id.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { Problem } from '../../http/problem/problem.ts'
import type { ReadEach } from '../../http/route/cell-key.ts'
import type { Route, Routes } from '../../http/route/route.ts'
import type { Caller } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { buildRecorder, withFixture } from '../database/resources.ts'
import { print, printJson } from '../print/print.ts'

/** Dependencies of the operations of the commands, but of clients with a logo, which need a request. */
export type OperationDeps = Awaited<ReturnType<typeof buildOperationDeps>>

/** An open database with the operations that change it. */
export interface Operations {
  db: Database
  now: Date
  deps: OperationDeps
  /** Records a change that is no operation of the API. */
  record: CommandRecorder
  /** Runs the operation of an API route, with its validation, its event and its audit entry. Returns its `data`. */
  run<Data = Row>(routes: Routes<never>, action: string, input?: OperationInput): Promise<Data>
}

/** A row as the API shows it. */
export type Row = Record<string, unknown> & { document_id: string }

/** Input of an operation: that of its request. */
export interface OperationInput {
  params?: Record<string, string>
  query?: Record<string, unknown>
  body?: object
  /** The caller. Default: the operator of the machine, who may do everything. */
  caller?: Caller
}

/** Adds `--json`. */
export const addJsonOption = (command: Command): Command =>
  command.option('--json', 'print the rows as the API shows them, as JSON', false)

/** The lines about a row, each of its parts; empty parts are left out. */
type ToLines = (row: Row) => readonly (readonly unknown[])[]

/**
 * Ends the declaration of a command that runs an operation: its rows are printed as the API shows them with `--json`, else
 * by `toLines`. `work` gets the options with the argument of the command as `named`.
 */
export function addOperation<Options extends object>(
  command: Command,
  work: (operations: Operations, options: Options & { named: string }) => Promise<Row | Row[]>,
  toLines: ToLines,
): void {
  addJsonOption(command).action(async () => {
    const options = { ...command.opts<Options & { json: boolean }>(), named: String(command.processedArgs[0] ?? '') }
    await withOperations(`${command.parent?.name()} ${command.name()}`, async (operations) => {
      const rows = await work(operations, options)
      if (options.json) return printJson(rows)
      for (const line of [rows].flat().flatMap(toLines)) print(line.filter(Boolean).join('  '))
    })
  })
}

/** The operator of the machine: not a user, and permitted everything. */
export const OPERATOR: Caller = {
  userId: null as unknown as UserId,
  sessionId: null,
  apiKeyId: null,
  clientId: null,
  accountId: null,
  patterns: ['*:*'],
  accountPatterns: [],
  membershipPatterns: [],
  accounts: [],
  ceiling: null,
  keyAccount: null,
  proof: null,
}

/** Runs `work` with the operations on an open database. A refusal ends the command with its text. */
export async function withOperations(command: string, work: (operations: Operations) => Promise<void>): Promise<void> {
  await withFixture({ prepare: true }, async (resources) => {
    const now = new Date(systemClock.now())
    const deps = await buildOperationDeps(resources)
    const { db } = resources.database
    const record = await buildRecorder(resources.config)
    const recordOperation = await buildOperationRecord(record, { command, now })
    try {
      await work({
        db,
        now,
        deps,
        record,
        run: (routes, action, input = {}) =>
          runRoute(
            findRoute(routes as Routes<OperationDeps>, action),
            { db, now, deps, recordOperation },
            input,
          ) as never,
      })
    } catch (error) {
      throw error instanceof Problem ? new FatalError(describeProblem(error)) : error
    }
  })
}

/** The text of a refusal, with every broken rule. Pure. */
function describeProblem({ detail, errors = [] }: Problem): string {
  const [first, ...more] = errors
  if (!first || more.length === 0) return detail
  return errors.map(({ path, message }) => `${path}: ${message}`).join('\n')
}

async function buildOperationDeps({ config, secrets }: Resources) {
  const [{ buildPasswordHashing }, { deactivateWebhooksOf }, { decideMailWay }, { buildBaseUrl }] = await Promise.all([
    import('../../identity/password/password.ts'),
    import('../../webhook/registry/webhook.ts'),
    import('../../app/part/mail-transport.ts'),
    import('../../app/config/base-url.ts'),
  ])
  return {
    ids: buildIdMaker(systemClock, systemRandom),
    random: systemRandom,
    keyring: buildKeyring(secrets.secretKey, systemRandom),
    passwords: buildPasswordHashing(config.passwordHashCost, systemRandom),
    canSendMail: decideMailWay(config) !== 'none',
    baseUrl: buildBaseUrl(config, () => undefined),
    serviceName: config.brandName,
    deactivateWebhooksOf,
  }
}

type OperationRecord = (tx: Database, route: Route<never>, outcome: object) => Promise<void>

async function buildOperationRecord(
  record: CommandRecorder,
  { command, now }: { command: string; now: Date },
): Promise<OperationRecord> {
  const [{ buildReadPathFinder, draftEvents }, { describeRowChange }, { ROUTE_TREE }] = await Promise.all([
    import('../../event/recording/record-change.ts'),
    import('../../event/recording/row-change.ts'),
    import('../../app/feature/route-tree.ts'),
  ])
  const findReadPath = buildReadPathFinder(ROUTE_TREE)
  return async (tx, route, outcome) => {
    const {
      changed = [],
      audit,
      before,
      data,
    } = outcome as {
      changed?: { id: string | null; account: null }[]
      audit?: object
      before?: object
      data?: object
    }
    for (const draft of draftEvents(findReadPath, { route, changed, trace: null })) {
      const { resource, action, resourceId, url, account, accountScope } = draft
      const difference = before && data ? describeRowChange(before, data) : {}
      const detail = { command, ...audit, ...difference }
      await record(tx, { resource, action, target: resourceId, url, account, accountScope, detail }, now)
    }
  }
}

function findRoute(routes: Routes<OperationDeps>, action: string): Route<OperationDeps> {
  const route = routes.find((candidate) => candidate.action === action)
  if (!route) throw new Error(`there is no route with the action ${action}`)
  return route
}

/** A command has no connection that could close, and does not wait. */
const NO_WAIT = {
  recheck: async () => 'all' as const,
  watch: () => () => {},
  readOn: <Result>(read: () => Promise<Result>) => read(),
}

/** Validates the input of a route, and runs its operation in one transaction with its records. */
async function runRoute(
  route: Route<OperationDeps>,
  {
    db,
    now,
    deps,
    recordOperation,
  }: { db: Database; now: Date; deps: OperationDeps; recordOperation: OperationRecord },
  { params = {}, query = {}, body, caller = OPERATOR }: OperationInput,
): Promise<unknown> {
  const [{ parseListing }, { inTransaction }, { isChange, permissionOf }] = await Promise.all([
    import('../../http/listing/listing.ts'),
    import('../../postgres/statement/database.ts'),
    import('../../http/route/route.ts'),
  ])
  await checkPart(route.params, 'params', params)
  await checkPart(route.body, 'body', body ?? null)
  const requestId = deps.ids.next<'request'>()
  const facts = {
    params,
    query,
    body,
    caller,
    signedIn: caller,
    permission: permissionOf(route),
    scope: 'all' as const,
    now,
    listing: route.list ? parseListing(query, route.list) : (undefined as never),
    requestId,
    ownRequestId: requestId,
    trace: null,
    address: '',
    headers: {},
    rawBody: Buffer.alloc(0),
    waiting: NO_WAIT,
  }
  const prepared = await route.prepare?.(deps, { ...facts, db })
  const handle = async (tx: Database) => {
    const target = route.row?.neededBy === 'handle' ? await route.row.find(deps, { ...facts, db: tx }) : undefined
    const readEach: ReadEach = async (read) => [await read({ cell: null, db: tx, scope: facts.scope })]
    const outcome = await route.handle(deps, { ...facts, db: tx, reach: facts.scope, target, prepared, readEach })
    if (outcome.kind === 'refusal') throw outcome.problem
    if (isChange(route)) await recordOperation(tx, route, outcome)
    return 'data' in outcome ? outcome.data : null
  }
  return isChange(route) ? inTransaction(db, handle) : handle(db)
}

/** Checks a part of an input as a request with it is checked. Throws 422. */
async function checkPart(schema: object | undefined, httpPart: 'params' | 'body', value: unknown): Promise<void> {
  if (!schema) return
  const { buildFieldErrors, compileValidator } = await import('../../http/route/validation.ts')
  const validate = compileValidator({ schema, httpPart, method: '', url: '' }) as ((value: unknown) => boolean) & {
    errors: ErrorObject[] | null
  }
  if (validate(value)) return
  const errors = buildFieldErrors(validate.errors ?? [])
  const [first] = errors
  const detail = first ? `${first.path || 'The input'}: ${first.message}` : 'The input is invalid.'
  throw new Problem('validation_failed', detail, { errors })
}
