import type { Page } from './markdown.ts'

/** The five areas of the service, where a reader begins with each, and its further guides. */
export const AREAS = [
  {
    name: 'Webhooks',
    text: 'Every change becomes a signed notification, delivered at least once.',
    guide: 'guides/webhooks',
    concept: 'concepts/webhooks',
    icon: 'rocket',
    guides: [
      'guides/webhooks',
      'guides/verify',
      'guides/cli',
      'guides/pull',
      'guides/move-from-svix',
      'guides/event-log',
      'guides/portal',
    ],
  },
  {
    name: 'Identity',
    text: 'Users, accounts, roles, sessions; sign-in with password, passkey or provider.',
    guide: 'guides/social-login',
    concept: 'concepts/identity',
    icon: 'approve-check-circle',
    guides: [
      'guides/social-login',
      'guides/sign-up',
      'guides/second-factors',
      'guides/sso',
      'guides/enterprise-sign-in',
      'guides/saml',
      'guides/tenants',
      'guides/move-from-supabase-auth',
      'guides/move-from-keycloak',
      'guides/move-from-logto',
    ],
  },
  {
    name: 'OAuth',
    text: 'An OpenID provider for third-party apps, with consent.',
    guide: 'guides/let-another-app-sign-in',
    concept: 'concepts/oauth',
    icon: 'seti:lock',
    guides: ['guides/let-another-app-sign-in', 'guides/generate-a-client'],
  },
  {
    name: 'Provisioning',
    text: 'Users follow on other platforms as they change here.',
    guide: 'guides/provisioning',
    concept: 'concepts/provisioning',
    icon: 'random',
    guides: ['guides/provisioning'],
  },
  {
    name: 'Realtime',
    text: 'The same events in browsers, over the Pusher protocol.',
    guide: 'guides/realtime',
    concept: 'concepts/realtime',
    icon: 'signal',
    guides: ['guides/realtime', 'guides/move-from-pusher'],
  },
] as const

/** First page of a reader without the repository. */
export const FIRST_PAGES = ['', 'guides/start', 'deployment', 'reference'] as const

/** The first commands, of a release and of a checkout. */
const TWO_WAYS = [
  '## Run it',
  'With Node and npm only; PostgreSQL comes with the first start, which shows a delivery. From the file of a release:',
  '```sh\nnpm install ./signalbox-0.1.0.tgz\nnpx signalbox start\n```',
  'In a checkout of the repository:',
  '```sh\nnpm start\nnpm test\n```',
  '[Start](BASE/guides/start/) says where the two differ, and which Node is needed.',
]

/** The first page of the site. Pure. */
export function buildStart({ base, tagline }: { base: string; tagline: string }): Page {
  const cards = AREAS.map(
    ({ name, text, guide, concept, icon }) =>
      `<Card title="${name}" icon="${icon}">\n${text}\n\n[Start here](${base}/${guide}/) · [How it works](${base}/${concept}/)\n</Card>`,
  )
  const listed = AREAS.map(
    ({ name, text, guide, concept }) =>
      `- **${name}.** ${text} [Start here](${base}/${guide}/), [how it works](${base}/${concept}/)`,
  )
  const rest = [
    ...TWO_WAYS.map((part) => part.replace('BASE', base)),
    '## A project of your own',
    `[\`@signalbox/create\`](${base}/packages/create/) makes a receiver, an app whose users sign in, or a page with events. Users of your own app: [sign-in with a provider](${base}/guides/social-login/), [one sign-in for several domains](${base}/guides/sso/). Customers with a provider of their own: [enterprise sign-in](${base}/guides/enterprise-sign-in/).`,
    '## Beside others',
    `[Comparison](${base}/comparison/) · [Benchmarks](${base}/benchmarks/)`,
    '## In production',
    `[Deployment](${base}/deployment/) · [Configuration](${base}/configuration/) · [Operations](${base}/operations/) · [Scale](${base}/operations/scale/)`,
  ]
  const body = [
    "import { Card, CardGrid } from '@astrojs/starlight/components'",
    '## Start here',
    `<CardGrid>\n${cards.join('\n')}\n</CardGrid>`,
    ...rest,
  ]
  const extra = [
    'template: splash',
    'hero:',
    `  tagline: ${JSON.stringify(tagline)}`,
    '  actions:',
    `    - { text: First verified webhook, link: ${base}/guides/webhooks/, icon: right-arrow }`,
    `    - { text: API reference, link: ${base}/reference/, variant: minimal }`,
  ]
  const plain = [tagline, ...rest, '## Areas', listed.join('\n')].join('\n\n')
  return { path: '', title: 'Signalbox', description: tagline, body: body.join('\n\n'), plain, extra }
}
