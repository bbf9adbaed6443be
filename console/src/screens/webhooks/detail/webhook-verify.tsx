import { Code, List, SegmentedControl, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Loaded } from '../../../parts/loaded.tsx'
import { Snippet } from '../../../parts/snippet.tsx'
import { type SignatureKind, SignatureKindChoice } from '../signature-kind.tsx'

type Load = () => Promise<{ default: string }>

/** The snippets of docs/guides/verify, which are tested against the signer. */
const SNIPPETS: Readonly<Record<string, Load>> = {
  'Node.js': () => import('../../../../../docs/guides/verify/node/verify.mjs?raw'),
  Python: () => import('../../../../../docs/guides/verify/python/verify.py?raw'),
  Go: () => import('../../../../../docs/guides/verify/go/verify.go?raw'),
  PHP: () => import('../../../../../docs/guides/verify/php/verify.php?raw'),
  Ruby: () => import('../../../../../docs/guides/verify/ruby/verify.rb?raw'),
  Java: () => import('../../../../../docs/guides/verify/java/Verify.java?raw'),
  'C#': () => import('../../../../../docs/guides/verify/csharp/Verify.cs?raw'),
  Rust: () => import('../../../../../docs/guides/verify/rust/verify.rs?raw'),
}

/** Those of docs/guides/verify/asymmetric.md, likewise. */
const KEY_SNIPPETS: Readonly<Record<string, Load>> = {
  'Node.js': () => import('../../../../../docs/guides/verify/node/asymmetric.mjs?raw'),
  Python: () => import('../../../../../docs/guides/verify/python/asymmetric.py?raw'),
  Go: () => import('../../../../../docs/guides/verify/go/asymmetric.go?raw'),
}

/** How a receiver verifies a delivery, in its language: with the secret, or with the public key of a webhook that has one. */
export function WebhookVerify({ webhook }: { webhook: Schemas['Webhook'] }) {
  const { t } = useTranslation()
  const [asked, setKind] = useState<SignatureKind>('secret')
  const kind = webhook.public_key === null ? 'secret' : asked
  const snippets = kind === 'key' ? KEY_SNIPPETS : SNIPPETS
  const [chosen, setLanguage] = useState('Node.js')
  const language = chosen in snippets ? chosen : 'Node.js'
  const snippet = useQuery({
    queryKey: ['snippet', kind, language],
    queryFn: async () => (await snippets[language]?.())?.default ?? '',
    staleTime: Number.POSITIVE_INFINITY,
  })
  return (
    <Stack maw={900}>
      <List size="sm">
        <List.Item>{t('verify.raw')}</List.Item>
        <List.Item>{t('verify.time')}</List.Item>
        <List.Item>{t('verify.compare')}</List.Item>
      </List>
      {webhook.public_key !== null && <SignatureKindChoice value={kind} onChange={setKind} />}
      <div>
        <SegmentedControl
          size="xs"
          transitionDuration={0}
          aria-label={t('verify.language')}
          value={language}
          onChange={setLanguage}
          data={Object.keys(snippets)}
        />
      </div>
      <Loaded query={snippet} height={300}>
        {(text) => <Snippet text={text} label={t('webhooks.tab.verify')} />}
      </Loaded>
      <Text size="sm" c="dimmed">
        {t('verify.package')} <Code>@signalbox/webhooks</Code>
      </Text>
    </Stack>
  )
}
