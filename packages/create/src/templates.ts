/** A project that this program makes. */
export interface Template {
  /** One line for the question. */
  text: string
  /** Folders below `templates/` whose files make the project; a later one replaces files of an earlier one. */
  layers: readonly string[]
}

/** The templates by name. */
export const TEMPLATES: Readonly<Record<string, Template>> = {
  'receiver-express': { text: 'a receiver of webhooks with Express', layers: ['receiver', 'receiver-express'] },
  'receiver-fastify': { text: 'a receiver of webhooks with Fastify', layers: ['receiver', 'receiver-fastify'] },
  'receiver-hono': { text: 'a receiver of webhooks with Hono', layers: ['receiver', 'receiver-hono'] },
  'receiver-next': { text: 'a receiver of webhooks in an app of Next.js', layers: ['receiver', 'receiver-next'] },
  'sign-in': { text: 'an app whose users sign in with Signalbox', layers: ['sign-in'] },
  realtime: { text: 'a page that shows events as they happen', layers: ['realtime'] },
  sso: { text: 'two apps on two domains with one sign-in', layers: ['sso'] },
  portal: { text: 'a platform that shows the portal to its customers', layers: ['portal'] },
}

/** The template of a name, or undefined: also for names that every object has. */
export function findTemplate(name: string): Template | undefined {
  return Object.hasOwn(TEMPLATES, name) ? TEMPLATES[name] : undefined
}
