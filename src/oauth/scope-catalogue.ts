/** A scope that an app may ask for (docs/contract/oauth-exchange.md#scopes). */
export interface Scope {
  /** As in the parameter `scope` (RFC 6749 section 3.3). */
  name: string
  /** What the app may do, in a few plain words that complete "This app may ...". */
  title: string
  /** One sentence for the person who decides. */
  description: string
  /** The permissions that the scope opens, as far as the person holds them. */
  permissions: readonly string[]
  /** Whether the person may leave it out and still allow the rest. */
  isOptional: boolean
}

function api(name: string, texts: Pick<Scope, 'title' | 'description'>, permissions: readonly string[]): Scope {
  return { name, ...texts, permissions, isOptional: true }
}

/**
 * Every scope of the service, in the order in which a consent page shows them. A scope holds whole permissions and no
 * pattern: a new route is opened to apps only by a change of this list.
 */
export const SCOPES: readonly Scope[] = [
  {
    name: 'openid',
    title: 'sign you in',
    description: 'The app gets an identifier that stands for you and does not change.',
    permissions: [],
    isOptional: false,
  },
  {
    name: 'profile',
    title: 'see your name and picture',
    description: 'The app reads your name and the address of your picture.',
    permissions: [],
    isOptional: true,
  },
  {
    name: 'email',
    title: 'see your e-mail address',
    description: 'The app reads your e-mail address and whether it is verified.',
    permissions: [],
    isOptional: true,
  },
  {
    name: 'offline_access',
    title: 'keep its access while you are away',
    description: 'The app renews its access without asking you, until you remove it.',
    permissions: [],
    isOptional: true,
  },
  api(
    'session:read',
    {
      title: 'see who you are and what you may do here',
      description: 'The app reads your name, your e-mail address, your accounts and your permissions.',
    },
    ['session:find-one'],
  ),
  api(
    'account:read',
    { title: 'see your accounts', description: 'The app reads the names of the accounts that you belong to.' },
    ['account:find-all', 'account:find-one'],
  ),
  api('contract:read', { title: 'see your contracts', description: 'The app lists contracts and reads them.' }, [
    'contract:find-all',
    'contract:find-one',
  ]),
  api(
    'contract:write',
    { title: 'create, change and delete contracts', description: 'The app changes contracts in your name.' },
    ['contract:create', 'contract:update', 'contract:delete'],
  ),
  api(
    'webhook:read',
    {
      title: 'see your webhooks',
      description: 'The app reads where events are sent, which ones, and what became of each delivery.',
    },
    [
      'webhook:find-all',
      'webhook:find-one',
      'webhook-event:find-all',
      'webhook-event:find-one',
      'webhook-event:find-set',
      'webhook-dispatch:find-all',
      'webhook-dispatch:find-one',
    ],
  ),
  api(
    'webhook:write',
    {
      title: 'create, change and delete webhooks',
      description: 'The app decides where events are sent, learns the secrets that sign them, and repeats deliveries.',
    },
    [
      'webhook:create',
      'webhook:update',
      'webhook:active',
      'webhook:delete',
      'webhook:rotate-secret',
      'webhook:test',
      'webhook-event:create',
      'webhook-event:update',
      'webhook-event:set',
      'webhook-event:delete',
      'webhook-dispatch:replay',
    ],
  ),
  api(
    'event:read',
    { title: 'see what happened', description: 'The app reads event types and the events of your accounts.' },
    [
      'event:find-all',
      'event:find-one',
      'event-occurrence:find-all',
      'event-occurrence:find-one',
      'event-occurrence:routing',
    ],
  ),
  api(
    'event:publish',
    { title: 'publish events', description: 'The app publishes events that another service owns.' },
    ['event:publish'],
  ),
]

const BY_NAME = new Map(SCOPES.map((scope) => [scope.name, scope]))

/** The scope of this name. */
export function findScope(name: string): Scope | undefined {
  return BY_NAME.get(name)
}
