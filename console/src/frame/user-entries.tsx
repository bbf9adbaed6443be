import { Menu, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { LANGUAGES } from '../language/choice.ts'
import { chooseLanguage } from '../language/i18n.ts'
import { Anchor } from '../parts/anchored.tsx'
import { Time } from '../parts/time.tsx'
import { useAccess } from './session.tsx'
import { settings } from './settings.ts'

/** Who is signed in and until when, and what concerns the user. */
export function UserEntries({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { t, i18n } = useTranslation()
  const { user, session } = useAccess().session
  return (
    <Menu position="bottom-end" opened={isOpen} onClose={onClose} withinPortal>
      <Menu.Target>
        <Anchor />
      </Menu.Target>
      <Menu.Dropdown aria-labelledby={undefined} aria-label={t('nav.user', { name: user.name ?? user.email })}>
        <Menu.Label>{user.email}</Menu.Label>
        {session && (
          <Menu.Label>
            <Text span inherit>
              {t('nav.session-ends')} <Time at={session.expires_at} />
            </Text>
          </Menu.Label>
        )}
        <Menu.Item component="a" href="/auth/">
          {t('nav.account')}
        </Menu.Item>
        <Menu.Item component={Link} to="/settings">
          {t('nav.settings')}
        </Menu.Item>
        {LANGUAGES.filter((language) => language !== i18n.language).map((language) => (
          <Menu.Item key={language} lang={language} onClick={() => void chooseLanguage(language)}>
            {language === 'de' ? 'Deutsch' : 'English'}
          </Menu.Item>
        ))}
        <Menu.Item component="a" href="/docs">
          {t('nav.reference')}
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item component="a" href="/auth/sign-out">
          {t('nav.sign-out')}
        </Menu.Item>
        <Menu.Label>{t('nav.version', { version: settings.version })}</Menu.Label>
      </Menu.Dropdown>
    </Menu>
  )
}
