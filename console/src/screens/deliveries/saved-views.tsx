import { Button, Group, Menu, Stack, TextInput } from '@mantine/core'
import { useDisclosure, useLocalStorage } from '@mantine/hooks'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { showNotice } from '../../frame/notice/notice.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Form } from '../../parts/form.tsx'
import { type DeliveryFilters, readDeliveryFilters } from './filters.ts'

interface View {
  name: string
  filters: DeliveryFilters
}

/** Filters under a name, kept in this browser. They hold no secret. */
export function SavedViews({
  filters,
  onChoose,
}: {
  filters: DeliveryFilters
  onChoose: (next: DeliveryFilters) => void
}) {
  const { t } = useTranslation()
  const [views, setViews] = useLocalStorage<View[]>({ key: 'signalbox-console-views', defaultValue: [] })
  const [isOpen, { open, close }] = useDisclosure(false)
  const [name, setName] = useState('')
  const save = () => {
    setViews([...views.filter((view) => view.name !== name.trim()), { name: name.trim(), filters }])
    setName('')
    close()
  }
  const forget = (gone: View) => {
    const { name } = gone
    setViews(views.filter((view) => view.name !== name))
    const undo = async () => setViews((now) => [...now.filter((view) => view.name !== name), gone])
    showNotice({ text: t('view.forgotten', { name }), undo })
  }
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" size="compact-sm">
            {t('view.title')}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {views.map((view) => (
            <Menu.Item key={view.name} onClick={() => onChoose(readDeliveryFilters({ ...view.filters }))}>
              {view.name}
            </Menu.Item>
          ))}
          {views.length > 0 && <Menu.Divider />}
          <Menu.Item disabled={Object.keys(filters).length === 0} onClick={open}>
            {t('view.save')}
          </Menu.Item>
          {views.map((view) => (
            <Menu.Item key={view.name} color="red" onClick={() => forget(view)}>
              {t('view.forget', { name: view.name })}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      <Dialog title={t('view.save')} isOpen={isOpen} onClose={close}>
        <Form onSubmit={save}>
          <Stack>
            <TextInput
              label={t('view.name')}
              required
              maxLength={60}
              value={name}
              onChange={({ currentTarget }) => setName(currentTarget.value)}
              data-autofocus
              autoComplete="off"
            />
            <Group justify="flex-end">
              <Button type="submit" disabled={name.trim() === ''}>
                {t('settings.save')}
              </Button>
            </Group>
          </Stack>
        </Form>
      </Dialog>
    </>
  )
}
