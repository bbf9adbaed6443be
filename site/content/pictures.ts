import { type Picture, renderPicture } from './picture.ts'

/** The pictures of `docs/concepts`, by the name of their file. */
const PICTURES: Readonly<Record<string, Picture>> = {
  webhooks: {
    alt: 'A request changes a resource. Its transaction records an event. The router writes one delivery for each webhook. A dispatcher posts it to the receiver and records the attempt.',
    boxes: [
      { id: 'request', column: 0, row: 0, title: 'Request', note: 'PATCH /contract/{id}' },
      { id: 'change', column: 1, row: 0, title: 'One transaction', note: 'change, event, audit entry' },
      { id: 'router', column: 2, row: 0, title: 'Router', note: 'one delivery a webhook' },
      { id: 'dispatcher', column: 2, row: 1, title: 'Dispatcher', note: 'signs, checks the address' },
      { id: 'receiver', column: 1, row: 1, title: 'Receiver', note: 'answers 2xx within 15 s' },
      { id: 'ledger', column: 0, row: 1, title: 'Ledger', note: 'every attempt; replay' },
    ],
    arrows: [
      { from: 'request', to: 'change' },
      { from: 'change', to: 'router', label: 'commit' },
      { from: 'router', to: 'dispatcher', label: 'due' },
      { from: 'dispatcher', to: 'receiver', label: 'POST' },
      { from: 'receiver', to: 'ledger', label: 'answer' },
    ],
  },
  identity: {
    alt: 'A user signs in with a password, a passkey or a provider and gets a session. The session gives a token of one hour, which the API accepts. The handshake carries the session to another app.',
    boxes: [
      { id: 'user', column: 0, row: 0, title: 'User', note: 'password, passkey, provider' },
      { id: 'factor', column: 1, row: 0, title: 'Second factor', note: 'if the user has one' },
      { id: 'session', column: 2, row: 0, title: 'Session', note: 'refresh token, revocable' },
      { id: 'token', column: 2, row: 1, title: 'Session JWT', note: 'HS256, valid for 1 hour' },
      { id: 'api', column: 1, row: 1, title: 'API', note: 'permissions of the roles' },
      { id: 'app', column: 0, row: 1, title: 'App elsewhere', note: 'handshake: its own session' },
    ],
    arrows: [
      { from: 'user', to: 'factor', label: 'sign-in' },
      { from: 'factor', to: 'session' },
      { from: 'session', to: 'token', label: 'refresh' },
      { from: 'token', to: 'api', label: 'bearer' },
      { from: 'api', to: 'app', label: 'signed' },
    ],
  },
  oauth: {
    alt: 'An external client sends the browser to the provider. The user signs in and consents. The client exchanges the code for tokens, and an access token for a session JWT of the API.',
    boxes: [
      { id: 'client', column: 0, row: 0, title: 'External client', note: 'registered, PKCE' },
      { id: 'sign-in', column: 1, row: 0, title: 'Sign-in', note: 'the pages of the service' },
      { id: 'consent', column: 2, row: 0, title: 'Consent', note: 'scopes, can be withdrawn' },
      { id: 'tokens', column: 2, row: 1, title: 'Tokens', note: 'ES256, rotated refresh' },
      { id: 'exchange', column: 1, row: 1, title: 'Exchange', note: 'scopes to permissions' },
      { id: 'api', column: 0, row: 1, title: 'API', note: 'only what was granted' },
    ],
    arrows: [
      { from: 'client', to: 'sign-in', label: 'authorize' },
      { from: 'sign-in', to: 'consent' },
      { from: 'consent', to: 'tokens', label: 'code' },
      { from: 'tokens', to: 'exchange' },
      { from: 'exchange', to: 'api', label: 'session JWT' },
    ],
  },
  provisioning: {
    alt: 'A change of a user is queued with its transaction for each target platform. Each target gets the changes of a user in order, by signed webhooks or SCIM. What a target refuses waits as a dead letter.',
    boxes: [
      { id: 'change', column: 0, row: 0, title: 'Change of a user', note: 'create, update, disable' },
      { id: 'stream', column: 1, row: 0, title: 'Stream', note: 'one user at one target' },
      { id: 'target', column: 2, row: 0, title: 'Target platform', note: 'signed webhook or SCIM' },
      { id: 'dead', column: 1, row: 1, title: 'Dead letter', note: 'redrive when mended' },
    ],
    arrows: [
      { from: 'change', to: 'stream', label: 'queued' },
      { from: 'stream', to: 'target', label: 'in order' },
      { from: 'stream', to: 'dead', label: '8 failures' },
      { from: 'dead', to: 'stream' },
    ],
  },
  realtime: {
    alt: 'The event of a change is published on the channels of its account and resource. A browser subscribes over the Pusher protocol; the service authorizes private channels.',
    boxes: [
      { id: 'event', column: 0, row: 0, title: 'Event', note: 'the same id as the webhook' },
      { id: 'publish', column: 1, row: 0, title: 'Channels', note: 'of account and resource' },
      { id: 'server', column: 2, row: 0, title: 'Realtime server', note: 'embedded, or Pusher' },
      { id: 'browser', column: 2, row: 1, title: 'Browser', note: 'pusher-js' },
      { id: 'auth', column: 1, row: 1, title: 'Authorization', note: 'private channels' },
    ],
    arrows: [
      { from: 'event', to: 'publish', label: 'commit' },
      { from: 'publish', to: 'server' },
      { from: 'server', to: 'browser', label: 'message' },
      { from: 'browser', to: 'auth', label: 'subscribe' },
    ],
  },
}

/** The files of the pictures with their texts. Pure. */
export function renderPictures(): [file: string, text: string][] {
  return Object.entries(PICTURES).map(([name, picture]) => [
    `docs/concepts/pictures/${name}.svg`,
    renderPicture(picture),
  ])
}
