import { Button, Code, CopyButton, Popover, Stack, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { Anchor } from './anchored.tsx'
import { type ShownCall, toCurl, toProgram } from './shown-call.ts'

interface ApiCallPanelProps {
  call: ShownCall
  isOpen: boolean
  onClose: () => void
}

/** A call as a command and in a program, each to copy. */
export function ApiCallPanel({ call, isOpen, onClose }: ApiCallPanelProps) {
  const { t } = useTranslation()
  const texts = [toCurl(call, location.origin), toProgram(call)]
  return (
    <Popover width={420} position="bottom-end" withArrow trapFocus returnFocus opened={isOpen} onDismiss={onClose}>
      <Popover.Target>
        <Anchor />
      </Popover.Target>
      <Popover.Dropdown maw="calc(100vw - 24px)" aria-labelledby={undefined} aria-label={t('api-call.title')}>
        <Stack gap="xs">
          {texts.map((text, index) => (
            <div key={text}>
              <Text size="xs" c="dimmed">
                {index === 0 ? 'curl' : '@signalbox/client'}
              </Text>
              <Code block className="wrap">
                {text}
              </Code>
              <CopyButton value={text}>
                {({ copied, copy }) => (
                  <Button size="compact-xs" variant="default" mt={4} onClick={copy}>
                    {copied ? t('copy.done') : t('copy.do')}
                  </Button>
                )}
              </CopyButton>
            </div>
          ))}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  )
}
