import { type Calls, EACH, onceElse, type Rule, SAME } from './parallel-case.ts'

/** The cases of a platform's own resources. CONTRIBUTING.md adds those of one here. */
export function buildPlatformCases(fixture: {
  /** Creates a row as the administrator. */
  make: (path: string, body: object) => Promise<{ id: string }>
  account: () => string
}): Record<string, [Rule, () => Promise<Calls>]> {
  const { make, account } = fixture
  const contract = () => ({ account: account(), name: 'Lease' })
  const makeContract = () => make('/api/v3/contract/contract', contract())
  return {
    'contract.create': [EACH, async () => ({ body: contract() })],
    'contract.update': [SAME, async () => ({ ...(await makeContract()), body: { status: 'active' } })],
    'contract.delete': [onceElse(404), makeContract],
  }
}
