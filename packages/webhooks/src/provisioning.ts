import { checkCommonMembers, checkMember, isObject, isText, parseObject, refuseKind } from './envelope.ts'
import { type VerificationInput, verifySignature } from './verify-signature.ts'

export { WebhookVerificationError } from './verification-error.ts'

/** The body for a provisioning target (docs/contract/provisioning.md#provisioning-events): a user and its active state, without roles or permissions. */
export type ProvisioningEnvelope = {
  readonly id: string
  readonly type:
    | 'user.provisioned'
    | 'user.updated'
    | 'user.disabled'
    | 'user.enabled'
    | 'user.deprovisioned'
    | (string & {})
  readonly api_version: string
  readonly created_at: string
  readonly attempt: number
  readonly data: {
    readonly user: {
      readonly document_id: string
      readonly email: string
      readonly name: string | null
      readonly status: string
    }
  }
}

/**
 * Verifies a delivery to a provisioning target; signed as a webhook is (docs/contract/provisioning.md#targets). Throws `WebhookVerificationError`.
 * Unlike with webhooks, a 4xx answer is final, and a 5xx is retried.
 */
export async function verifyProvisioning(input: VerificationInput): Promise<ProvisioningEnvelope> {
  const { text } = await verifySignature(input)
  const envelope = parseObject(text)
  checkCommonMembers(envelope)
  checkMember(isObject(envelope.data), 'data')
  const { user, resource } = envelope.data
  if (user === undefined && isText(resource)) throw refuseKind('a webhook', 'verifyDelivery')
  checkMember(isObject(user), 'data.user')
  checkMember(isText(user.document_id), 'data.user.document_id')
  checkMember(isText(user.email), 'data.user.email')
  checkMember(user.name === null || typeof user.name === 'string', 'data.user.name')
  checkMember(isText(user.status), 'data.user.status')
  return envelope as ProvisioningEnvelope
}
