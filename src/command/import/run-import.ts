import {
  type ApplyDeps,
  createAccount,
  createWebhook,
  findWebhook,
  type MadeWebhook,
  nameAccount,
  RowRefusal,
  subscribe,
  switchOff,
} from './apply.ts'
import { keyOf } from './history.ts'
import { type Plan, type PlanRules, planEndpoint } from './plan.ts'
import type { AccountResult, Report, WebhookResult } from './report.ts'
import type { Foreign } from './source/foreign.ts'
import type { Source, SourceApi, SourceChoice, Tenant } from './source/source.ts'

export interface ImportRun extends ApplyDeps {
  from: Source
  api: SourceApi
  choice: SourceChoice
  rules: PlanRules
  /** Accounts of this service for tenants, by the ids of the tenants. */
  accounts: ReadonlyMap<string, string>
  isDryRun: boolean
  onAccount: (result: AccountResult) => void
  onWebhook: (result: WebhookResult) => void
}

/** Imports a source, tenant by tenant, or reports what it would do. Rows of an earlier run are left alone. */
export async function runImport(run: ImportRun): Promise<Report> {
  const report: Report = { source: run.from.name, is_dry_run: run.isDryRun, accounts: [], webhooks: [] }
  for await (const row of run.from.listTenants(run.api, run.choice)) {
    const tenant = run.from.readTenant(row)
    const result = await importTenant(run, tenant)
    report.accounts.push(result)
    run.onAccount(result)
    if (result.outcome === 'refused') continue
    for await (const endpoint of run.from.listEndpoints(run.api, tenant)) {
      const made = await importEndpoint(run, { tenant, account: result.account, row: endpoint })
      report.webhooks.push(made)
      run.onWebhook(made)
    }
  }
  return report
}

async function importTenant(run: ImportRun, tenant: Tenant): Promise<AccountResult> {
  const about = { tenant: tenant.id, name: nameAccount(run.source, tenant) }
  const known = run.accounts.get(tenant.id) ?? run.history.findTarget(keyOf(run.source, 'account', [tenant.id]))
  if (known !== undefined) return { ...about, outcome: 'already', account: known }
  if (run.isDryRun) return { ...about, outcome: 'would_create', account: null }
  try {
    const { id, isOfEarlierRun } = await createAccount(run, tenant)
    return { ...about, outcome: isOfEarlierRun ? 'already' : 'created', account: id }
  } catch (error) {
    if (!(error instanceof RowRefusal)) throw error
    return { ...about, outcome: 'refused', account: null, detail: error.message }
  }
}

interface ListedEndpoint {
  tenant: Tenant
  /** Null in a dry run that would create it. */
  account: string | null
  row: Foreign
}

async function importEndpoint(run: ImportRun, { tenant, account, row }: ListedEndpoint): Promise<WebhookResult> {
  const endpointId = run.from.readEndpointId(row)
  const ids = [tenant.id, endpointId]
  const made = findWebhook(run, ids)
  const isDone = made !== undefined && (made.openSteps.length === 0 || run.isDryRun)
  // A webhook that is there, or is not wanted, needs no secret from the source.
  const whole =
    isDone || run.rules.leftOut.has(endpointId) || !run.from.complete
      ? row
      : await run.from.complete(run.api, tenant, row)
  const endpoint = run.from.readEndpoint(whole)
  const about = {
    tenant: tenant.id,
    endpoint: endpoint.id,
    url: toShownUrl(endpoint.url),
    webhook: made?.webhook ?? null,
    is_disabled: endpoint.isDisabled,
    events: [],
    notes: [],
  }
  if (isDone) return { ...about, outcome: 'already' }
  const plan = planEndpoint(endpoint, run.rules)
  if (plan.kind === 'leave_out' && !made) return { ...about, outcome: 'left_out', detail: plan.why }
  if (plan.kind === 'skip' && !made) {
    const { kind: _kind, ...skip } = plan
    return { ...about, outcome: 'skipped', ...skip }
  }
  try {
    return { ...about, ...(await makeWebhook(run, { ids, account, plan, made })) }
  } catch (error) {
    if (!(error instanceof RowRefusal)) throw error
    const remedy = 'Mend it at the source, or create the webhook by hand'
    return { ...about, outcome: 'refused', reason: error.code, detail: error.message, remedy }
  }
}

interface Making {
  ids: readonly string[]
  account: string | null
  plan: Plan
  made: MadeWebhook | undefined
}

/** Creates a webhook, or makes the steps that an earlier run did not reach. */
async function makeWebhook(
  run: ImportRun,
  { ids, account, plan, made }: Making,
): Promise<Partial<WebhookResult> & Pick<WebhookResult, 'outcome'>> {
  const told = plan.kind === 'create' ? { events: plan.draft.events, notes: plan.notes } : {}
  if (run.isDryRun) return { outcome: 'would_create', ...told }
  let { webhook, openSteps } = made ?? { webhook: undefined, openSteps: ['off', 'events'] }
  if (webhook === undefined && plan.kind === 'create' && account !== null) {
    const { draft, isDisabled } = plan
    webhook = await createWebhook(run, { ids, account, draft, isDisabled })
    if (!isDisabled) return { outcome: 'created', webhook, ...told }
  }
  if (webhook === undefined) throw new Error('an endpoint without a plan was to be made')
  if (openSteps.includes('off')) await switchOff(run, ids, webhook)
  if (plan.kind === 'leave_out') return { outcome: 'left_out', webhook, is_disabled: true, detail: plan.why }
  // The map of this run may lack what that of the earlier one had.
  if (plan.kind === 'skip')
    return { outcome: 'skipped', webhook, reason: plan.reason, detail: plan.detail, remedy: plan.remedy }
  await subscribe(run, ids, { webhook, events: plan.draft.events })
  return { outcome: 'created', webhook, is_disabled: true, ...told }
}

/** A URL for a report: without query, fragment and user, which may hold a token. */
function toShownUrl(text: string): string {
  const url = URL.parse(text)
  return url ? `${url.origin === 'null' ? url.protocol : url.origin}${url.pathname}` : '(no URL)'
}
