import { Button } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { Anchored } from './anchored.tsx'
import { buildOnDemand } from './on-demand.tsx'
import type { ShownCall } from './shown-call.ts'

const ApiCallPanel = buildOnDemand(async () => (await import('./api-call-panel.tsx')).ApiCallPanel)

/** Shows how a program does what the screen does. */
export function ApiCall(call: ShownCall) {
  const { t } = useTranslation()
  return (
    <Anchored
      kind="dialog"
      control={(props) => (
        <Button {...props} variant="subtle" color="gray" size="compact-sm" className="shortened">
          <span className="long">{t('api-call.title')}</span>
          <span className="short" aria-hidden="true">
            {'</>'}
          </span>
        </Button>
      )}
    >
      {(panel) => <ApiCallPanel {...panel} call={call} />}
    </Anchored>
  )
}
