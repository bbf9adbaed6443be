import { type Calls, EACH, onceElse, type Rule, SAME } from './parallel-case.ts'

const EVENTS = '/api/v3/webhook/event'

/** The cases of mails about webhooks and of the event catalogue. */
export function buildCatalogueCases(fixture: {
  /** Creates a row as the administrator. */
  make: (path: string, body: object) => Promise<{ id: string }>
  unique: (word: string) => string
}): Record<string, [Rule, () => Promise<Calls>]> {
  const { make, unique } = fixture
  const makeType = () => make(EVENTS, { internal: `${unique('invoice')}.paid` })
  return {
    'webhook-mail.update': [SAME, async () => ({ body: { is_stopped: true } })],
    'event.create': [onceElse(409), async () => ({ body: { internal: `${unique('once')}.paid` } })],
    'event.update': [SAME, async () => ({ ...(await makeType()), body: { group: 'billing' } })],
    'event.active': [SAME, async () => ({ ...(await makeType()), body: { is_actived: false } })],
    'event.tenant-visible': [SAME, async () => ({ ...(await makeType()), body: { is_tenant_visible: true } })],
    'event.publish': [
      EACH,
      async () => {
        const internal = `${unique('published')}.paid`
        await make(EVENTS, { internal })
        return { body: { event: internal, id: 'inv-1' }, event: internal }
      },
    ],
  }
}
