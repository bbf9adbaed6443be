// The bridge page: takes code or tokens out of the address bar and its history, and continues at callback-redirect.
const bridge = document.getElementById('bridge')
const query = new URLSearchParams(location.search)
const fragment = new URLSearchParams(location.hash.slice(1))
history.replaceState(null, '', location.pathname)

const parameters = new URLSearchParams()
for (const name of ['state', 'code', 'iss', 'error', 'access_token', 'refresh_token']) {
  const value = query.get(name) ?? fragment.get(name)
  if (value !== null) parameters.set(name, value)
}

/** Shows the message for a problem: by its code and cause, by its code alone, or the general one. */
function showFailure(problem = {}) {
  const messages = [...document.querySelectorAll('#messages [data-code]')]
  const find = (name) => messages.find(({ dataset }) => dataset.code === name)
  const cause = problem.errors?.[0]?.code
  const message = find(`${problem.code}.${cause}`) ?? find(problem.code) ?? messages[0]
  const heading = document.getElementById('heading')
  heading.textContent = message.dataset.title
  document.title = `${message.dataset.title} · ${bridge.dataset.brand}`
  document.getElementById('explanation').textContent = message.textContent
  document.getElementById('continue')?.remove()
  document.getElementById('back').hidden = cause === 'disabled'
  if (typeof problem.request_id === 'string') {
    const reference = document.getElementById('reference')
    reference.querySelector('code').textContent = problem.request_id
    reference.hidden = false
  }
  heading.focus()
}

async function proceed() {
  if (bridge.dataset.mode === 'fragment') {
    const state = fragment.get('state')
    if (state === null) return showFailure({ code: 'social_login_failed' })
    return location.replace(`${location.pathname}?${new URLSearchParams({ state })}#${fragment}`)
  }
  const url = `${bridge.dataset.next}?${parameters}`
  // An app is opened by the browser itself, which follows the redirect to its scheme.
  if (bridge.dataset.mode === 'open') return location.replace(url)
  const answer = await fetch(url, { headers: { accept: 'application/json' }, credentials: 'same-origin' })
  const body = await answer.json()
  if (!answer.ok) return showFailure(body)
  location.replace(body.data.redirect_url)
}

proceed().catch(() => showFailure())
