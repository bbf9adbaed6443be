/** The components, each with the section of the operations guide that is about it. */
export const GUIDES = {
  'webhook-out': 'Failing webhooks',
  realtime: 'Realtime',
  provisioning: 'Dead letters',
  'stored-secrets': 'secret_key_mismatch',
  clock: 'Clock skew',
  connections: 'Certificates of connections',
} as const
