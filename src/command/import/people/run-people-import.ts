import { type CommandRecorder, describeUserChange } from '../../../app/prepare/command-record.ts'
import type { Clock } from '../../../base/clock.ts'
import type { IdMaker } from '../../../base/id.ts'
import type { Keyring } from '../../../base/keyring.ts'
import {
  type ImportedUser,
  type ImportOutcome,
  importUsers,
  previewImport,
} from '../../../identity/imported-user/imported-user.ts'
import { importClient, isClientKnown } from '../../../oauth/client/imported/imported-client.ts'
import { type Database, inTransaction } from '../../../postgres/statement/database.ts'
import { toLine } from '../source/foreign.ts'
import type { JsonRow } from './json-rows.ts'
import type { PeopleOutcome, PeopleResult, PeopleSummary } from './people-report.ts'
import type { ForeignApp, ForeignPerson, PeopleSource } from './person.ts'
import { planApp } from './plan-app.ts'
import { type PeopleRules, type PersonPlan, planPerson } from './plan-person.ts'

/** People of one transaction. */
const BATCH = 100

export interface PeopleRun {
  source: PeopleSource
  /** The rows of all files, read anew at each call. */
  readRows: () => AsyncIterable<JsonRow>
  rules: Omit<PeopleRules, 'source' | 'now'>
  clock: Pick<Clock, 'now'>
  db: Database
  deps: { ids: IdMaker; keyring: Keyring }
  record: CommandRecorder
  isDryRun: boolean
  onResult: (result: PeopleResult) => void
}

/** Imports people and clients of a source, a batch at a time. What an earlier run made is left alone. */
export async function runPeopleImport(run: PeopleRun): Promise<PeopleSummary> {
  const summary: PeopleSummary = {
    source: run.source.name,
    is_dry_run: run.isDryRun,
    people: {},
    clients: {},
    with_password: 0,
    must_reset: 0,
    identities: 0,
    authenticator_apps: 0,
    passkeys: 0,
  }
  const settings = await readSettings(run)
  let batch: ForeignPerson[] = []
  const flush = async () => {
    await importBatch(run, summary, batch)
    batch = []
  }
  for await (const row of run.readRows())
    for (const read of run.source.readRow(row, { settings, now: readNow(run) })) {
      if (read.kind === 'app') tell(run, summary, await importApp(run, read))
      if (read.kind === 'person') batch.push(read)
      if (batch.length === BATCH) await flush()
    }
  await flush()
  return summary
}

/** Each batch and each client has the time of its own transaction. */
const readNow = ({ clock }: PeopleRun) => new Date(clock.now())

async function readSettings({ source, readRows }: PeopleRun): Promise<ReadonlyMap<string, unknown>> {
  const settings = new Map<string, unknown>()
  if (source.collectSetting) for await (const row of readRows()) source.collectSetting(settings, row)
  return settings
}

function tell(run: PeopleRun, summary: PeopleSummary, result: PeopleResult): void {
  const counts = result.kind === 'person' ? summary.people : summary.clients
  counts[result.outcome] = (counts[result.outcome] ?? 0) + 1
  run.onResult(result)
}

async function importBatch(run: PeopleRun, summary: PeopleSummary, people: readonly ForeignPerson[]): Promise<void> {
  if (people.length === 0) return
  const now = readNow(run)
  const rules = { ...run.rules, source: run.source, now }
  const planned = people.map((person) => ({ person, plan: planPerson(person, rules) }))
  const users = planned.flatMap(({ plan }) => (plan.kind === 'import' ? [plan.user] : []))
  const outcomes = run.isDryRun ? await previewImport(run.db, users) : await makeUsers(run, users, now)
  let at = 0
  for (const { person, plan } of planned) {
    const outcome = plan.kind === 'import' ? outcomes[at++] : undefined
    tell(run, summary, describePerson(run, { person, plan, outcome }))
    if (plan.kind === 'import' && outcome?.kind === 'created') count(summary, plan, outcome)
  }
}

