import type { Json } from '../contract/contract-fixture.ts'
import type { MakeRequest } from './route-requests.ts'

/** Input of a successful request to each route of a platform's own resources. CONTRIBUTING.md adds one here. */
export function buildPlatformRouteRequests(providers: {
  /** Creates a row as the administrator. */
  created: (path: string, body: object) => Promise<Json>
  account: () => string
}): Record<string, MakeRequest | undefined> {
  const { created, account } = providers
  const make = async (path: string, body: object) => ({ id: (await created(path, body)).document_id as string })
  const contract = () => ({ account: account(), name: 'Lease' })
  const withContract = async () => ({ params: await make('/api/v3/contract/contract', contract()) })
  return {
    'contract.create': () => ({ body: contract() }),
    'contract.find-all': undefined,
    'contract.find-one': withContract,
    'contract.update': async () => ({ ...(await withContract()), body: { status: 'active' } }),
    'contract.delete': withContract,
  }
}
