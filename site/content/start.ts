import type { Page } from './markdown.ts'

/** The five areas of the service, and where a reader begins with each. */
const AREAS = [
  {
    name: 'Webhooks',
    text: 'Every change becomes a signed notification, delivered at least once.',
    guide: 'guides/webhooks',
    concept: 'concepts/webhooks',
    icon: 'rocket',
  },
  {
    name: 'Identity',
    text: 'Users, accounts, roles, sessions; sign-in with password, passkey or provider.',
    guide: 'guides/social-login',
    concept: 'concepts/identity',
    icon: 'approve-check-circle',
  },
  {
    name: 'OAuth',
    text: 'An OpenID provider for third-party apps, with consent.',
    guide: 'guides/let-another-app-sign-in',
    concept: 'concepts/oauth',
    icon: 'seti:lock',
  },
  {
    name: 'Provisioning',
    text: 'Users follow on other platforms as they change here.',
    guide: 'guides/provisioning',
    concept: 'concepts/provisioning',
    icon: 'random',
  },
  {
    name: 'Realtime',
    text: 'The same events in browsers, over the Pusher protocol.',
    guide: 'guides/realtime',
    concept: 'concepts/realtime',
    icon: 'signal',
  },
] as const

/** The first page of the site. Pure. */
export function buildStart({ base, tagline }: { base: string; tagline: string }): Page {
  const cards = AREAS.map(
    ({ name, text, guide, concept, icon }) =>
      `<Card title="${name}" icon="${icon}">\n${text}\n\n[Start here](${base}/${guide}/) · [How it works](${base}/${concept}/)\n</Card>`,
  )
  const body = [
    "import { Card, CardGrid } from '@astrojs/starlight/components'",
    '## Start here',
    `<CardGrid>\n${cards.join('\n')}\n</CardGrid>`,
    '## Two commands',
    'In a checkout, with Node and npm only. The first installs what is missing, PostgreSQL included, and shows a delivery:',
    '```sh\nnpm start\nnpm test\n```',
    '## A project of your own',
    `[\`@signalbox/create\`](${base}/packages/create/) makes a receiver, an app whose users sign in, or a page with events. Users of your own app: [sign-in with a provider](${base}/guides/social-login/), [one sign-in for several domains](${base}/guides/sso/). Customers with a provider of their own: [enterprise sign-in](${base}/guides/enterprise-sign-in/).`,
    '## Beside others',
    `[Comparison](${base}/comparison/) · [Benchmarks](${base}/benchmarks/)`,
    '## In production',
    `[Deployment](${base}/deployment/) · [Configuration](${base}/configuration/) · [Operations](${base}/operations/) · [Scale](${base}/operations/scale/)`,
  ]
  const extra = [
    'template: splash',
    'hero:',
    `  tagline: ${JSON.stringify(tagline)}`,
    '  actions:',
    `    - { text: First verified webhook, link: ${base}/guides/webhooks/, icon: right-arrow }`,
    `    - { text: API reference, link: ${base}/reference/, variant: minimal }`,
  ]
  return { path: '', title: 'Signalbox', description: tagline, body: body.join('\n\n'), extra }
}
