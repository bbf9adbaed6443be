import { Button, Code, CopyButton, Group } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { Scroll } from '../../parts/scroll/scroll.tsx'
import type { EventType } from './filter-types.ts'

/** Members of the envelope (docs/contract/webhooks.md#envelope), each with its type. */
const MEMBERS = [
  ['id', 'uuid'],
  ['type', 'string'],
  ['api_version', 'string'],
  ['created_at', 'timestamp'],
  ['attempt', 'integer'],
  ['data.account', 'uuid | null'],
  ['data.resource', 'string'],
  ['data.action', 'string'],
  ['data.id', 'string | null'],
  ['data.url', 'string | null'],
] as const

/** The members of the body that a webhook gets, and an example. */
export function EnvelopeExample({ type }: { type: EventType }) {
  const { t } = useTranslation()
  const text = JSON.stringify(type.example, null, 2)
  return (
    <>
      <Scroll label={t('catalogue.envelope')}>
        <table className="table">
          <tbody>
            {MEMBERS.map(([name, kind]) => (
              <tr key={name}>
                <th scope="row">
                  <Code>{name}</Code>
                </th>
                <td className="nowrap">{kind}</td>
                <td>{t(`envelope.${name}`)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <Code block className="wrap" data-testid="envelope">
        {text}
      </Code>
      <Group>
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Button size="compact-sm" variant="default" onClick={copy}>
              {copied ? t('copy.done') : t('copy.do')}
            </Button>
          )}
        </CopyButton>
      </Group>
    </>
  )
}
