import { ActionIcon, CopyButton, Group, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { Icon } from '../frame/icons.tsx'
import { Hint } from './hint.tsx'
import { shortenId } from './words/short-id.ts'

/** A text that is copied whole. `short`: of an id, its first and last characters. */
export function CopyText({ text, isShort = false }: { text: string; isShort?: boolean }) {
  const { t } = useTranslation()
  const shown = isShort ? shortenId(text) : text
  return (
    <Group gap={2} wrap="nowrap" display="inline-flex">
      <Text component="span" className={isShort ? 'mono nowrap' : 'mono wrap'} title={text}>
        {shown}
      </Text>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <Hint label={copied ? t('copy.done') : t('copy.do')}>
            <ActionIcon
              variant="subtle"
              color="gray"
              size={24}
              onClick={copy}
              aria-label={t('copy.what', { text: shown })}
            >
              <Icon name={copied ? 'good' : 'copy'} size={14} />
            </ActionIcon>
          </Hint>
        )}
      </CopyButton>
    </Group>
  )
}
