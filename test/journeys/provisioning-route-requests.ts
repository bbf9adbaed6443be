import type { ContractFixture, Json } from '../contract/contract-fixture.ts'
import type { MakeRequest, Request } from './route-requests.ts'

/** Setup of the rows that the requests name. */
interface Makers {
  created(path: string, body: object): Promise<Json>
  name(): string
  newUser(): Promise<Json>
}

/** Input of a successful request to each route of provisioning, in the order of the routes. */
export function buildProvisioningRouteRequests(
  fixture: () => ContractFixture,
  { created, name, newUser }: Makers,
): Record<string, MakeRequest | undefined> {
  const idOf = async (row: Promise<Json>) => ({ id: (await row).document_id as string })
  const of =
    (make: () => Promise<Json>, rest: Omit<Request, 'params'> = {}) =>
    async (): Promise<Request> => ({ params: await idOf(make()), ...rest })
  const newTarget = () => created('/api/v3/provisioning/target', { url: `${fixture().receiver.origin}/${name()}` })
  const newDelivery = async () => {
    const { id: target } = await idOf(newTarget())
    await newUser().then(() => fixture().app.settle())
    const { body } = await fixture().app.admin('GET', `/api/v3/provisioning/delivery?filters=target|eq|${target}`)
    return { id: body.data[0].document_id as string }
  }
  /** A target at which the delivery of a user waits. */
  const newWaitingTarget = async () => {
    const target = await newTarget()
    await fixture().app.admin('PATCH', `/api/v3/provisioning/target/${target.document_id}/active`, {
      is_actived: false,
    })
    await newUser()
    return target
  }
  const newProvisioningJob = async () => created(`/api/v3/provisioning/target/${(await idOf(newTarget())).id}/sync`, {})
  return {
    'provisioning-target.create': () => ({ body: { url: `${fixture().receiver.origin}/new` } }),
    'provisioning-target.find-all': undefined,
    'provisioning-target.find-one': of(newTarget),
    'provisioning-target.update': of(newTarget, { body: { name: 'Renamed' } }),
    'provisioning-target.delete': of(newTarget),
    'provisioning-target.active': of(newTarget, { body: { is_actived: false } }),
    'provisioning-target.rotate-secret': of(newTarget),
    'provisioning-target.find-streams': async () => ({ params: await idOf(newWaitingTarget()) }),
    'provisioning-delivery.find-all': undefined,
    'provisioning-delivery.find-one': async () => ({ params: await newDelivery() }),
    'provisioning-delivery.replay': async () => ({ params: await newDelivery(), body: { confirm_duplicate: true } }),
    'provisioning-target.sync': of(newTarget),
    'provisioning-target.reconcile': of(newTarget),
    'provisioning-target.redrive': of(newTarget),
    'provisioning-job.find-all': undefined,
    'provisioning-job.find-one': of(newProvisioningJob),
    'provisioning-job.pause': of(newProvisioningJob),
    'provisioning-job.resume': async () => {
      const params = await idOf(newProvisioningJob())
      return created(`/api/v3/provisioning/job/${params.id}/pause`, {}).then(() => ({ params }))
    },
    'provisioning-job.cancel': of(newProvisioningJob),
  }
}
