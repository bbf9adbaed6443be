import { type Html, html } from '../../../base/html.ts'
import type { SessionId } from '../../../base/id.ts'
import type { Texts } from '../../../base/language/texts.ts'
import { recognizeDevice } from '../../session/device.ts'
import { renderAge } from '../frame/age.ts'
import { renderCheckbox, renderFormToken, renderKeepApps } from '../frame/form.ts'
import { buildSections, type Reader } from '../frame/layout.ts'
import type { PageBody } from '../frame/page.ts'
import type { PageDeps } from '../frame/page-route.ts'
import { renderText } from '../frame/text.ts'
import type { Device } from './device.store.ts'

/** Contents of the page of devices. */
export interface DevicesView extends Reader {
  devices: readonly Device[]
  ownSession: SessionId
  notice: string | undefined
  now: Date
}

type Deps = Pick<PageDeps, 'browserKeys'>

/** Builds the page of the devices: this one first. */
export function buildDevicesPage(deps: Deps, view: DevicesView): PageBody {
  const { devices, ownSession, texts } = view
  const own = devices.filter(({ id }) => id === ownSession)
  const others = devices.filter(({ id }) => id !== ownSession)
  const content = html`<section class="panel" aria-label="${texts.say('devices.label')}">
<ul class="rows">
${[...own, ...others].map((device) => renderDevice(deps, device, view))}
</ul>
</section>
${others.length > 0 && renderEndOthers(deps, view)}`
  const lead = { title: texts.say('devices.title'), text: texts.say('devices.text') }
  return buildSections(deps, view, { path: '/auth/devices', ...lead, content })
}

function renderDevice(deps: Deps, device: Device, view: DevicesView): Html {
  const { ownSession, browserId, texts, now } = view
  const { id, userAgent, address, signedInAt, lastUsedAt } = device
  const isOwn = id === ownSession
  const isRefreshed = lastUsedAt > signedInAt
  const seen = isOwn
    ? html`${texts.say('devices.active')} · `
    : isRefreshed && html`${renderText(texts, 'devices.seen', { age: renderAge(texts, lastUsedAt, now) })} · `
  return html`<li>
${isPhone(userAgent) ? PHONE : COMPUTER}
<div class="what">
<p class="named"><strong id="device-${id}">${nameOf(texts, userAgent)}</strong>${isOwn && html`<span class="badge">${texts.say('devices.this')}</span>`}</p>
<p class="quiet small">${seen}${renderText(texts, 'devices.signed-in', { age: renderAge(texts, signedInAt, now) })}${address !== null && ` · ${address}`}</p>
</div>
${!isOwn && html`<form method="post" action="/auth/devices">${renderFormToken(deps, browserId)}<button class="plain" type="submit" name="session" value="${id}" aria-describedby="device-${id}">${texts.say('devices.sign-out')}</button></form>`}
</li>
`
}

function nameOf(texts: Texts, userAgent: string | null): string {
  const { program, system } = recognizeDevice(userAgent)
  const name = program === null ? null : program === 'app' ? texts.say('device.app') : program
  if (name !== null && system !== null) return texts.say('device.on', { program: name, system })
  return name ?? system ?? texts.say('devices.unknown')
}

function isPhone(userAgent: string | null): boolean {
  return /\b(?:iPhone|iPad|Android|Mobile)\b/.test(userAgent ?? '')
}

const COMPUTER = html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><rect x="4" y="5" width="16" height="11" rx="1.5"/><path d="M2 19h20"/></svg>`
const PHONE = html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><rect x="7" y="2.5" width="10" height="19" rx="2"/><path d="M11 18.5h2"/></svg>`

function renderEndOthers(deps: Deps, { browserId, texts }: DevicesView): Html {
  return html`<form method="post" action="/auth/devices" class="panel">
${renderFormToken(deps, browserId)}
<p class="quiet small">${texts.say('devices.others-text')}</p>
${renderKeepApps(texts)}
${renderCheckbox({ name: 'keep-keys', label: texts.say('form.keep-keys') })}
<div class="actions"><button class="plain" type="submit" name="others" value="1">${texts.say('devices.sign-out-others')}</button></div>
</form>`
}
