import { Button, Code, CopyButton, Group, Stack } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { Scroll } from './scroll/scroll.tsx'

/** Program text with a button that copies it. */
export function Snippet({ text, label }: { text: string; label: string }) {
  const { t } = useTranslation()
  return (
    <Stack gap="xs">
      <Group justify="flex-end">
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Button size="compact-xs" variant="default" onClick={copy}>
              {copied ? t('copy.done') : t('copy.do')}
            </Button>
          )}
        </CopyButton>
      </Group>
      <Scroll className="snippet" label={label}>
        <Code block>{text}</Code>
      </Scroll>
    </Stack>
  )
}
