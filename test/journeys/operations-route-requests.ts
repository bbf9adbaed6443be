import type { MakeRequest } from './route-requests.ts'

/** What a successful request to the dashboard needs, in the order of the routes. */
export const DASHBOARD_REQUESTS: Record<string, MakeRequest | undefined> = {
  'webhook.dashboard': undefined,
  'webhook.dashboard-series': undefined,
  'webhook.dashboard-webhooks': () => ({ query: '?webhook=00000000-0000-7000-8000-000000000000' }),
}

/** The same of health, whose checks are made again when they are old. */
export function buildHealthRequests(whenCheckIsOld: MakeRequest): Record<string, MakeRequest> {
  const checks = ['webhook-out', 'realtime', 'provisioning', 'stored-secrets', 'clock', 'find-all']
  return Object.fromEntries(checks.map((check) => [`health.${check}`, whenCheckIsOld]))
}
