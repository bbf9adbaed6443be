import { mountPortal } from '@signalbox/portal'

/** Asks the platform's server for a link, with the platform's own cookie. */
async function askForLink(signal: AbortSignal): Promise<string> {
  const answer = await fetch('/portal-link', { method: 'POST', signal })
  if (!answer.ok) throw new Error(`the platform answered ${answer.status}`)
  return answer.text()
}

const element = document.querySelector<HTMLElement>('#webhooks')
const happened = document.querySelector('#happened')
if (!element || !happened) throw new Error('the page has no place for the portal')
mountPortal(element, {
  service: element.dataset.service ?? '',
  getUrl: askForLink,
  onEvent: (event) => {
    happened.textContent = event.type === 'changed' ? event.change : event.type
  },
})
