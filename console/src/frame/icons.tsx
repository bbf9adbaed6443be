/** The icons of the console: one stroke each, drawn on a grid of 24. They stand beside words that say the same. */
const PATHS = {
  overview: 'M4 13h6V4H4zM14 20h6V11h-6zM4 20h6v-4H4zM14 8h6V4h-6z',
  deliveries: 'M4 6h16M4 12h16M4 18h10',
  webhooks: 'M9 8a3 3 0 1 1 4.6 2.5L16 15M14 17h4.5a2.5 2.5 0 1 1-2 4M10.5 10.5 7 16.5M7 16.5a2.5 2.5 0 1 0 2.5 2.5H14',
  events: 'M13 3 5 13h6l-1 8 8-10h-6z',
  users: 'M12 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8M4 21a8 8 0 0 1 16 0',
  accounts: 'M4 20V8l8-4 8 4v12M4 20h16M9 20v-6h6v6M9 10h.01M15 10h.01',
  roles: 'M12 3 5 6v5c0 5 3 8 7 10 4-2 7-5 7-10V6zM9 12l2 2 4-4',
  sessions: 'M4 5h16v11H4zM8 20h8M12 16v4',
  keys: 'M8 15a4 4 0 1 0 0-8 4 4 0 0 0 0 8M11.5 11H21M17 11v4M20 11v3',
  consents: 'M5 4h14v16H5zM8 9h8M8 13h3M13 16l2 2 3-4',
  providers: 'M10 4H5v16h5M14 8l4 4-4 4M18 12H9',
  handshake: 'M4 8h11M12 4l4 4-4 4M20 16H9M12 12l-4 4 4 4',
  apps: 'M5 5h6v6H5zM13 13h6v6h-6zM13 5h6v6h-6zM5 13h6v6H5z',
  audit: 'M7 3h10v18l-5-3-5 3zM10 8h4M10 12h4',
  health: 'M3 12h4l2-6 4 12 2-6h6',
  realtime:
    'M12 13a1 1 0 1 0 0-2 1 1 0 0 0 0 2M8 16a6 6 0 0 1 0-8M16 8a6 6 0 0 1 0 8M5 19a10 10 0 0 1 0-14M19 5a10 10 0 0 1 0 14',
  catalogue: 'M5 4h12a2 2 0 0 1 2 2v14H7a2 2 0 0 1-2-2zM5 17a2 2 0 0 1 2-2h12M9 8h6',
  provisioning: 'M9 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8M2 20a7 7 0 0 1 12-5M15 19h7M19 16l3 3-3 3',
  settings:
    'M4 7h10M18 7h2M4 17h2M10 17h10M16 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M8 19.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 5v14l12-7z',
  good: 'M5 12l5 5 9-10',
  bad: 'M6 6l12 12M18 6 6 18',
  wait: 'M12 7v5l3 2M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18',
  warn: 'M12 4 2.5 20h19zM12 10v4M12 17v.5',
  refresh: 'M20 11a8 8 0 1 0-2 6.3M20 4v7h-7',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14M16 16l5 5',
  menu: 'M4 7h16M4 12h16M4 17h16',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5 19 19M5 19l1.5-1.5M17.5 6.5 19 5',
  close: 'M6 6l12 12M18 6 6 18',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
} as const

export type IconName = keyof typeof PATHS

/** An icon. It has no text of its own. */
export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={name === 'more' ? 3 : 1.8}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  )
}
