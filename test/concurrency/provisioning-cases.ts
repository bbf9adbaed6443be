import type { TestApp, TestCall } from '../harness/app/app.ts'
import { type Calls, EACH, onceElse, type Rule, SAME } from './parallel-case.ts'

/** The cases of provisioning: targets, their deliveries and their jobs. */
export function buildProvisioningCases(fixture: {
  // biome-ignore lint/suspicious/noExplicitAny: rows of every shape
  make: (path: string, body?: unknown, call?: TestCall) => Promise<any>
  makeUser: () => Promise<unknown>
  app: () => TestApp
}): Record<string, [Rule, () => Promise<Calls>]> {
  const { make, makeUser, app } = fixture
  const idOf = async (path: string, body: unknown) => ({ id: (await make(path, body)).document_id as string })
  const makeTarget = () => idOf('/api/v3/provisioning/target', { url: 'https://target.example.com/' })
  const makeProvisioningJob = async () => idOf(`/api/v3/provisioning/target/${(await makeTarget()).id}/sync`, {})
  const makeProvisioningDelivery = async () => {
    const { id: target } = await makeTarget()
    await makeUser()
    const { rows } = await app().database.pool.query(
      `with d as (
         update provisioning_delivery set status = 'failed', ended_at = created_at where target = $1 returning *
       ), s as (update provisioning_stream set waiting = 0, due_at = null where target = $1)
       select document_id from d`,
      [target],
    )
    return { id: rows[0].document_id as string }
  }
  return {
    'provisioning-target.create': [EACH, async () => ({ body: { url: 'https://target.example.com/' } })],
    'provisioning-target.update': [SAME, async () => ({ ...(await makeTarget()), body: { name: 'Renamed' } })],
    'provisioning-target.delete': [onceElse(404), makeTarget],
    'provisioning-target.active': [SAME, async () => ({ ...(await makeTarget()), body: { is_actived: false } })],
    'provisioning-target.rotate-secret': [EACH, makeTarget],
    'provisioning-target.sync': [onceElse(409), makeTarget],
    'provisioning-target.reconcile': [onceElse(409), makeTarget],
    'provisioning-target.redrive': [onceElse(409), makeTarget],
    'provisioning-delivery.replay': [onceElse(409), makeProvisioningDelivery],
    'provisioning-job.pause': [onceElse(409), makeProvisioningJob],
    'provisioning-job.resume': [
      onceElse(409),
      async () => {
        const { id } = await makeProvisioningJob()
        await make(`/api/v3/provisioning/job/${id}/pause`)
        return { id }
      },
    ],
    'provisioning-job.cancel': [onceElse(409), makeProvisioningJob],
  }
}
