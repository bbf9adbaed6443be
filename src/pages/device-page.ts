import type { SessionId } from '../id.ts'
import { nameDevice } from '../session/device.ts'
import { describeAge } from './age.ts'
import type { Device } from './device.store.ts'
import { renderCheckbox, renderFormToken, renderKeepApps } from './form.ts'
import { type Html, html } from './html.ts'
import { renderNavigation } from './navigation.ts'
import type { PageParts } from './page.ts'
import type { PageDeps } from './page-route.ts'

/** What the page of the devices shows. */
export interface DevicesView {
  devices: readonly Device[]
  ownSession: SessionId
  browserId: string
  notice: string | undefined
  now: Date
}

type Deps = Pick<PageDeps, 'browserKeys'>

/** Builds the page of the devices: this one first. */
export function buildDevicesPage(deps: Deps, view: DevicesView): Omit<PageParts, 'brand'> {
  const { devices, ownSession, browserId, notice } = view
  const own = devices.filter(({ id }) => id === ownSession)
  const others = devices.filter(({ id }) => id !== ownSession)
  const content = html`<div class="lead">
<h1>Your devices</h1>
<p class="quiet">Each browser and app in which you are signed in. If you do not know one of them, sign it out and change your password.</p>
</div>
${notice !== undefined && html`<p class="notice good" role="status">${notice}</p>`}
<section class="panel" aria-label="Devices">
<ul class="rows">
${[...own, ...others].map((device) => renderDevice(deps, device, view))}
</ul>
</section>
${others.length > 0 && renderEndOthers(deps, browserId)}`
  const navigation = renderNavigation(deps, { path: '/auth/devices', browserId })
  return { title: 'Your devices', layout: 'wide', navigation, content }
}

function renderDevice(deps: Deps, device: Device, { ownSession, browserId, now }: DevicesView): Html {
  const { id, userAgent, address, signedInAt, lastUsedAt } = device
  const isOwn = id === ownSession
  const isRefreshed = lastUsedAt > signedInAt
  const seen = isOwn ? html`Active now · ` : isRefreshed && html`Last seen ${renderAge(lastUsedAt, now)} · `
  return html`<li>
${isPhone(userAgent) ? PHONE : COMPUTER}
<div class="what">
<p class="named"><strong id="device-${id}">${nameDevice(userAgent) ?? 'Unknown device'}</strong>${isOwn && html`<span class="badge">This device</span>`}</p>
<p class="quiet small">${seen}Signed in ${renderAge(signedInAt, now)}${address !== null && ` · ${address}`}</p>
</div>
${!isOwn && html`<form method="post" action="/auth/devices">${renderFormToken(deps, browserId)}<button class="plain" type="submit" name="session" value="${id}" aria-describedby="device-${id}">Sign out</button></form>`}
</li>
`
}

/** Whether a `User-Agent` names a phone or a tablet. */
function isPhone(userAgent: string | null): boolean {
  return /\b(?:iPhone|iPad|Android|Mobile)\b/.test(userAgent ?? '')
}

const COMPUTER = html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><rect x="4" y="5" width="16" height="11" rx="1.5"/><path d="M2 19h20"/></svg>`
const PHONE = html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><rect x="7" y="2.5" width="10" height="19" rx="2"/><path d="M11 18.5h2"/></svg>`

function renderAge(at: Date, now: Date): Html {
  return html`<time datetime="${at.toISOString()}">${describeAge(at, now)}</time>`
}

function renderEndOthers(deps: Deps, browserId: string): Html {
  return html`<form method="post" action="/auth/devices" class="panel">
${renderFormToken(deps, browserId)}
<p class="quiet small">This also disconnects the apps that you allowed something, and revokes your API keys.</p>
${renderKeepApps()}
${renderCheckbox({ name: 'keep-keys', label: 'Keep my API keys' })}
<div class="actions"><button class="plain" type="submit" name="others" value="1">Sign out all other devices</button></div>
</form>`
}
