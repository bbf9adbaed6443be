/** The parts of the API with their introductions, by the third segment of the path. A test finds missing ones. */
export const PARTS: Readonly<Record<string, string>> = {
  audit: 'Who did what, when and from where, and which calls were refused.',
  auth: 'Signing in with a social provider or a password, sessions, and the handshake between apps of different domains.',
  contract: 'The worked example of a resource that a platform adds: owned by an account, with events and permissions.',
  health: 'Whether the service and its parts work. Public, without secrets or tenant data.',
  identity: 'Users, accounts, roles, permissions and API keys.',
  oauth: 'The identity provider for external clients: clients, consent, grants, and the exchange of its tokens.',
  provisioning: 'Informing target platforms about their permitted users.',
  realtime: 'Channels that clients subscribe to, and their authorization.',
  webhook: 'Webhooks, their subscriptions, the catalogue of event types, and the ledger of deliveries.',
}
