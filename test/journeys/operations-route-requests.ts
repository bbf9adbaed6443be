import type { MakeRequest } from './route-requests.ts'

/** Input of a successful request to the dashboard, in the order of the routes. */
export const DASHBOARD_REQUESTS: Record<string, MakeRequest | undefined> = {
  'webhook.dashboard': undefined,
  'webhook.dashboard-queue': undefined,
  'webhook.dashboard-series': undefined,
  'webhook.dashboard-webhooks': () => ({ query: '?webhook=00000000-0000-7000-8000-000000000000' }),
}
