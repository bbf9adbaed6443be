import { loadTexts, readLanguage } from '../../language/choice.ts'
import { buildAccess, type Session } from '../access.ts'
import { settings } from '../settings.ts'
import { readEarly } from './early-reads.ts'
import { isOverview } from './overview-path.ts'

/**
 * Begins the reads that the first screen waits for, and the texts of its language. It is a small file of its own, which
 * arrives long before the rest of the script: the answers are here when the first screen is drawn.
 */
async function start(): Promise<void> {
  const read = (path: string) => readEarly(path, settings.formToken)
  void loadTexts(readLanguage(settings.language))
  const answer = await read('/api/v3/auth/session')
  if (!answer?.ok || !isOverview(location.pathname)) return
  const { data } = (await answer.json()) as { data: Session }
  const { may } = buildAccess(data)
  // A read without its permission would be refused, and stand in the audit log.
  if (may('webhook:dashboard')) void read('/api/v3/webhook/dashboard/summary')
  const range = new URLSearchParams(location.search).get('range')
  if (may('webhook:dashboard-series') && range === null) void read('/api/v3/webhook/dashboard/series?range=24h')
}

void start()
