import { Button, FileButton, Group, Stack, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { Icon } from '../../frame/icons.tsx'
import { useChange } from '../../frame/use-change.ts'
import { AskingButton } from '../../parts/asking-button.tsx'
import { ProblemCard } from '../../parts/problem.tsx'

/** Types that the API takes (docs/contract/identity.md#own-picture). */
const TYPES = 'image/png,image/jpeg,image/webp'

/** The bytes of a file in base64. */
function readBase64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ''))
    reader.onerror = () => reject(reader.error ?? new Error('the file cannot be read'))
    reader.readAsDataURL(file)
  })
}

/** The own picture: shown, chosen, removed. One of another host, of a provider, is not loaded. */
export function OwnPicture({ url, touches }: { url: string | null; touches: readonly string[] }) {
  const { t } = useTranslation()
  const keys = [touches, ['session']]
  const choose = useChange({
    make: async (file: File) => api.auth.userSetPicture({ body: { image: await readBase64(file) } }),
    touches: keys,
  })
  const isOwn =
    url !== null && URL.canParse(url, location.origin) && new URL(url, location.origin).origin === location.origin
  return (
    <Stack gap="xs">
      <Group gap="md">
        {isOwn ? (
          <img className="own-picture" src={url} alt={t('profile.picture')} width={64} height={64} />
        ) : (
          <span className="own-picture" role="img" aria-label={t('profile.no-picture')}>
            <Icon name="users" size={28} />
          </span>
        )}
        <FileButton
          accept={TYPES}
          inputProps={{ 'aria-label': t('profile.choose-picture') }}
          onChange={(file) => file && choose.mutate(file)}
        >
          {(props) => (
            <Button {...props} variant="default" loading={choose.isPending}>
              {t('profile.choose-picture')}
            </Button>
          )}
        </FileButton>
        {isOwn && (
          <AskingButton
            label={t('profile.remove-picture')}
            title={t('profile.remove-picture')}
            text={t('profile.remove-picture-text')}
            make={() => api.auth.userRemovePicture()}
            touches={keys}
            variant="subtle"
          />
        )}
      </Group>
      <Text size="xs" c="dimmed">
        {t('profile.picture-hint')}
      </Text>
      {choose.isError && <ProblemCard error={choose.error} />}
    </Stack>
  )
}
