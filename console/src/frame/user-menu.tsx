import { Button } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { Anchored } from '../parts/anchored.tsx'
import { buildOnDemand } from '../parts/on-demand.tsx'
import { Icon } from './icons.tsx'
import { useAccess } from './session.tsx'

const UserEntries = buildOnDemand(async () => (await import('./user-entries.tsx')).UserEntries)

/** Menu of the user who is signed in. */
export function UserMenu() {
  const { t } = useTranslation()
  const { user } = useAccess().session
  return (
    <Anchored
      kind="menu"
      control={(props) => (
        <Button
          {...props}
          variant="default"
          size="xs"
          h={32}
          aria-label={t('nav.user', { name: user.name ?? user.email })}
        >
          <Icon name="users" />
        </Button>
      )}
    >
      {(panel) => <UserEntries {...panel} />}
    </Anchored>
  )
}