function makeUsers(
  { db, deps, record, source }: PeopleRun,
  users: readonly ImportedUser[],
  now: Date,
): Promise<ImportOutcome[]> {
  const command = `import ${source.name}`
  return inTransaction(db, async (tx) => {
    const outcomes = await importUsers(deps, tx, { users, now })
    const made = users.filter((_, at) => outcomes[at]?.kind === 'created')
    const changes = made.map(({ id, passwordHash, identities, totpSecret, passkeys }) =>
      describeUserChange('create', id, {
        command,
        has_password: passwordHash !== null,
        providers: identities.map(({ provider }) => provider),
        has_authenticator_app: totpSecret !== null,
        passkeys: passkeys.length,
      }),
    )
    await record(tx, changes, now)
    return outcomes
  })
}

interface Decided {
  person: ForeignPerson
  plan: PersonPlan
  outcome: ImportOutcome | undefined
}

function describePerson({ isDryRun }: PeopleRun, { person, plan, outcome }: Decided): PeopleResult {
  const about = {
    kind: 'person' as const,
    source_id: toLine(person.id, 100) ?? '',
    name: toLine(person.email, 254) ?? null,
  }
  if (plan.kind === 'skip')
    return { ...about, id: null, outcome: 'skipped', reason: plan.reason, detail: plan.remedy, notes: [] }
  const { id } = plan.user
  if (outcome?.kind === 'already') return { ...about, id, outcome: 'already', notes: [] }
  if (outcome?.kind !== 'created') {
    const detail = 'another user has its address, here or earlier in the export: change one of both'
    return { ...about, id: null, outcome: 'skipped', reason: 'email_taken', detail, notes: [] }
  }
  const { providers, passkeys } = outcome.left
  const notes = [
    ...plan.notes,
    ...providers.map((provider) => `identity at ${provider} left out: another user has it`),
    ...(passkeys > 0 ? [`${passkeys} passkeys left out: another user has them`] : []),
  ]
  const made: PeopleOutcome = isDryRun ? 'would_create' : 'created'
  const reset = plan.mustReset === undefined ? {} : { must_reset: plan.mustReset }
  return { ...about, id, outcome: made, ...reset, notes }
}

function count(
  summary: PeopleSummary,
  { user, mustReset }: Extract<PersonPlan, { kind: 'import' }>,
  { left }: Extract<ImportOutcome, { kind: 'created' }>,
): void {
  if (user.passwordHash !== null) summary.with_password += 1
  if (mustReset !== undefined) summary.must_reset += 1
  summary.identities += user.identities.length - left.providers.length
  if (user.totpSecret) summary.authenticator_apps += 1
  summary.passkeys += user.passkeys.length - left.passkeys
}

async function importApp(run: PeopleRun, app: ForeignApp): Promise<PeopleResult> {
  const { source, db, deps, record, isDryRun } = run
  const now = readNow(run)
  const plan = planApp(source.name, app, now)
  const about = {
    kind: 'client' as const,
    source_id: toLine(app.clientId, 100) ?? '',
    name: toLine(app.name, 100) ?? null,
  }
  if (plan.kind === 'skip')
    return {
      ...about,
      id: null,
      outcome: 'skipped',
      reason: plan.reason,
      detail: toLine(plan.detail, 1000) ?? '',
      notes: [],
    }
  const { client, notes } = plan
  const { id } = client
  if (isDryRun) {
    const isKnown = await isClientKnown(db, { id })
    return { ...about, id, outcome: isKnown ? 'already' : 'would_create', notes: isKnown ? [] : notes }
  }
  const isMade = await inTransaction(db, async (tx) => {
    if (!(await importClient(deps, tx, { ...client, now }))) return false
    const url = `/api/v3/oauth/client/${id}`
    const detail = { command: `import ${source.name}`, secrets: client.secrets.length }
    await record(tx, { resource: 'oauth-client', action: 'create', target: id, url, detail }, now)
    return true
  })
  return { ...about, id, outcome: isMade ? 'created' : 'already', notes: isMade ? notes : [] }
}
