import { join } from 'node:path'
import { rolldown } from 'rolldown'

const service = process.env.SIGNALBOX_URL ?? 'http://localhost:3000'

/** The script of the page with `@signalbox/portal`, as one file. */
export async function buildScript(): Promise<string> {
  const bundle = await rolldown({ input: join(import.meta.dirname, 'webhooks.ts'), platform: 'browser' })
  const { output } = await bundle.generate({ format: 'iife' })
  return output[0].code
}

const STYLE = `<style>
  body { font-family: system-ui, sans-serif; margin: 0; }
  header { padding: 1rem 1.5rem; background: #10243e; color: white; }
  main { padding: 1rem; }
  form { display: grid; gap: .75rem; max-width: 20rem; }
</style>`

function render(title: string, main: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>${STYLE}</head><body><header>Shipyard</header><main>${main}</main></body></html>`
}

/** The platform's own sign-in. */
export function renderSignIn(fault = ''): string {
  return render(
    'Sign in',
    `<h1>Sign in</h1><p role="alert">${fault}</p><form method="post" action="/sign-in">
<label>E-mail <input name="email" type="email" required></label>
<label>Password <input name="password" type="password" required></label>
<button>Sign in</button></form>`,
  )
}

/** The page of a customer with the portal in it. */
export function renderWebhooks({ company }: { company: string }): string {
  return render(
    'Webhooks',
    `<h1>Webhooks of ${company}</h1><div id="webhooks" data-service="${service}"></div>
<p role="status" id="happened"></p><script src="/page.js"></script>`,
  )
}
